"""The check from outside of what operators' orders did: splits row by row, pauses, policies, contradictions.

What the orders mean for a plan is found out here again, apart from the planner's code.
"""

from collections.abc import Iterator
from dataclasses import replace

from controlplane.core.decision import Decision
from controlplane.core.events import (
    NodeAdmitted,
    NodeOrdered,
    NodeUndrained,
    PolicyChanged,
    SilenceLimitSettled,
    SlotsExcluded,
    SlotsPinned,
    SlotsSplit,
)
from controlplane.core.identifiers import Epoch
from controlplane.core.order_checks import order_problems
from controlplane.core.orders import Exclusion, Pin
from controlplane.core.records import NodeRole
from controlplane.core.slot_table import Slot, without_nodes
from controlplane.core.state import State

_ORDERS = (NodeOrdered, SlotsPinned, SlotsExcluded, PolicyChanged)


def split_table(before: State, decision: Decision) -> tuple[Slot, ...]:
    """The slot table before the decision, with the parts that it says it split from it."""
    parts = [slot for event in decision.events if isinstance(event, SlotsSplit) for slot in event.slots]
    return (*before.slots, *parts)


def planned_from(before: State, decision: Decision, after: State) -> tuple[Slot, ...]:
    """The table that a plan of this decision begins with, as the certificate's verifier has to see it.

    A new process holds nothing of what a former one of its name held. A part begins with the decision's epoch, so it
    cannot rise when its leader changes in the same decision; the verifier, which asks for that, is shown an older one.
    """
    count = len(before.slots)
    admitted = {event.node.node_id for event in decision.events if isinstance(event, NodeAdmitted)}
    table = without_nodes(split_table(before, decision), admitted)
    return tuple(
        replace(slot, leader_epoch=Epoch(decision.epoch - 1))
        if slot.slot_id >= count and slot.leader != new.leader
        else slot
        for slot, new in zip(table, after.slots, strict=True)
    )


def order_complaints(before: State, decision: Decision, after: State) -> Iterator[str]:
    """What is wrong with the events of a decision that operators' orders brought about."""
    settled = any(isinstance(event, SilenceLimitSettled) for event in decision.events)
    for event in decision.events:
        match event:
            case NodeUndrained(node_id=node_id) if node_id in before.nodes and before.nodes[node_id].leaving:
                yield f"node {node_id!r} asked to leave and is undrained"
            case SilenceLimitSettled() if before.former_silence_limit is None:
                yield "a silence limit is settled, but none was shortened"
            case PolicyChanged():
                yield from _policy_complaints(before, event, settled=settled)
            case _:
                pass
    yield from _split_complaints(before, decision)
    if any(isinstance(event, _ORDERS) for event in decision.events):
        known = set(order_problems(before))
        # A node that joins with another zone can contradict orders too, and nobody can refuse it that.
        admitted = any(isinstance(event, NodeAdmitted) for event in decision.events)
        yield from (problem for problem in order_problems(after) if problem not in known and not admitted)


def pause_complaints(before: State, decision: Decision, after: State) -> Iterator[str]:
    """Whether a pause changed nothing but that the dead were taken out, and survivors promoted."""
    if decision.certificate is not None:
        yield "it has a certificate, but reconciliation is paused and nothing is planned"
    # A new process holds nothing of what a former one of its name held.
    admitted = {event.node.node_id for event in decision.events if isinstance(event, NodeAdmitted)}
    living = {node_id for node_id, node in after.nodes.items() if node.lives} - admitted
    for old, new in zip(split_table(before, decision), after.slots, strict=True):
        where = f"slot {new.slot_id}, while reconciliation is paused"
        survivors = [node_id for node_id in old.replicas if node_id in living]
        if sorted(survivors) != sorted(new.replicas):
            yield f"{where}: held by {list(new.replicas)}, {survivors} survive"
        elif old.leader in survivors or old.leader is None:
            if (new.leader, new.leader_epoch) != (old.leader, old.leader_epoch):
                yield f"{where}: its leader changes although it lives"
        elif new.leader_epoch != decision.epoch:
            yield f"{where}: its leader is gone, but its leader epoch is {new.leader_epoch}"


def awake_pins(state: State) -> tuple[Pin, ...]:
    """The pins on nodes that are to hold something."""
    data = [node for node in state.nodes.values() if node.lives and node.role is NodeRole.DATA]
    free = [node for node in data if not state.order(node.node_id).excluded]
    names = {node.node_id for node in [node for node in free if node.places] or free or data}
    return tuple(pin for pin in state.pins if pin.node_id in names)


def awake_exclusions(state: State) -> tuple[Exclusion, ...]:
    """The exclusions of nodes that live."""
    return tuple(each for each in state.exclusions if each.node_id in state.nodes and state.nodes[each.node_id].lives)


def _policy_complaints(before: State, event: PolicyChanged, *, settled: bool) -> Iterator[str]:
    policy = event.policy
    relied_on_ms = before.policy.silence_limit_ms if settled else before.silence_limit_ms
    if before.log_id and policy.hash_function is not before.policy.hash_function:
        yield f"the hash function changes to {policy.hash_function.value} while the cluster lives"
    if policy.slot_count < before.policy.slot_count:
        yield f"slot_count falls from {before.policy.slot_count} to {policy.slot_count}"
    former_ms = event.former_silence_limit.limit_ms if event.former_silence_limit else policy.silence_limit_ms
    if former_ms < relied_on_ms and policy.silence_limit_ms < relied_on_ms:
        yield f"the silence limit falls below {relied_on_ms} ms at once: nodes may still rely on it"


def _split_complaints(before: State, decision: Decision) -> Iterator[str]:
    rows = before.slots
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
