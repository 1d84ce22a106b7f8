"""A cluster's present state, and the last reports of its nodes, for queries and what-ifs."""

from typing import Final

from controlplane.config import HEARTBEATS
from controlplane.core.deciding.observations import Observations
from controlplane.core.log.state import State
from controlplane.core.membership.log_time import Heard, PartitionView
from controlplane.core.values.identifiers import TopicPartition
from controlplane.inspection import readers
from controlplane.inspection.past_states import replay
from controlplane.inspection.readers import HeartbeatTail
from controlplane.inspection.source import LogSource

LOOK_BACK_MS: Final = 60_000
"""How far back in log time a node's last heartbeat is searched."""


def read_state(source: LogSource) -> State:
    """The state after the last decision, rebuilt from the newest valid snapshot; the empty state before the first.

    Raises:
        LogUnavailableError: the log did not answer.
        LogContinuityError: the log is not one chain, or a record is no decision.
        UnsupportedFeatureLevelError: a newer version wrote it.
    """
    return replay(source).state


def read_observations(source: LogSource, state: State) -> Observations:
    """The last reports of the living nodes and their ages, as planning needs them. They do not include silence.

    Ages are differences of append times. A leader counts less for an outage, in which no controller ticked.

    Raises:
        LogUnavailableError: the log did not answer.
    """
    return observations_of(read_tail(source, state))


def read_tail(source: LogSource, state: State) -> HeartbeatTail:
    """The end of ``heartbeats`` with the last heartbeats of the living nodes.

    Raises:
        LogUnavailableError: the log did not answer.
    """
    living = {node_id for node_id, node in state.membership.nodes.items() if node.lives}
    return readers.read_last_heartbeats(source, living, LOOK_BACK_MS)


def observations_of(tail: HeartbeatTail) -> Observations:
    """What :func:`read_observations` says, from the end of ``heartbeats``."""
    heard = {
        (node_id, last.heartbeat.incarnation): Heard(at_ms, at_ms, last.heartbeat)
        for node_id, last in tail.last.items()
        for at_ms in [tail.now_ms - tail.age_ms(last)]
    }
    view = PartitionView(clock_ms=tail.now_ms, last_tick_ms=tail.now_ms, heard=heard)
    return Observations(partitions={0: view}, positions={TopicPartition(HEARTBEATS, 0): 0})
