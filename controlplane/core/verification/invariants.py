"""The invariants of every state, and of every step from one state to the next.

Tests and the simulation check all of them after every step. A leader runs :func:`check_step` before each commit, at a
cost proportional to the change, or to the table where a node is admitted.
"""

from collections.abc import Iterable, Iterator
from itertools import pairwise

from controlplane.core.bundles.bundle import HASH_SPACE, Bundle
from controlplane.core.bundles.events import (
    BundlesAssigned,
    BundleSplit,
    NamespaceCreated,
    NamespaceDeleted,
    TenantDeleted,
    TenantSet,
)
from controlplane.core.bundles.names import cluster_of, tenant_of
from controlplane.core.bundles.tenants import namespaces_not_allowed, namespaces_of
from controlplane.core.cluster.events import NodesForgotten
from controlplane.core.log.decision import Decision
from controlplane.core.log.state import State, wrong_digests
from controlplane.core.membership.events import NodeAdmitted, renewed_by
from controlplane.core.membership.standing_orders import NO_ORDER
from controlplane.core.slots.events import SlotsAssigned, SlotsSplit
from controlplane.core.slots.policies import BUILT_IN_POLICIES
from controlplane.core.slots.policy_contract import SlotPolicies
from controlplane.core.slots.table import Slot
from controlplane.core.values.identifiers import NamespaceName, NodeId, TenantName
from controlplane.core.verification.bundle_steps import (
    RowsSoFar,
    deletion_problems,
    shape_problems,
    split_problems,
    step_problems,
)
from controlplane.errors import InvariantViolationError


def check(state: State, policies: SlotPolicies = BUILT_IN_POLICIES) -> None:
    """Check a whole state.

    Raises:
        InvariantViolationError: an invariant does not hold; the message names the first ten violations.
    """
    judge_slots = _shape_problems if dead_may_hold(state, policies) else slot_problems
    problems = [*judge_slots(state, state.slots.table), *_bundle_problems(state), *_namespace_problems(state)]
    problems += _tenant_problems(state)
    problems += [
        f"slot at index {index} is slot {slot.slot_id}"
        for index, slot in enumerate(state.slots.table)
        if slot.slot_id != index
    ]
    if state.log_id and len(state.slots.table) != state.cluster.policy.slot_count:
        problems.append(f"{len(state.slots.table)} slots, the policy says {state.cluster.policy.slot_count}")
    problems += _order_problems(state)
    if (state.slots.plan is None) != (not state.slots.planned) or any(
        slot_id >= len(state.slots.table) for slot_id in state.slots.planned
    ):
        problems.append(
            f"the plan in flight is {state.slots.plan}, and rows of {sorted(state.slots.planned)} are left of it"
        )
    problems += handoff_problems(state)
    problems += [f"the digest of {path} is not the one kept up to date" for path in wrong_digests(state)]
    _raise(state, problems)


def check_step(before: State, decision: Decision, after: State, policies: SlotPolicies = BUILT_IN_POLICIES) -> None:
    """Check one decision, looking only at what it touches: at all slots where it admits a node.

    Raises:
        InvariantViolationError: an invariant does not hold; the message names the first ten violations.
    """
    problems = [
        sentence
        for holds, sentence in (
            (after.seq == before.seq + 1, f"seq goes from {before.seq} to {after.seq}"),
            (after.term >= before.term, f"term falls from {before.term} to {after.term}"),
            (after.epoch - before.epoch in (0, 1), f"epoch goes from {before.epoch} to {after.epoch}"),
            (after.decided_at_ms >= before.decided_at_ms, "log time goes back"),
            (not before.log_id or after.log_id == before.log_id, "the log id changes"),
        )
        if not holds
    ]
    problems += [
        f"position {key} falls from {offset} to {after.positions.get(key)}"
        for key, offset in before.positions.items()
        if after.positions.get(key, -1) < offset
    ]
    admitted = renewed_by(decision.events)
    problems += [
        f"slot {slot.slot_id} is led by a new process of {slot.leader!r} under leader epoch {slot.leader_epoch}, "
        f"it has to be {after.epoch}"
        for slot in (after.slots.table if admitted else ())
        if slot.leader in admitted and slot.leader_epoch != after.epoch
    ]
    problems += _event_problems(before, decision, after, policies)
    _raise(after, problems)


