"""The arranger's ticks as the decision log records them: the inputs of each, and the resulting table.

All inputs come from the log: the table and the nodes from the state, and whether every slot was in sync from the
action, because only balancing requires it.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from controlplane.core.cluster.events import PolicyChanged, TermOpened
from controlplane.core.log.decision import CauseKind, Decision
from controlplane.core.log.events import Event
from controlplane.core.log.state import State
from controlplane.core.membership.events import renewed_by
from controlplane.core.slots.events import PolicyRemembered, SlotsAssigned
from controlplane.core.slots.policies.sofa import POLICY_NAME, REFRESH, known_nodes, sofa_options
from controlplane.core.slots.policies.sofa_memory import TABLE_ENTRY, greatest_epoch, sofa_table, with_ranks
from controlplane.core.slots.sofa.arranger import ArrangeSettings, TickAction, arrange
from controlplane.core.slots.sofa.force_refresh import round_robin
from controlplane.core.slots.sofa.table import SofaTable
from controlplane.core.slots.table import Slot, raise_leader_epochs
from controlplane.core.values.events import calls_for_owners
from controlplane.core.values.identifiers import NodeId
from controlplane.core.verification.order_verification import split_table
from controlplane.errors import PlacementRefusedError

REFUSED: Final = "refused"
"""The action of a tick that threw an exception."""


@dataclass(frozen=True, slots=True)
class RecordedTick:
    """One tick.

    Attributes:
        action: the name of a :class:`TickAction`, ``refresh`` or ``refused``, as the decision says.
        before: the table before it.
        nodes: the data nodes that it was given, in that order.
        settings: the cluster's settings.
        stable: whether every slot was in sync, as far as the tick used that.
        published: whether the decision changes more than the leader epochs of rows whose leaders are renewed.
        after: the table after it.
        refresh: whether it was a refresh on an operator's request instead of a tick.
    """

    action: str
    before: SofaTable
    nodes: tuple[NodeId, ...]
    settings: ArrangeSettings
    stable: bool
    published: bool
    after: SofaTable
    refresh: bool = False


def recorded_tick(before: State, decision: Decision, after: State, living: Sequence[NodeId]) -> RecordedTick | None:
    """The tick of a decision; None if it had none.

    Args:
        before: the state before the decision.
        decision: the decision.
        after: the state after it.
        living: the nodes that may hold slots after it, by name.
    """
    action = _action(decision)
    if after.cluster.policy.slot_policy != POLICY_NAME or action is None:
        return None
    renewed = renewed_by(decision.events)
    options = sofa_options(after.cluster.policy.slot_policy_options)
    # The memory of another policy does not count. A decision may also have switched to another policy and back.
    changes = [event.policy for event in decision.events if isinstance(event, PolicyChanged)]
    rules_on = all(policy.slot_policy == POLICY_NAME for policy in (before.cluster.policy, *changes))
    memory = before.slots.memory if rules_on else {}
    begun = split_table(before, decision)
    return RecordedTick(
        action,
        sofa_table(begun, memory, before.epoch),
        tuple(known_nodes(living, renewed, begun)),
        options.settings(after.cluster.policy.slot_count, after.cluster.policy.replica_count),
        action == TickAction.BALANCE.value,
        _is_published(decision, raise_leader_epochs(begun, renewed, decision.epoch)),
        # Before its first tick the arranger has no epochs of its own, and our epochs change for other reasons. Entries
        # of slots alone may stand in the memory before.
        sofa_table(
            after.slots.table, after.slots.memory, after.epoch if TABLE_ENTRY in after.slots.memory else before.epoch
        ),
        _is_refresh(decision),
    )


def _is_published(decision: Decision, kept: Sequence[Slot]) -> bool:
    """Whether a decision changes more than the leader epochs of rows whose leaders are renewed.

    Args:
        decision: the decision.
        kept: the table if it changes only these.
    """
    rows = (slot for event in decision.events if isinstance(event, SlotsAssigned) for slot in event.slots)
    entries = (entry for event in decision.events if isinstance(event, PolicyRemembered) for entry in event.entries)
    return any(slot != kept[slot.slot_id] for slot in rows) or any(entry.name == TABLE_ENTRY for entry in entries)


def _calls_for_a_tick(event: Event) -> bool:
    """Whether a decision with this event asks the arranger, as pins and exclusions do although it ignores them."""
    return calls_for_owners(event) or isinstance(event, SlotsAssigned)


def _is_refresh(decision: Decision) -> bool:
    """Whether an operator asked for a refresh. A new term or a repair that publishes the table again is no refresh."""
    republished = any(cause.kind is CauseKind.TABLE_REPUBLISHED for cause in decision.causes)
    return republished and bool(decision.events) and not any(isinstance(each, TermOpened) for each in decision.events)


def _action(decision: Decision) -> str | None:
    for cause in decision.causes:
        if cause.kind is CauseKind.SLOTS_ARRANGED:
            return cause.evidence.partition(":")[0]
        if cause.kind is CauseKind.PLACEMENT_REFUSED:
            return REFUSED
    return None


def tick_complaints(before: State, decision: Decision, after: State, living: Sequence[NodeId]) -> list[str]:
    """Violations by what a decision says and does about the slot table, as sentences; see :func:`recorded_tick`."""
    tick = recorded_tick(before, decision, after, living)
    if tick is None:
        silent = [type(event).__name__ for event in decision.events if _calls_for_a_tick(event)]
        silent += ["a refresh"] if _is_refresh(decision) else []
        return [f"{name} without a cause that says what the arranger did" for name in dict.fromkeys(silent)]
    action, wanted = _answer(tick)
    if action != tick.action:
        return [f"it says that the arranger's tick was {tick.action!r}, by table and nodes it has to be {action!r}"]
    if tick.published != (wanted != tick.before) or tick.after != wanted:
        changed = [slot_id for slot_id, slot in wanted.slots.items() if tick.after.slots.get(slot_id) != slot]
        return [f"the arranger's tick {action!r} gives another table: {len(changed)} slots differ: {changed[:10]}"]
    return []


def _answer(tick: RecordedTick) -> tuple[str, SofaTable]:
    """The action and the table that the arranger returns for the inputs of a tick."""
    settings = tick.settings
    mint = itertools.count(greatest_epoch(tick.before) + 1).__next__
    try:
        if tick.refresh:
            made = round_robin(tick.nodes, settings.slot_count, settings.replicas, mint)
            made.check()
            return REFRESH, with_ranks(made, tick.before)
        answer = arrange(tick.before, tick.nodes, settings, mint, stable=tick.stable)
    except PlacementRefusedError:
        return REFUSED, tick.before
    return answer.action.value, with_ranks(answer.table, tick.before)
