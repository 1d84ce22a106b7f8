"""What operators can ask for the slot table: pins and exclusions, a new plan at once, a pause."""

from controlplane.core.asked import Answer, Arguments, Circumstances, done, refused, unknown_node, unless_contradicting
from controlplane.core.decision import CauseKind
from controlplane.core.draft import Draft
from controlplane.core.events import (
    PlanDropped,
    ReconciliationPaused,
    ReconciliationResumed,
    SlotsExcluded,
    SlotsIncluded,
    SlotsPinned,
    SlotsUnpinned,
)
from controlplane.core.orders import Exclusion, Pin
from controlplane.core.records import REASON, TRUE
from controlplane.core.slot_numbers import parse_slots, slot_ranges
from controlplane.core.state import State
from controlplane.errors import ConfigurationError


def pin_slots(draft: Draft, arguments: Arguments, _: Circumstances) -> Answer:
    """Keep replicas of some slots on a node."""
    state, name = draft.state, arguments["node"]
    if name not in state.nodes:
        return unknown_node(state, name)
    leads = arguments.get("leads", "") == TRUE
    try:
        slots = parse_slots(arguments["slots"], len(state.slots))
    except ConfigurationError as error:
        return refused(str(error))
    known = frozenset(state.pins)
    pins = [pin for slot_id in slots if (pin := Pin(slot_id, name, leads)) not in known]
    detail = f"slots {slot_ranges(slots, ', ')} are pinned to {name!r}" + (", which leads them" if leads else "")
    if not pins:
        return done(f"{detail} already")
    if not state.nodes[name].lives:
        detail += f"; it is {state.nodes[name].status.value}: the pins sleep until it joins again"
    return unless_contradicting(draft, [SlotsPinned(tuple(pins))], detail)


def unpin_slots(draft: Draft, arguments: Arguments, _: Circumstances) -> Answer:
    """Take pins back."""
    state, name = draft.state, arguments["node"]
    try:
        slots = set(parse_slots(arguments["slots"], len(state.slots)))
    except ConfigurationError as error:
        return refused(str(error))
    pins = tuple(pin for pin in state.pins if pin.node_id == name and pin.slot_id in slots)
    if not pins:
        return _nothing_stands(state, name, f"no such slot is pinned to {name!r}", [pin.slot_id for pin in state.pins])
    draft.add(SlotsUnpinned(pins))
    return done(f"slots {slot_ranges((pin.slot_id for pin in pins), ', ')} are no longer pinned to {name!r}")


def exclude_slots(draft: Draft, arguments: Arguments, _: Circumstances) -> Answer:
    """Forbid a node to hold some slots."""
    state, name = draft.state, arguments["node"]
    if name not in state.nodes:
        return unknown_node(state, name)
    try:
        slots = parse_slots(arguments["slots"], len(state.slots))
    except ConfigurationError as error:
        return refused(str(error))
    known = set(state.exclusions)
    exclusions = [each for slot_id in slots if (each := Exclusion(slot_id, name)) not in known]
    detail = f"{name!r} does not hold slots {slot_ranges(slots, ', ')}"
    if not exclusions:
        return done(f"{detail} already")
    return unless_contradicting(draft, [SlotsExcluded(tuple(exclusions))], detail)


def include_slots(draft: Draft, arguments: Arguments, _: Circumstances) -> Answer:
    """Take exclusions of slots back."""
    state, name = draft.state, arguments["node"]
    try:
        slots = set(parse_slots(arguments["slots"], len(state.slots)))
    except ConfigurationError as error:
        return refused(str(error))
    taken = tuple(each for each in state.exclusions if each.node_id == name and each.slot_id in slots)
    if not taken:
        known = [each.slot_id for each in state.exclusions]
        return _nothing_stands(state, name, f"{name!r} is excluded from no such slot", known)
    draft.add(SlotsIncluded(taken))
    return done(f"{name!r} may hold slots {slot_ranges((each.slot_id for each in taken), ', ')} again")


def refresh_table(draft: Draft, _: Arguments, __: Circumstances) -> Answer:
    """Plan at once, and write every row of the routing table again."""
    if not draft.refresh:
        draft.because(CauseKind.TABLE_REPUBLISHED, draft.state.log_id, "an operator asks for it")
        draft.refresh = True
    detail = f"every row is written again, under epoch {draft.epoch}"
    return done(f"{detail}; nothing is planned: reconciliation is paused" if draft.state.paused else detail)


def pause_reconciliation(draft: Draft, arguments: Arguments, _: Circumstances) -> Answer:
    """Move no slot until this is taken back."""
    if draft.state.paused:
        return done("reconciliation is paused already")
    draft.add(ReconciliationPaused(arguments.get(REASON, "")))
    if draft.state.plan is not None:
        draft.add(PlanDropped(draft.state.plan.plan_id, "reconciliation is paused"))
    return done("reconciliation is paused: no slot moves; the dead are taken out of the table all the same")


def resume_reconciliation(draft: Draft, arguments: Arguments, _: Circumstances) -> Answer:
    """Plan slots again, at once."""
    if not draft.state.paused:
        return done("reconciliation is not paused")
    draft.add(ReconciliationResumed(arguments.get(REASON, "")))
    return done("reconciliation goes on")


def _nothing_stands(state: State, name: str, detail: str, known: list[int]) -> Answer:
    """Nothing to take back: right if the node is known, else the name is likely a wrong one."""
    if name in state.nodes:
        return done(detail)
    return refused(f"{detail}; slots with such an order are {slot_ranges(set(known), ', ') or 'none'}")
