"""Operations on the slot table: pins and exclusions, an immediate plan, a pause."""

from dataclasses import replace
from typing import Final

from controlplane.core.intents.intent import FALSE, REASON, TRUE, IntentKind
from controlplane.core.log.decision import CauseKind
from controlplane.core.log.draft import Draft
from controlplane.core.log.state import State
from controlplane.core.membership.node import NodeStatus
from controlplane.core.operations.answers import (
    Answer,
    and_kept,
    done,
    gone,
    refused,
    unknown_node,
    unless_contradicting,
)
from controlplane.core.operations.arguments import NODE, SLOTS, Argument, check_one_of
from controlplane.core.operations.intent_conflicts import cluster_goal, no_goals, slot_goals
from controlplane.core.operations.operation import Operation, Turn
from controlplane.core.operations.operation_context import Arguments, OperationContext
from controlplane.core.operations.slot_numbers import named_slots, parse_slots
from controlplane.core.slots.events import (
    PlanDropped,
    ReconciliationPaused,
    ReconciliationResumed,
    SlotHandoffsEnded,
    SlotsExcluded,
    SlotsIncluded,
    SlotsPinned,
    SlotsUnpinned,
)
from controlplane.core.slots.pins import Exclusion, Pin
from controlplane.core.slots.policy_contract import OrderKind
from controlplane.core.values.events import FIRST_LEVEL
from controlplane.errors import ConfigurationError


def pin_slots(draft: Draft, arguments: Arguments, _: OperationContext) -> Answer:
    """Pin slots to a node."""
    state, name = draft.state, arguments["node"]
    if name not in state.membership.nodes:
        return unknown_node(state, name)
    leads = arguments.get("leads", "") == TRUE
    try:
        slots = parse_slots(arguments["slots"], len(state.slots.table))
    except ConfigurationError as error:
        return refused(str(error))
    known = frozenset(state.slots.pins)
    pins = [pin for slot_id in slots if (pin := Pin(slot_id, name, leads)) not in known]
    one = len(slots) == 1
    detail = f"{named_slots(slots)} {'is' if one else 'are'} pinned to {name!r}"
    detail += f", which leads {'it' if one else 'them'}" if leads else ""
    if not pins:
        return done(f"{detail} already")
    detail += _why_idle(state, name)
    return unless_contradicting(draft, [SlotsPinned(tuple(pins))], detail)


def unpin_slots(draft: Draft, arguments: Arguments, _: OperationContext) -> Answer:
    """End pins of slots to a node."""
    state, name = draft.state, arguments["node"]
    try:
        slots = set(parse_slots(arguments["slots"], len(state.slots.table)))
    except ConfigurationError as error:
        return refused(str(error))
    pins = tuple(pin for pin in state.slots.pins if pin.node_id == name and pin.slot_id in slots)
    if not pins:
        detail = f"none of these slots is pinned to {name!r}"
        return _nothing_stands(state, name, detail, "pinned", [pin.slot_id for pin in state.slots.pins])
    draft.add(SlotsUnpinned(pins))
    are = "is" if len(pins) == 1 else "are"
    return done(f"{named_slots(pin.slot_id for pin in pins)} {are} no longer pinned to {name!r}")


def exclude_slots(draft: Draft, arguments: Arguments, context: OperationContext) -> Answer:
    """Exclude a node from holding some slots."""
    state, name = draft.state, arguments["node"]
    if name not in state.membership.nodes:
        return unknown_node(state, name)
    try:
        slots = parse_slots(arguments["slots"], len(state.slots.table))
    except ConfigurationError as error:
        return refused(str(error))
    known = set(state.slots.exclusions)
    exclusions = [each for slot_id in slots if (each := Exclusion(slot_id, name)) not in known]
    detail = f"{name!r} does not hold {named_slots(slots)}"
    if not exclusions:
        return done(f"{detail} already")
    answer = unless_contradicting(draft, [SlotsExcluded(tuple(exclusions))], detail)
    return and_kept(answer, draft.state, name, context)


def include_slots(draft: Draft, arguments: Arguments, _: OperationContext) -> Answer:
    """End exclusions of slots."""
    state, name = draft.state, arguments["node"]
    try:
        slots = set(parse_slots(arguments["slots"], len(state.slots.table)))
    except ConfigurationError as error:
        return refused(str(error))
    taken = tuple(each for each in state.slots.exclusions if each.node_id == name and each.slot_id in slots)
    if not taken:
        known = [each.slot_id for each in state.slots.exclusions]
        return _nothing_stands(state, name, f"{name!r} is excluded from none of these slots", "excluded", known)
    draft.add(SlotsIncluded(taken))
    return done(f"{name!r} may hold {named_slots(each.slot_id for each in taken)} again")


def refresh_table(draft: Draft, _: Arguments, __: OperationContext) -> Answer:
    """Plan at once, and write every row of the routing table again."""
    if not draft.refresh:
        draft.because(CauseKind.TABLE_REPUBLISHED, draft.state.log_id, "an operator asks for it")
        draft.refresh = True
    detail = f"every row is written again, under epoch {draft.epoch}"
    return done(f"{detail}; nothing is planned: reconciliation is paused" if draft.state.slots.paused else detail)


