"""Clusters with bundles, and operators who give orders for them, without a leader who carries them out."""

from collections.abc import Iterable

from controlplane.core.bundles.bundle import Bundle, Namespace
from controlplane.core.bundles.events import (
    BundleOrdersGiven,
    BundlesAssigned,
    NamespaceCreated,
)
from controlplane.core.bundles.orders import BundleOrder
from controlplane.core.bundles.ownership_state import OwnershipState
from controlplane.core.bundles.ranges import equal_boundaries
from controlplane.core.cluster.events import ClusterCreated
from controlplane.core.cluster.policy import ClusterPolicy
from controlplane.core.intents.events import IntentOutcome
from controlplane.core.intents.intent import IntentKind
from controlplane.core.log.apply import apply
from controlplane.core.log.draft import Draft
from controlplane.core.log.events import Event
from controlplane.core.log.state import State
from controlplane.core.membership.events import (
    FencingCause,
    NodeAdmitted,
    NodeDraining,
    NodeFenced,
    NodeOrdered,
    NodeRemoved,
)
from controlplane.core.membership.node import Node, NodeRole, NodeStatus
from controlplane.core.membership.standing_orders import StandingOrder
from controlplane.core.operations.answers import Answer
from controlplane.core.operations.argument_checks import argument_problem
from controlplane.core.operations.operation_context import OperationContext
from controlplane.core.operations.registry import OPERATIONS
from controlplane.core.slots.policies import BUILT_IN_POLICIES

DONE, REFUSED = IntentOutcome.DONE, IntentOutcome.REFUSED
TRANSFER, UNLOAD, SPLIT, DELETE = (
    IntentKind.TRANSFER_BUNDLES,
    IntentKind.UNLOAD_BUNDLES,
    IntentKind.SPLIT_BUNDLES,
    IntentKind.DELETE_NAMESPACE,
)
FIRST, SECOND, THIRD, FOURTH = (f"kv/{each.name}" for each in equal_boundaries(4).ranges)
CONTEXT = OperationContext(BUILT_IN_POLICIES, 1_000, 0, frozenset())
NAMESPACES = {"kv": 4, "acme/orders": 2, "kv2": 1}


def node(name: str, role: NodeRole = NodeRole.DATA) -> Node:
    """A node that was admitted."""
    return Node(name, 1, role, NodeStatus.ACTIVE, (), "", 1, 0, "1", 0, 0, hands_off=True)


def owned(namespace: str, owner: str | None) -> Iterable[Bundle]:
    """The bundles of a namespace, with one owner for all of them."""
    state = OwnershipState.FREE if owner is None else OwnershipState.OWNED
    return (
        Bundle(namespace, *each, owner, state, version=1) for each in equal_boundaries(NAMESPACES[namespace]).ranges
    )


def state_after(events: Iterable[Event], start: State | None = None) -> State:
    """The state that events lead to."""
    state = State() if start is None else start
    for event in events:
        state = apply(state, event)
    return state


def cluster(owner: str | None = "n1") -> State:
    """Three namespaces of one owner; n1 and n2 are active, the others can own nothing new, each for another reason."""
    nodes = (
        node("n1"),
        node("n2"),
        node("drains"),
        node("fenced"),
        node("gone"),
        node("excluded"),
        node("session", role=NodeRole.SESSION),
    )
    return state_after(
        [
            ClusterCreated("log", ClusterPolicy(slot_count=4)),
            *(NodeAdmitted(each) for each in nodes),
            NodeDraining("drains", 1, 0, leaving=False),
            NodeFenced("fenced", 1, FencingCause.SILENCE, 0, 0),
            NodeRemoved("gone", 1, 0),
            NodeOrdered("excluded", StandingOrder(excluded=True)),
            *(
                NamespaceCreated(Namespace(name, count), tuple(owned(name, owner)))
                for name, count in NAMESPACES.items()
            ),
        ]
    )


def with_rows(state: State, *rows: Bundle) -> State:
    """The state with other rows of bundles."""
    return apply(state, BundlesAssigned(rows))


def with_orders(state: State, *orders: BundleOrder) -> State:
    """The state with orders that stand."""
    return apply(state, BundleOrdersGiven(orders))


def ask(state: State, kind: IntentKind, **arguments: str) -> tuple[Answer, list[Event], State]:
    """The answer, the events and the state after them. What no cluster accepts does not get that far."""
    operation = OPERATIONS[kind]
    assert argument_problem(operation, arguments) is None
    draft = Draft(state)
    answer = operation.carry_out(draft, arguments, CONTEXT)
    return answer, draft.events, draft.state


def orders_of(events: Iterable[Event]) -> list[BundleOrder]:
    """The orders that events give."""
    return [order for event in events if isinstance(event, BundleOrdersGiven) for order in event.orders]
