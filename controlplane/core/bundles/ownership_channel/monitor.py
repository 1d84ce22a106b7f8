"""The leader's search for ownership that is stuck (Pulsar's monitorOwnerships)."""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple

from controlplane.core.bundles.ownership_channel.lost_nodes import MetadataState
from controlplane.core.bundles.ownership_channel.record import OwnershipRecord, is_blank
from controlplane.core.bundles.ownership_channel.settings import OwnershipSettings
from controlplane.core.bundles.ownership_state import OwnershipState

_MS_PER_S: Final = 1_000


class MonitorSkip(Enum):
    """Why the table is not searched."""

    NOT_LEADER = "not-leader"
    NO_NODES = "no-nodes"
    """The registry is empty, or cannot be read."""
    NOT_STABLE = "not-stable"
    """The registry cannot be believed: the leader's session was lost lately."""


class OldRecord(NamedTuple):
    """A bundle whose record is too old: its age, and the limit that it exceeds."""

    bundle_id: str
    age_ms: int
    limit_ms: int


class InactiveNode(NamedTuple):
    """A node that is not in the registry, and the bundles whose records name it, in the order of the table."""

    node_id: str
    bundle_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Findings:
    """What the leader has to do.

    Attributes:
        skip: why the table was not searched; None if it was.
        inactive: nodes to be treated like ones that have just disappeared (``lost_nodes.on_node_deleted``).
        stuck: bundles whose change goes on for too long although all nodes live, and bundles that are *Owned*
            without an owner. Each gets another owner (``cleanup.override``), chosen among all nodes.
        forgotten: bundles that have had no owner for long. Their records are deleted.
    """

    skip: MonitorSkip | None = None
    inactive: tuple[InactiveNode, ...] = ()
    stuck: tuple[OldRecord, ...] = ()
    forgotten: tuple[OldRecord, ...] = ()


def find_stuck(
    records: Mapping[str, OwnershipRecord],
    live_nodes: AbstractSet[str],
    now_ms: int,
    settings: OwnershipSettings,
    state: MetadataState,
    *,
    is_leader: bool,
) -> Findings:
    """Search the table.

    A bundle of a lost node is left to the clean-up of that node, however old its record is. Where the source and the
    destination are lost, the source comes first; the other one is found in the next search, if it is still named.

    Args:
        records: the table.
        live_nodes: the nodes in the registry.
        now_ms: the leader's clock. Ages are differences to the clocks of the nodes that wrote the records.
        settings: the limits.
        state: the leader's connection with the metadata store.
        is_leader: whether this node owns the ownership channel.
    """
    skip = _skip(live_nodes, state, is_leader=is_leader)
    if skip is not None:
        return Findings(skip)
    inactive: dict[str, list[str]] = {}
    stuck: list[OldRecord] = []
    forgotten: list[OldRecord] = []
    for bundle_id, record in records.items():
        lost = _lost_node(record, live_nodes)
        if lost is not None:
            inactive.setdefault(lost, []).append(bundle_id)
            continue
        age_ms = now_ms - record.timestamp_ms
        if record.state is OwnershipState.OWNED and is_blank(record.destination):
            stuck.append(OldRecord(bundle_id, age_ms, 0))
        elif record.state.is_in_flight and age_ms > settings.in_flight_ms:
            stuck.append(OldRecord(bundle_id, age_ms, settings.in_flight_ms))
        elif not record.state.is_active and age_ms > settings.tombstone_delay_s * _MS_PER_S:
            forgotten.append(OldRecord(bundle_id, age_ms, settings.tombstone_delay_s * _MS_PER_S))
    nodes = tuple(InactiveNode(node_id, tuple(bundle_ids)) for node_id, bundle_ids in inactive.items())
    return Findings(None, nodes, tuple(stuck), tuple(forgotten))


def _skip(live_nodes: AbstractSet[str], state: MetadataState, *, is_leader: bool) -> MonitorSkip | None:
    if not is_leader:
        return MonitorSkip.NOT_LEADER
    if not live_nodes:
        return MonitorSkip.NO_NODES
    return None if state is MetadataState.STABLE else MonitorSkip.NOT_STABLE


def _lost_node(record: OwnershipRecord, live_nodes: AbstractSet[str]) -> str | None:
    """The node that has to act or to serve, and is not in the registry; None if all of them are."""
    if record.state is OwnershipState.OWNED:
        needed: tuple[str | None, ...] = (record.destination,)
    elif record.state.is_in_flight:
        needed = (record.source, record.destination)
    else:
        return None
    return next((each for each in needed if each is not None and not is_blank(each) and each not in live_nodes), None)
