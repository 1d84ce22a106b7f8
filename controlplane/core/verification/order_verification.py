"""Verifies the effects of operators' orders: splits row by row, pauses, policies, contradictions.

The consequences of the orders for a plan are derived without the planner's code.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from controlplane.core.cluster.events import FormerSilenceLimitEnded, PolicyChanged
from controlplane.core.log.decision import Decision
from controlplane.core.log.events import Event
from controlplane.core.log.order_checks import new_problems
from controlplane.core.log.state import State
from controlplane.core.membership.events import (
    NodeAdmitted,
    NodeOrdered,
    NodeUndrained,
    renewed_by,
)
from controlplane.core.slots.events import (
    SlotsAssigned,
    SlotsExcluded,
    SlotsPinned,
    SlotsSplit,
)
from controlplane.core.slots.table import Slot, without_nodes
from controlplane.core.values.events import calls_for_plan
from controlplane.core.values.identifiers import Epoch, NodeId

_ORDERS = (NodeOrdered, SlotsPinned, SlotsExcluded, PolicyChanged)


def has_to_be_proven(event: Event) -> bool:
    """Whether a decision with this event has to prove that no more moved than necessary."""
    return calls_for_plan(event) or isinstance(event, SlotsAssigned)


def split_table(before: State, decision: Decision) -> tuple[Slot, ...]:
    """The slot table before the decision, with the parts of split slots that the decision adds."""
    parts = [slot for event in decision.events if isinstance(event, SlotsSplit) for slot in event.slots]
    return (*before.slots.table, *parts)


def planned_from(before: State, decision: Decision, after: State) -> tuple[Slot, ...]:
    """The table from which a plan of this decision starts, in the form that the certificate's verifier expects.

    A new process holds nothing that an earlier process of its name held. A part of a split slot starts with the
    decision's epoch as its leader epoch, so the leader epoch cannot rise if the part's leader changes in the same
    decision or is planned to. The verifier requires it to rise, so it is given an older one.
    """
    planned = after.slots.planned
    count = len(before.slots.table)
    renewed = renewed_by(decision.events)
    table = without_nodes(split_table(before, decision), renewed)
    return tuple(
        replace(slot, leader_epoch=Epoch(decision.epoch - 1))
        if slot.slot_id >= count and slot.leader != planned.get(slot.slot_id, new).leader
        else slot
        for slot, new in zip(table, after.slots.table, strict=True)
    )


def order_complaints(before: State, decision: Decision, after: State) -> Iterator[str]:
    """Violations by the events that operators' orders caused."""
    ended = any(isinstance(event, FormerSilenceLimitEnded) for event in decision.events)
    for event in decision.events:
        match event:
            case NodeUndrained(node_id=node_id) if (
                node_id in before.membership.nodes and before.membership.nodes[node_id].leaving
            ):
                yield f"node {node_id!r} asked to leave and is undrained"
            case FormerSilenceLimitEnded() if before.cluster.former_silence_limit is None:
                yield "a former silence limit is ended, but none was shortened"
            case PolicyChanged():
                yield from _policy_complaints(before, event, ended=ended)
            case _:
                pass
    yield from _split_complaints(before, decision)
    # A node that joins with another zone can create a contradiction too, and a join is not refused for that.
    admitted = any(isinstance(event, NodeAdmitted) for event in decision.events)
    if not admitted and any(isinstance(event, _ORDERS) for event in decision.events):
        yield from new_problems(before, after)


def pause_complaints(before: State, decision: Decision, after: State) -> Iterator[str]:
    """Changes during a pause, other than dead nodes removed and survivors promoted."""
    if decision.certificate is not None:
        yield "it has a certificate, but reconciliation is paused and nothing is planned"
    yield from survivor_complaints(before, decision, after.slots.table, after, "while reconciliation is paused")


def survivor_complaints(
    before: State, decision: Decision, rows: Iterable[Slot], after: State, why: str
) -> Iterator[str]:
    """Changes to slots other than dead nodes removed and survivors promoted.

    Args:
        before: the state before the decision.
        decision: the decision.
        rows: the slots as the decision leaves or plans them.
        after: the state after it.
        why: what forbids other changes, for the sentence.
    """
    living = survivors_of(decision, after)
    table = split_table(before, decision)
    for new in rows:
        old = table[new.slot_id]
        where = f"slot {new.slot_id}, {why}"
        survivors = [node_id for node_id in old.replicas if node_id in living]
        if sorted(survivors) != sorted(new.replicas):
            yield f"{where}: held by {list(new.replicas)}, {survivors} survive"
        elif old.leader in survivors or old.leader is None:
            if (new.leader, new.leader_epoch) != (old.leader, old.leader_epoch):
                yield f"{where}: its leader changes although it lives"
        elif new.leader_epoch != decision.epoch:
            yield f"{where}: its leader is gone, but its leader epoch is {new.leader_epoch}"


def taken_last_copies(before: State, decision: Decision, after: State) -> Iterator[str]:
    """The slots that a policy without proofs leaves empty although a living node has the data."""
    living = survivors_of(decision, after)
    planned = after.slots.planned
    for old, row in zip(split_table(before, decision), after.slots.table, strict=True):
        survivors = sorted(living.intersection(old.replicas))
        if survivors and not planned.get(row.slot_id, row).replicas:
            yield f"slot {row.slot_id} is left without a holder, although {survivors} have its data"


def survivors_of(decision: Decision, after: State) -> set[NodeId]:
    """The survivors: living data nodes whose process the table before the decision knew."""
    return {node_id for node_id, node in after.membership.nodes.items() if node.may_hold} - renewed_by(decision.events)


def _policy_complaints(before: State, event: PolicyChanged, *, ended: bool) -> Iterator[str]:
    policy = event.policy
    relied_on_ms = before.cluster.policy.silence_limit_ms if ended else before.cluster.silence_limit_ms
    if before.log_id and policy.hash_function is not before.cluster.policy.hash_function:
        yield f"the hash function changes to {policy.hash_function.value} while the cluster lives"
    if policy.slot_count < before.cluster.policy.slot_count:
        yield f"slot_count falls from {before.cluster.policy.slot_count} to {policy.slot_count}"
    former_ms = event.former_silence_limit.limit_ms if event.former_silence_limit else policy.silence_limit_ms
    if former_ms < relied_on_ms and policy.silence_limit_ms < relied_on_ms:
        yield f"the silence limit falls below {relied_on_ms} ms at once: nodes may still rely on it"


def _split_complaints(before: State, decision: Decision) -> Iterator[str]:
    rows = before.slots.table
    count = len(rows)
    for event in decision.events:
        match event:
            case PolicyChanged(policy=policy):
                count = policy.slot_count
            case SlotsSplit(slots=parts):
                for part in parts:
                    parent = rows[part.slot_id % len(rows)]
                    inherited = replace(parent, slot_id=part.slot_id, leader_epoch=decision.epoch)
                    if part != inherited:
                        yield f"slot {part.slot_id} is no part of slot {parent.slot_id}: {part}"
                rows = (*rows, *parts)
            case _:
                pass
    if len(rows) != count:
        yield f"{len(rows)} slots, the policy says {count}"
