"""The kinds of faults that take several brokers, and how often each comes."""

from collections.abc import Mapping
from enum import Enum
from typing import Final

from tests.chaos.faults import FaultKind


class BrokerFaultKind(Enum):
    """A way to go wrong that takes several brokers."""

    DECISIONS_KILLED = "broker of the decisions killed after a commit"
    DECISIONS_PAUSED = "broker of the decisions paused after a commit"
    DECISIONS_ISOLATED = "broker of the decisions isolated after a commit"
    DECISIONS_AND_LEADER_KILLED = "broker of the decisions and leader killed after a commit"
    DECISIONS_PAUSED_LEADER_KILLED = "broker of the decisions paused, leader killed after a commit"
    DECISIONS_ISOLATED_LEADER_KILLED = "broker of the decisions isolated, leader killed after a commit"
    DEPOSED_ASKED_FIRST = "deposed broker asked first by the next leader"
    COORDINATOR_KILLED = "coordinator killed between a transaction's end and its markers"
    TOO_FEW_COPIES = "a topic's in-sync copies below the least"
    BROKER_SILENT = "packets to one broker lost"
    CLOCK_AHEAD = "a broker's clock an hour ahead"
    CLOCK_BEHIND = "a broker's clock an hour behind"
    CLOCKS_APART = "clocks an hour apart while partitions move"
    PARTITIONS_MOVED = "partitions reassigned and led by others"
    BROKERS_RESTARTED = "brokers restarted one after the other"
    DISK_FULL = "a broker's disk full"
    LEADER_WITHOUT_ONE_BROKER = "leader cut off from one broker"
    NODE_WITHOUT_TABLE = "node cut off from the broker of the table, and heard"
    LEASE_STORE_OLDER = "lease store failed over to a copy without the last writes"
    LOAD_FOLLOWER_KILLED = "broker killed that only follows, and only load reports"


BROKER_WEIGHTS: Final[Mapping[Enum, int]] = {
    **dict.fromkeys(BrokerFaultKind, 4),
    **dict.fromkeys(FaultKind, 1),
    FaultKind.LEADER_AND_NODE_KILLED: 4,
}
"""How often each comes on several brokers."""

WRONG_CLOCKS: Final = frozenset(
    {BrokerFaultKind.CLOCK_AHEAD, BrokerFaultKind.CLOCK_BEHIND, BrokerFaultKind.CLOCKS_APART}
)
"""Append times say nothing of how long these took."""

WITH_FOUR_BROKERS: Final = frozenset({BrokerFaultKind.LOAD_FOLLOWER_KILLED})
"""These ask for a broker that three copies of everything else can do without."""


def weights_with(brokers: int) -> dict[Enum, int]:
    """How often each kind comes with that many brokers, several of them."""
    return {kind: weight for kind, weight in BROKER_WEIGHTS.items() if brokers > 3 or kind not in WITH_FOUR_BROKERS}