def _event_problems(before: State, decision: Decision, after: State, policies: SlotPolicies) -> list[str]:
    """What the events of a decision violate, as sentences."""
    problems: list[str] = []
    rows = RowsSoFar(before.bundles.by_id)
    for event in decision.events:
        match event:
            case SlotsAssigned(slots=slots) | SlotsSplit(slots=slots):
                problems += _shape_problems(after, tuple(after.slots.table[slot.slot_id] for slot in slots))
                problems += _changed_holder_problems(before, after, slots, policies)
                problems += _slot_leader_problems(before, after, slots)
            case BundlesAssigned(bundles=bundles):
                problems += owner_problems(after, bundles)
                problems += step_problems(rows, bundles, after.epoch)
                rows.put(bundles)
            case BundleSplit(bundle_id=bundle_id, children=children):
                problems += owner_problems(after, children)
                problems += split_problems(rows.get(bundle_id), children)
                rows.put(children)
            case NamespaceCreated(namespace=namespace, bundles=bundles):
                rows.put(bundles)
                problems += _not_allowed(after, tenant_of(namespace.name), [namespace.name])
            case NamespaceDeleted(name=name, bundle_ids=bundle_ids):
                problems += deletion_problems(rows, name, bundle_ids)
            case TenantSet(tenant=tenant):
                problems += _not_allowed(after, tenant.name, after.bundles.namespaces)
            case TenantDeleted(name=name):
                # Namespaces that the same decision creates may follow the deletion, and are not restricted.
                left = namespaces_of(name, before.bundles.namespaces)
                problems += [f"tenant {name!r} is deleted and has namespace {each!r}" for each in left]
            case NodesForgotten(node_ids=node_ids):
                still = sorted(frozenset(node_ids) & _named_nodes(after))
                problems += [f"node {node_id!r} is forgotten, and the state still names it" for node_id in still]
            case NodeAdmitted(node=node):
                known = before.membership.nodes.get(node.node_id)
                if known is not None and node.incarnation < known.incarnation:
                    problems.append(f"node {node.node_id!r} goes back to incarnation {node.incarnation}")
            case _:
                pass
    return problems


def _named_nodes(state: State) -> frozenset[NodeId]:
    """The nodes that a slot, a planned slot, a bundle or an order names."""
    rows = [*state.slots.table, *state.slots.planned_rows]
    return frozenset(
        (
            *state.membership.nodes,
            *state.membership.orders,
            *(node_id for slot in rows for node_id in slot.replicas),
            *(order.node_id for orders in (state.slots.pins, state.slots.exclusions) for order in orders),
            *(name for bundle in state.bundles.by_id.values() for name in (bundle.owner, bundle.next_owner) if name),
        )
    )


def handoff_problems(state: State) -> Iterator[str]:
    """Handoffs of slots that no planned row waits for, as sentences."""
    for slot_id, handoff in state.slots.handoffs.items():
        planned, now = state.slots.planned.get(slot_id), state.slots.rows.get(slot_id)
        if planned is None or now is None or planned.leader != handoff.next_leader:
            yield f"slot {slot_id} is handed off to {handoff.next_leader!r}, and the plan in flight does not say so"
        elif now.leader in (None, handoff.next_leader):
            yield f"slot {slot_id} is handed off from {now.leader!r} to {handoff.next_leader!r}"


def slot_problems(state: State, slots: tuple[Slot, ...]) -> Iterator[str]:
    """The violations by these slots, as sentences, if every holder of a slot has to live."""
    yield from _shape_problems(state, slots)
    for slot in slots:
        yield from _dead_holders(state, slot)


def _shape_problems(state: State, slots: tuple[Slot, ...]) -> Iterator[str]:
    for slot in slots:
        if len(set(slot.replicas)) != len(slot.replicas):
            yield f"slot {slot.slot_id} has a node twice: {slot.replicas}"
        if slot.leader is None and slot.followers:
            yield f"slot {slot.slot_id} has followers {slot.followers} and no leader"
        if slot.leader_epoch > state.epoch:
            yield f"slot {slot.slot_id} has leader epoch {slot.leader_epoch}, the table is at {state.epoch}"


def _changed_holder_problems(
    before: State, after: State, changed: tuple[Slot, ...], policies: SlotPolicies
) -> Iterator[str]:
    """The dead nodes that are given a slot or keep one; a slot policy that may leave the dead in rows may keep them."""
    may_stay = dead_may_hold(after, policies)
    for slot in changed:
        # A part of a split slot starts with the row of that slot.
        known = (
            before.slots.table[slot.slot_id % len(before.slots.table)].replicas
            if may_stay and before.slots.table
            else ()
        )
        yield from _dead_holders(after, after.slots.table[slot.slot_id], known)


def dead_may_hold(state: State, policies: SlotPolicies) -> bool:
    """Whether the state's slot policy may leave the dead in its table; False for an unknown policy."""
    policy = policies.get(state.cluster.policy.slot_policy)
    return policy is not None and policy.dead_may_hold


def _dead_holders(state: State, slot: Slot, excused: tuple[NodeId, ...] = ()) -> Iterator[str]:
    for node_id in slot.replicas:
        node = state.membership.nodes.get(node_id)
        if node_id not in excused and (node is None or not node.may_hold):
            yield f"slot {slot.slot_id} is held by {node_id!r}, which is {node.status.value if node else 'unknown'}"


