"""The nodes of an exploration of handoffs: what they have read, what they serve by that, and what they say they did."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, NamedTuple

from controlplane.core.bundles.bundle import Bundle
from controlplane.core.bundles.ownership_state import OwnershipState
from controlplane.core.bundles.reports import BundleStep, BundleStepReport
from controlplane.core.membership.inputs import Heartbeat
from controlplane.core.membership.node import NodeRole
from controlplane.core.slots.reports import ReleasedSlots, grouped, runs_of
from controlplane.core.slots.table import Slot
from controlplane.core.values.identifiers import Epoch, Incarnation, NodeId
from controlplane.core.values.replica_status import ReplicaStatus

_STEP_OF: Final = {
    OwnershipState.RELEASING: BundleStep.RELEASED,
    OwnershipState.ASSIGNING: BundleStep.OPENED,
    OwnershipState.SPLITTING: BundleStep.DIVIDED,
}
_SERVING: Final = frozenset({OwnershipState.OWNED, OwnershipState.SPLITTING})


class Reading(NamedTuple):
    """The rows that a node has read, and the epoch of their table."""

    epoch: Epoch = Epoch(0)
    bundles: tuple[Bundle, ...] = ()
    slots: tuple[Slot, ...] = ()


_NOTHING_READ: Final = Reading()


@dataclass(frozen=True)
class Process:
    """The process of a node.

    Attributes:
        incarnation: of the process.
        lives: whether it has not died.
        is_first: whether no process of the node has died before.
        reading: what it has read last.
        is_valid: whether it may serve by that.
    """

    incarnation: Incarnation
    lives: bool = True
    is_first: bool = True
    reading: Reading = _NOTHING_READ
    is_valid: bool = True


def heartbeat_of(name: NodeId, process: Process, now_ms: int) -> Heartbeat:
    """A heartbeat that reports what a node has done by the table that it has read."""
    steps = [
        BundleStepReport(each.bundle_id, each.version, _STEP_OF[each.ownership_state], _bounds_of(each))
        for each in process.reading.bundles
        if each.ownership_state in _STEP_OF
        and name == (each.next_owner if each.ownership_state is OwnershipState.ASSIGNING else each.owner)
    ]
    held = [slot for slot in process.reading.slots if name in slot.replicas]
    told = [slot for slot in held if slot.leader == name and slot.next_leader is not None]
    return Heartbeat(
        name,
        process.incarnation,
        now_ms,
        process.reading.epoch,
        NodeRole.DATA,
        slot_groups=grouped((slot.slot_id, ReplicaStatus.HEALTHY, now_ms) for slot in held),
        bundle_steps=tuple(steps),
        released_slots=tuple(ReleasedSlots(slot.release_epoch, runs_of([slot.slot_id])) for slot in told),
    )


def _bounds_of(bundle: Bundle) -> tuple[int, ...]:
    """The bounds that an owner finds where it is asked for them: the middle."""
    if bundle.ownership_state is not OwnershipState.SPLITTING or bundle.children:
        return ()
    return ((bundle.lower + bundle.upper) // 2,)


def overlap_of(processes: Mapping[NodeId, Process]) -> str:
    """Which of the nodes serve the same by what they have read; empty if none do."""
    serving = [(name, each.reading) for name, each in processes.items() if each.lives and each.is_valid]
    parts = [
        (each.lower, each.end, name)
        for name, reading in serving
        for each in reading.bundles
        if each.ownership_state in _SERVING and each.owner == name
    ]
    for (_, end, name), (lower, _, other) in pairwise(sorted(parts)):
        if lower < end:
            return f"{name} and {other} serve the same hashes"
    leaders = [
        name for name, reading in serving for slot in reading.slots if slot.leader == name and slot.next_leader is None
    ]
    return f"{' and '.join(leaders)} serve the slot" if len(leaders) > 1 else ""
