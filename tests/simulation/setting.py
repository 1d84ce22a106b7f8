"""The kind of cluster of a run: its size, its policy, its timing, determined by the seed."""

import random
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Final

from controlplane.config import LeaseConfig, SnapshotConfig
from controlplane.core.cluster.policy import ClusterPolicy, ZoneRule

LEASE = LeaseConfig(duration_ms=1_500, renew_interval_ms=400, store_timeout_ms=300, handover_after_ms=3_000)
CLUSTER = "simulated"
CONTROLLERS = ("c0", "c1", "c2")
NODES = ("n0", "n1", "n2", "n3", "n4")
SPARE_NODES = ("n5", "n6")
CLIENTS = ("r0", "r1")
OBSERVER = "c9"
_HEARTBEAT_PARTITIONS: Final = (1, 1, 2, 3)
MOST_ADDED_AT_ONCE: Final = 2
MOST_HEARTBEAT_PARTITIONS: Final = max(_HEARTBEAT_PARTITIONS) + 2 * MOST_ADDED_AT_ONCE
"""Partitions are added twice at most."""


class SettingKind(Enum):
    """What is unusual about a cluster; the value is its name in reports."""

    LONG_LIMIT = "silence limit of 10 to 20 s"
    MANY_SLOTS = "1,024 slots"
    MANY_GONE_NAMES = "300 names of nodes that left"


_SHARES: Final = {SettingKind.LONG_LIMIT: 0.1, SettingKind.MANY_SLOTS: 0.05, SettingKind.MANY_GONE_NAMES: 0.08}
_GONE_NAMES: Final = 300
_MANY_SLOTS: Final = 1_024
_LONG_LIMITS_MS: Final = (10_000, 20_000)
"""20 s is the longest that a policy may have."""


@dataclass(frozen=True)
class Setting:
    """A cluster.

    Attributes:
        policy: its first one.
        heartbeat_partitions: of topic ``heartbeats``.
        tick_interval_ms: of every controller.
        has_observer: whether there is an observer.
        fetch_records: how many records one answer of the broker holds at most.
        zones: the nodes' failure domains; empty for none.
        snapshots: when leaders write them.
        stop_when_lease_store_is_lost: see :class:`controlplane.config.ControllerConfig`.
        load_interval_ms: interval of the nodes' load reports; 0 for none.
        preferred: the controller to which the others leave the lease; empty for none.
        lease: how controllers stand for election.
        gone_names: how many nodes have joined and left before anything else happens.
        kinds: what is unusual about it.
    """

    policy: ClusterPolicy
    heartbeat_partitions: int = 2
    tick_interval_ms: int = 100
    has_observer: bool = False
    fetch_records: int = 10_000
    zones: tuple[str, ...] = ()
    snapshots: SnapshotConfig = field(default_factory=SnapshotConfig)
    stop_when_lease_store_is_lost: bool = False
    load_interval_ms: int = 0
    preferred: str = ""
    lease: LeaseConfig = LEASE
    gone_names: int = 0
    kinds: frozenset[SettingKind] = frozenset()

    def lease_of(self, controller_id: str) -> LeaseConfig:
        """How a controller stands for election."""
        return replace(self.lease, priority=1) if controller_id == self.preferred else self.lease

    def zone_of(self, node_id: str) -> str:
        """The failure domain of a node."""
        return self.zones[int(node_id[1:]) % len(self.zones)] if self.zones else ""


def choose_setting(random_source: random.Random) -> Setting:
    """A cluster of at least 64 slots."""
    choose = random_source
    zones = choose.choice(((), ("z0", "z1", "z2")))
    policy = ClusterPolicy(
        slot_count=64,
        replica_count=choose.choice((1, 2, 2, 3)),
        silence_limit_ms=choose.choice((1_500, 2_000, 2_500)),
        join_linger_ms=choose.choice((0, 100, 200)),
        slot_policy="sofa" if choose.random() < 0.15 else "minimal",
        zone_rule=choose.choice((ZoneRule.SOFT, ZoneRule.IGNORED)),
        moves_in_flight=choose.choice((0, 0, 8)),
        positions_interval_ms=choose.choice((4_000, 600_000)),
    )
    setting = Setting(
        policy,
        heartbeat_partitions=choose.choice(_HEARTBEAT_PARTITIONS),
        tick_interval_ms=choose.choice((150, 200, 200, 200)),
        has_observer=choose.random() < 0.2,
        fetch_records=choose.choice((10_000, 10_000, 10_000, 7)),
        zones=zones,
        snapshots=choose.choice((SnapshotConfig(), SnapshotConfig(after_decisions=5))),
        stop_when_lease_store_is_lost=choose.random() < 0.2,
        preferred=choose.choice(("", "", "", *CONTROLLERS)),
    )
    # A short window lets more nodes be fenced in a run.
    return replace(setting, policy=replace(policy, protection_window_ms=choose.choice((2_000, 2_000, 10_000))))


def with_unusual(setting: Setting, choose: random.Random) -> Setting:
    """A setting, or the same with something unusual about it, by choices of its own."""
    kinds = frozenset(kind for kind, share in _SHARES.items() if choose.random() < share)
    policy = setting.policy
    if SettingKind.LONG_LIMIT in kinds:
        policy = replace(policy, silence_limit_ms=choose.choice(_LONG_LIMITS_MS))
    if SettingKind.MANY_SLOTS in kinds:
        policy = replace(policy, slot_count=_MANY_SLOTS)
    gone_names = _GONE_NAMES if SettingKind.MANY_GONE_NAMES in kinds else 0
    return replace(setting, policy=policy, gone_names=gone_names, kinds=kinds)