def _slot_leader_problems(before: State, after: State, changed: tuple[Slot, ...]) -> Iterator[str]:
    for slot in changed:
        if slot.slot_id >= len(before.slots.table):
            continue
        old, new = before.slots.table[slot.slot_id], after.slots.table[slot.slot_id]
        if new.leader_epoch < old.leader_epoch:
            yield f"slot {slot.slot_id}: slot leader epoch falls from {old.leader_epoch} to {new.leader_epoch}"
        if new.leader != old.leader and new.leader is not None and new.leader_epoch != after.epoch:
            yield f"slot {slot.slot_id} changes its leader and keeps slot leader epoch {new.leader_epoch}"


def owner_problems(state: State, bundles: tuple[Bundle, ...]) -> Iterator[str]:
    """Each of these bundles whose owner is not a living data node, as a sentence."""
    for bundle in bundles:
        node = state.membership.nodes.get(bundle.owner) if bundle.owner is not None else None
        if bundle.owner is not None and (node is None or not node.may_hold):
            yield f"bundle {bundle.bundle_id} is owned by {bundle.owner!r}, which is not a living data node"


def _order_problems(state: State) -> Iterator[str]:
    pairs = [(pin.slot_id, pin.node_id) for pin in state.slots.pins]
    if pairs != sorted(set(pairs)) or list(state.slots.exclusions) != sorted(set(state.slots.exclusions)):
        yield "pins or exclusions are not sorted, or one occurs twice"
    slots = [pin.slot_id for pin in state.slots.pins] + [exclusion.slot_id for exclusion in state.slots.exclusions]
    beyond = [slot_id for slot_id in slots if not 0 <= slot_id < len(state.slots.table)]
    if beyond:
        yield f"pins or exclusions name slots {beyond[:10]}, which are not in the table"
    yield from (
        f"an empty order is kept for {name!r}" for name, order in state.membership.orders.items() if order == NO_ORDER
    )
    former = state.cluster.former_silence_limit
    if former is not None and former.limit_ms <= state.cluster.policy.silence_limit_ms:
        yield f"a former silence limit of {former.limit_ms} ms does not exceed the policy's"


def _bundle_problems(state: State) -> Iterator[str]:
    yield from owner_problems(state, tuple(state.bundles.by_id.values()))
    for bundle_id, bundle in state.bundles.by_id.items():
        if bundle_id != bundle.bundle_id or bundle.namespace not in state.bundles.namespaces:
            yield f"bundle {bundle_id} is stored under another id or has no namespace"
        yield from shape_problems(bundle)
    flying = {each.bundle_id: each.state for each in state.bundles.by_id.values() if each.ownership_state.is_in_flight}
    if flying != dict(state.bundles.in_flight):
        yield f"{len(state.bundles.in_flight)} bundles are kept as in flight, their rows say {len(flying)}"
    yield from (
        f"an order stands for bundle {bundle_id}, which there is not"
        for bundle_id in state.bundles.orders
        if bundle_id not in state.bundles.by_id
    )


def _namespace_problems(state: State) -> Iterator[str]:
    ranges: dict[str, list[tuple[int, int]]] = {name: [] for name in state.bundles.namespaces}
    for bundle in state.bundles.by_id.values():
        ranges.setdefault(bundle.namespace, []).append((bundle.lower, bundle.end))
    for name, bounds in ranges.items():
        bounds.sort()
        whole = bool(bounds) and bounds[0][0] == 0 and bounds[-1][1] == HASH_SPACE
        if not whole or any(left[1] != right[0] for left, right in pairwise(bounds)):
            yield f"the bundles of namespace {name!r} do not cover the hash space exactly once"


def _tenant_problems(state: State) -> Iterator[str]:
    """Of a state only names that name their cluster are judged: a log may have been restored under another name."""
    in_clusters: dict[TenantName, list[NamespaceName]] = {}
    for name in state.bundles.namespaces if state.bundles.tenants else ():
        if cluster_of(name) is not None:
            in_clusters.setdefault(name.partition("/")[0], []).append(name)
    for key, tenant in state.bundles.tenants.items():
        if key != tenant.name or list(tenant.allowed_clusters) != sorted(set(tenant.allowed_clusters)):
            yield f"tenant {key!r} is stored under another name, or its clusters are not sorted: {tenant}"
        yield from _not_allowed(state, tenant.name, in_clusters.get(tenant.name, ()))


def _not_allowed(state: State, name: TenantName | None, namespaces: Iterable[NamespaceName]) -> Iterator[str]:
    """Those of the namespaces that their tenant does not allow, as sentences; none if it is not registered."""
    tenant = state.bundles.tenants.get(name or "")
    for each in namespaces_not_allowed(tenant, namespaces, state.cluster.name) if tenant else ():
        yield f"namespace {each!r} is in a cluster that tenant {name!r} does not allow"


def _raise(state: State, problems: list[str]) -> None:
    if problems:
        more = f" and {len(problems) - 10} more" if len(problems) > 10 else ""  # noqa: PLR2004
        message = f"seq {state.seq}, epoch {state.epoch}: " + "; ".join(problems[:10]) + more
        raise InvariantViolationError(message)
