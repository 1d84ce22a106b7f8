"""The components of a controller, shared by its loop, its take-overs and its leaderships."""

from collections.abc import Callable
from typing import NamedTuple

from controlplane.config import ControllerConfig
from controlplane.core.cluster.policy import ClusterPolicy
from controlplane.core.slots.policy_contract import SlotPolicies
from controlplane.ports import Clock, LeaseStore, LogReader, TransactionalWriter
from controlplane.service.dead_letters import DeadLetterWriter
from controlplane.service.follower import LogFollower
from controlplane.service.input_reader import InputReader
from controlplane.service.metrics import ControllerMetrics
from controlplane.service.snapshots import SnapshotKeeper


class ControllerComponents(NamedTuple):
    """The components of one controller.

    Attributes:
        open_transactions: makes a transactional writer; every take-over uses a new one.
        new_log_id: returns the id of a log that is about to begin: 32 random hexadecimal digits.
    """

    config: ControllerConfig
    first_policy: ClusterPolicy
    slot_policies: SlotPolicies
    clock: Clock
    metrics: ControllerMetrics
    lease_store: LeaseStore
    open_reader: Callable[[], LogReader]
    open_transactions: Callable[[], TransactionalWriter]
    follower: LogFollower
    input_reader: InputReader
    dead_letters: DeadLetterWriter
    snapshots: SnapshotKeeper
    new_log_id: Callable[[], str]