def pause_reconciliation(draft: Draft, arguments: Arguments, _: OperationContext) -> Answer:
    """Pause reconciliation: no slot moves until it is resumed."""
    if draft.state.slots.paused:
        return done("reconciliation is paused already")
    draft.add(ReconciliationPaused(arguments.get(REASON, "")))
    if draft.state.slots.handoffs:
        draft.add(SlotHandoffsEnded(tuple(draft.state.slots.handoffs)))
    if draft.state.slots.plan is not None:
        draft.add(PlanDropped(draft.state.slots.plan.plan_id, "reconciliation is paused"))
    return done("reconciliation is paused: no slot moves; the dead are taken out of the table all the same")


def resume_reconciliation(draft: Draft, arguments: Arguments, _: OperationContext) -> Answer:
    """Resume reconciliation: slots are planned again, immediately."""
    if not draft.state.slots.paused:
        return done("reconciliation is not paused")
    draft.add(ReconciliationResumed(arguments.get(REASON, "")))
    return done("reconciliation goes on")


def _why_idle(state: State, name: str) -> str:
    """The part of an answer that says why pins to a node have no effect yet; empty if they have one."""
    node = state.membership.nodes[name]
    if not node.lives:
        return f"; it {gone(node)}: the pins have no effect until it joins again"
    if name in state.membership.owner_ids:
        return ""
    if state.membership.order(name).excluded:
        return "; it is excluded: the pins have no effect until it is included again"
    if node.status is NodeStatus.DRAINING:
        return "; it drains: the pins have no effect until it is undrained"
    return ""


def _nothing_stands(state: State, name: str, detail: str, what: str, known: list[int]) -> Answer:
    """The answer if there is nothing to end: done for a known node; refused for an unknown, maybe mistyped one."""
    if name in state.membership.nodes:
        return done(detail)
    verb = "is" if len(set(known)) == 1 else "are"
    return refused(f"{detail}; {what} {verb} {named_slots(known) if known else 'none'}")


TABLE_OPERATIONS: Final = (
    Operation(
        kind=IntentKind.PIN_SLOTS,
        summary="Pin slots to a node: the node keeps a replica of each.",
        carry_out=pin_slots,
        arguments=(
            replace(SLOTS, order=OrderKind.PINS),
            NODE,
            Argument(
                name="leads",
                meaning="`true` if the node also has to lead the slots",
                required=False,
                check=check_one_of("leads", TRUE, FALSE),
                order=None,
            ),
        ),
        check_settings=None,
        goals=slot_goals("pinned", value=True, excludes="barred"),
        turn=Turn.IN_ORDER,
        feature_level=FIRST_LEVEL,
        command="table pin SLOTS NODE [--leads]",
        supposition="pin SLOTS NODE [leads]",
    ),
    Operation(
        kind=IntentKind.UNPIN_SLOTS,
        summary="End pins of slots to a node.",
        carry_out=unpin_slots,
        arguments=(SLOTS, NODE),
        check_settings=None,
        goals=slot_goals("pinned", value=False, excludes=None),
        turn=Turn.IN_ORDER,
        feature_level=FIRST_LEVEL,
        command="table unpin SLOTS NODE",
        supposition="unpin SLOTS NODE",
    ),
    Operation(
        kind=IntentKind.EXCLUDE_SLOTS,
        summary="Exclude a node from holding some slots.",
        carry_out=exclude_slots,
        arguments=(replace(SLOTS, order=OrderKind.SLOT_EXCLUSIONS), NODE),
        check_settings=None,
        goals=slot_goals("barred", value=True, excludes="pinned"),
        turn=Turn.IN_ORDER,
        feature_level=FIRST_LEVEL,
        command="table exclude SLOTS NODE",
        supposition="exclude SLOTS NODE",
    ),
    Operation(
        kind=IntentKind.INCLUDE_SLOTS,
        summary="End exclusions of slots from a node.",
        carry_out=include_slots,
        arguments=(SLOTS, NODE),
        check_settings=None,
        goals=slot_goals("barred", value=False, excludes=None),
        turn=Turn.IN_ORDER,
        feature_level=FIRST_LEVEL,
        command="table include SLOTS NODE",
        supposition="include SLOTS NODE",
    ),
    Operation(
        kind=IntentKind.REFRESH_TABLE,
        summary="Plan at once, and write every row of the routing table again under a new epoch.",
        carry_out=refresh_table,
        arguments=(),
        check_settings=None,
        goals=no_goals,
        turn=Turn.IN_ORDER,
        feature_level=FIRST_LEVEL,
        command="table refresh",
        supposition="",
    ),
    Operation(
        kind=IntentKind.PAUSE_RECONCILIATION,
        summary="Pause reconciliation: until it is resumed, only dead nodes are taken out of the table.",
        carry_out=pause_reconciliation,
        arguments=(),
        check_settings=None,
        goals=cluster_goal("paused", value=True),
        turn=Turn.IN_ORDER,
        feature_level=FIRST_LEVEL,
        command="table pause",
        supposition="pause",
    ),
    Operation(
        kind=IntentKind.RESUME_RECONCILIATION,
        summary="Resume reconciliation.",
        carry_out=resume_reconciliation,
        arguments=(),
        check_settings=None,
        goals=cluster_goal("paused", value=False),
        turn=Turn.IN_ORDER,
        feature_level=FIRST_LEVEL,
        command="table resume",
        supposition="resume",
    ),
)
