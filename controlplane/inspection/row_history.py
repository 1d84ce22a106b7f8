"""The history of the slot table: which rows each decision changed, and why."""

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final

from controlplane.core.cluster.events import PolicyChanged
from controlplane.core.log.apply import apply_decision
from controlplane.core.log.decision import CauseKind, Decision
from controlplane.core.log.state import State
from controlplane.core.membership.events import NodeFenced, NodeOrdered, renewed_by
from controlplane.core.membership.node import NodeStatus
from controlplane.core.slots.pins import Exclusion
from controlplane.core.slots.table import Slot, empty_table, split_parts
from controlplane.core.values.identifiers import NodeId

BALANCE: Final = "balance"
"""The cause of a row that has no cause of its own."""


@dataclass(frozen=True, slots=True)
class RowChange:
    """A row of the slot table that a decision changed.

    Attributes:
        before: the row before the decision; for a part of a split slot, the row of the slot that was split.
        after: the row after the decision.
        cause: the reason, as a short text.
    """

    before: Slot
    after: Slot
    cause: str


class RowHistory:
    """Applies a log from its first decision on and returns the rows that each decision changed.

    Attributes:
        state: after the last decision.
    """

    def __init__(self) -> None:
        """Begin before the first decision."""
        self.state = State()
        self._plan_causes = ""

    def take(self, decision: Decision) -> tuple[RowChange, ...]:
        """The rows that the next decision changed, by slot id.

        Raises:
            LogContinuityError: it does not continue the previous decision.
        """
        before, self.state = self.state, apply_decision(self.state, decision)
        if self.state.slots.plan is not None and self.state.slots.plan.plan_id == decision.seq:
            self._plan_causes = ", ".join(f"{cause.kind.value} {cause.subject}" for cause in decision.causes)
        return tuple(_row_changes(before, decision, self.state, self._plan_causes))


def _row_changes(before: State, decision: Decision, after: State, plan_causes: str) -> Iterator[RowChange]:
    renewed = renewed_by(decision.events)
    if before.slots.table == after.slots.table and not renewed:
        return  # most decisions touch no row
    held = before.slots.table or empty_table(len(after.slots.table))
    held = (*held, *split_parts(held, len(after.slots.table), decision.epoch))
    for old, new in zip(held, after.slots.table, strict=True):
        if old == new and renewed.isdisjoint(new.replicas):
            continue
        reasons = dict.fromkeys(_reasons(old, new, decision, after, renewed))
        cause = ", ".join(reasons) or _cause_of_all(decision)
        if before.slots.plan is not None and _continues(decision):
            cause = f"{cause} (plan of decision {before.slots.plan.plan_id}: {plan_causes})"
        yield RowChange(old, new, cause)


def _reasons(old: Slot, new: Slot, decision: Decision, after: State, renewed: AbstractSet[NodeId]) -> Iterator[str]:
    """The cause of this row in particular."""
    for node_id in old.replicas:
        if node_id in renewed:
            yield f"{node_id} came back and holds nothing"
        elif node_id not in new.replicas:
            yield from _why_given_up(node_id, new, decision, after)
    for pin in after.slots.pins:
        stood = pin.node_id in old.replicas and (not pin.leads or old.leader == pin.node_id)
        if pin.slot_id == new.slot_id and not stood:
            yield f"pinned to {pin.node_id}"
    for node_id in new.replicas:
        if node_id in renewed and node_id not in old.replicas:
            yield f"{node_id} joined"


def _why_given_up(node_id: NodeId, new: Slot, decision: Decision, after: State) -> Iterator[str]:
    node = after.membership.nodes.get(node_id)
    if any(isinstance(event, NodeFenced) and event.node_id == node_id for event in decision.events):
        yield f"{node_id} was fenced"
    elif node is None or not node.lives:
        yield f"{node_id} is gone"
    elif node.status is NodeStatus.DRAINING:
        yield f"{node_id} drains"
    elif after.membership.order(node_id).excluded:
        yield f"{node_id} is excluded"
    elif Exclusion(new.slot_id, node_id) in after.slots.exclusions:
        yield f"{node_id} must not hold it"


def _cause_of_all(decision: Decision) -> str:
    """The cause of the whole plan, for rows without a cause of their own."""
    ordered = [f"{event.node_id} was ordered otherwise" for event in decision.events if isinstance(event, NodeOrdered)]
    changed = ["the policy changed"] if any(isinstance(event, PolicyChanged) for event in decision.events) else []
    return ", ".join([BALANCE, *changed, *ordered])


def _continues(decision: Decision) -> bool:
    return any(cause.kind is CauseKind.PLAN_CONTINUED for cause in decision.causes)
