"""The rows of the machine of handoffs, named alike where they are counted and where a search uses them.

What may follow in good order stands in the table of Pulsar's ownership channel. A forced row may follow any other:
``live_rows`` says what they are for, and here stands from which states they lead. A slot's handoff is prepared, or
released, or there is none.
"""

from collections.abc import Iterator
from typing import Final

from controlplane.core.bundles.bundle import Bundle
from controlplane.core.bundles.events import BundlesAssigned, BundleSplit, NamespaceCreated, NamespaceDeleted
from controlplane.core.bundles.ownership_channel.states import NEXT_STATES, Storage
from controlplane.core.bundles.ownership_state import OwnershipState
from controlplane.core.log.decision import CauseKind, Decision
from controlplane.core.log.state import State
from controlplane.core.slots.events import SlotHandoffsChanged, SlotHandoffsEnded, SlotsAssigned
from controlplane.core.slots.handoffs import SlotHandoff
from controlplane.core.slots.table import Slot

FREE, OWNED, ASSIGNING, RELEASING, SPLITTING, DELETED = (
    OwnershipState.FREE,
    OwnershipState.OWNED,
    OwnershipState.ASSIGNING,
    OwnershipState.RELEASING,
    OwnershipState.SPLITTING,
    OwnershipState.DELETED,
)
_IN_ORDER: Final = NEXT_STATES[Storage.METADATA_STORE]
_LIVE: Final = (FREE, OWNED, ASSIGNING, RELEASING, SPLITTING)
_FORCED: Final = {
    "taken by another node": (FREE, OWNED, ASSIGNING, RELEASING, SPLITTING),
    "taken by a new process": (OWNED, RELEASING, SPLITTING),
    "lost": (OWNED, ASSIGNING, RELEASING, SPLITTING),
    "assigned again": (ASSIGNING,),
    "given up": (SPLITTING,),
}
NO_HANDOFF, PREPARING, RELEASED = "no handoff", "prepare", "release"
WITHOUT_DATA: Final = "release without the data"
_DEATHS_OF_BUNDLES: Final = {
    "old owner": (OWNED, RELEASING, ASSIGNING, SPLITTING),
    "next owner": (RELEASING, ASSIGNING),
    "leader": _LIVE,
}


def rows_of_bundles() -> set[str]:
    """Every row of the machine of bundles, and a death of everybody concerned in each state."""
    in_order = {_row(before, after.value) for before in _LIVE for after in _IN_ORDER[before]}
    forced = {_row(before, what) for what, states in _FORCED.items() for before in states}
    releases = {"bundle Releasing: as its owner says", "bundle Releasing: as its time is over"}
    deaths = {death_row("bundle", state.value, who) for who, states in _DEATHS_OF_BUNDLES.items() for state in states}
    return in_order | forced | releases | deaths | {"bundle: its namespace ends"}


def rows_of_slots() -> set[str]:
    """Every row of the machine of slots, and a death of everybody concerned in each phase."""
    changes = {(NO_HANDOFF, PREPARING), (NO_HANDOFF, RELEASED), (PREPARING, RELEASED)}
    ends = {(RELEASED, "as its leader says"), (RELEASED, "as its time is over"), (PREPARING, WITHOUT_DATA)}
    ends |= {(phase, end) for phase in (PREPARING, RELEASED) for end in ("its leader is lost", "ended")}
    deaths = {
        death_row("slot", phase, who)
        for phase in (NO_HANDOFF, PREPARING, RELEASED)
        for who in ("old owner", "leader", *(("next owner",) if phase != NO_HANDOFF else ()))
    }
    return {_slot_row(before, after) for before, after in changes | ends} | deaths


def death_row(kind: str, phase: str, who: str) -> str:
    """Somebody dies while a bundle or a slot is in a state or phase."""
    return f"{kind} {phase}: {who} dies"


def phase_of(handoff: SlotHandoff | None) -> str:
    """The phase of a slot's handoff."""
    if handoff is None:
        return NO_HANDOFF
    return RELEASED if handoff.releases else PREPARING


def rows_of_decision(before: State, decision: Decision, after: State) -> Iterator[str]:
    """The rows that a decision uses."""
    bundles = dict(before.bundles.by_id)
    said = " ".join(cause.evidence for cause in decision.causes if cause.kind is CauseKind.BUNDLES_HANDED_OFF)
    for event in decision.events:
        match event:
            case BundlesAssigned(bundles=rows):
                for row in rows:
                    yield from _rows_of_step(bundles[row.bundle_id], row, said)
                    bundles[row.bundle_id] = row
            case BundleSplit(bundle_id=bundle_id, children=children):
                yield _row(bundles[bundle_id].ownership_state, DELETED.value)
                bundles |= {child.bundle_id: child for child in children}
            case NamespaceCreated(bundles=created):
                bundles |= {bundle.bundle_id: bundle for bundle in created}
            case NamespaceDeleted():
                yield "bundle: its namespace ends"
            case _:
                pass
    yield from _rows_of_slots(before, decision, after)


def _rows_of_step(before: Bundle, row: Bundle, said: str) -> Iterator[str]:
    state = before.ownership_state
    if not row.is_forced:
        yield _row(state, row.ownership_state.value)
    elif row.ownership_state is ASSIGNING:
        yield _row(state, "assigned again")
    elif row.owner is None:
        yield _row(state, "lost")
    elif row.owner != before.owner:
        yield _row(state, "taken by another node")
    else:
        yield _row(state, "given up" if row.owner_epoch == before.owner_epoch else "taken by a new process")
    if state is RELEASING and row.owner is None:
        is_taken = f"{row.bundle_id} is taken" in said
        yield f"bundle Releasing: {'as its time is over' if is_taken else 'as its owner says'}"


def _rows_of_slots(before: State, decision: Decision, after: State) -> Iterator[str]:
    handoffs = dict(before.slots.handoffs.items())
    said = " ".join(cause.evidence for cause in decision.causes)
    for event in decision.events:
        match event:
            case SlotHandoffsChanged(handoffs=changed):
                for handoff in changed:
                    is_without = f"slot {handoff.slot_id} moves without its data" in said
                    phase = WITHOUT_DATA if is_without else phase_of(handoff)
                    yield _slot_row(phase_of(handoffs.get(handoff.slot_id)), phase)
                    handoffs[handoff.slot_id] = handoff
            case SlotHandoffsEnded(slot_ids=slot_ids):
                for slot_id in slot_ids:
                    yield _slot_row(phase_of(handoffs.pop(slot_id)), "ended")
            case SlotsAssigned(slots=slots):
                for slot in slots:
                    under_way = handoffs.pop(slot.slot_id, None)
                    if under_way is not None and before.slots.rows[slot.slot_id].leader != slot.leader:
                        yield _slot_row(phase_of(under_way), _why(before, after, slot, said))
            case _:
                pass


def _why(before: State, after: State, slot: Slot, said: str) -> str:
    """Why the leadership of a slot goes to another node in the middle of a handoff."""
    name = before.slots.rows[slot.slot_id].leader or ""
    was, is_now = before.membership.nodes[name], after.membership.nodes[name]
    if not is_now.lives or is_now.incarnation != was.incarnation:
        return "its leader is lost"
    return "as its time is over" if f"slot {slot.slot_id} is taken" in said else "as its leader says"


def _row(before: OwnershipState, after: str) -> str:
    return f"bundle {before.value} -> {after}"


def _slot_row(before: str, after: str) -> str:
    return f"slot {before} -> {after}"
