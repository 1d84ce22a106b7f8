"""What operators can ask for a node: to be drained and back, to be excluded, to count with another weight or zone."""

from dataclasses import replace

from controlplane.core.log.draft import Draft
from controlplane.core.log.state import State
from controlplane.core.membership.events import NodeDraining, NodeOrdered, NodeUndrained
from controlplane.core.membership.node import Node, NodeRole, NodeStatus
from controlplane.core.membership.standing_orders import NO_ORDER, StandingOrder
from controlplane.core.operations.asked import (
    Answer,
    Arguments,
    Circumstances,
    and_kept,
    done,
    refused,
    sleeping_pins,
    some_of,
    unknown_node,
    unless_contradicting,
)
from controlplane.core.operations.slot_numbers import counted
from controlplane.core.operations.weights import parse_weight
from controlplane.core.values.identifiers import NodeId
from controlplane.errors import ConfigurationError


def drain_node(draft: Draft, arguments: Arguments, circumstances: Circumstances) -> Answer:
    """Relieve a node of what it holds; it goes on living."""
    node = draft.state.membership.nodes.get(arguments["node"])
    if node is None:
        return unknown_node(draft.state, arguments["node"])
    if not node.lives:
        return refused(f"node {node.node_id!r} is {node.status.value}: it holds nothing")
    if node.status is NodeStatus.DRAINING:
        return done(f"node {node.node_id!r} drains already; {_what_remains(draft.state, node.node_id, circumstances)}")
    draft.add(NodeDraining(node.node_id, node.incarnation, circumstances.now_ms, leaving=False))
    return done(f"node {node.node_id!r} drains; {_what_remains(draft.state, node.node_id, circumstances)}")


def undrain_node(draft: Draft, arguments: Arguments, circumstances: Circumstances) -> Answer:
    """Take an operator's drain back."""
    node = draft.state.membership.nodes.get(arguments["node"])
    if node is None:
        return unknown_node(draft.state, arguments["node"])
    if not node.lives:
        return refused(f"node {node.node_id!r} is {node.status.value}: it does not drain")
    if node.status is NodeStatus.ACTIVE:
        return done(f"node {node.node_id!r} does not drain")
    if node.leaving:
        return refused(f"node {node.node_id!r} asked to leave itself: let it go, and start it again to have it back")
    draft.add(NodeUndrained(node.node_id, node.incarnation, circumstances.now_ms))
    return done(f"node {node.node_id!r} is active again")


def exclude_node(draft: Draft, arguments: Arguments, circumstances: Circumstances) -> Answer:
    """Give a node nothing from now on, whichever process bears its name."""
    name = arguments["node"]
    order = draft.state.membership.order(name)
    if order.excluded:
        return done(f"node {name!r} is excluded already")
    detail = f"node {name!r} is excluded"
    node = draft.state.membership.nodes.get(name)
    if node is None:
        detail += "; no node of that name has joined yet"
    elif node.lives and not draft.state.membership.can_relieve(name):
        detail += f"; {_KEEPS}"
    else:
        detail += sleeping_pins(draft.state, name, "included again")
    answer = unless_contradicting(draft, [NodeOrdered(name, replace(order, excluded=True))], detail)
    return and_kept(answer, draft.state, name, circumstances)


def include_node(draft: Draft, arguments: Arguments, _: Circumstances) -> Answer:
    """Let a node be given slots and bundles again."""
    name = arguments["node"]
    order = draft.state.membership.order(name)
    if order.excluded:
        return unless_contradicting(
            draft, [NodeOrdered(name, replace(order, excluded=False))], f"node {name!r} is included again"
        )
    if name in draft.state.membership.nodes:
        return done(f"node {name!r} is not excluded")
    excluded = [each for each, order in draft.state.membership.orders.items() if order.excluded]
    return refused(f"node {name!r} is not excluded; excluded are {some_of(excluded)}")


def set_node(draft: Draft, arguments: Arguments, _: Circumstances) -> Answer:
    """Let a node count with another weight or zone than it says itself."""
    name = arguments["node"]
    order = draft.state.membership.order(name)
    if not arguments.keys() & {"weight", "zone"}:
        return refused("say what to set: weight, zone or both")
    if "weight" in arguments:
        try:
            order = replace(order, weight=parse_weight(arguments["weight"]))
        except ConfigurationError as error:
            return refused(str(error))
    if "zone" in arguments:
        order = replace(order, zone=arguments["zone"])
    return _say(draft, name, order, f"node {name!r} counts with {_spoken(order)}")


def reset_node(draft: Draft, arguments: Arguments, _: Circumstances) -> Answer:
    """Let a node's own weight and zone count again."""
    name = arguments["node"]
    order = draft.state.membership.order(name)
    if order.weight is None and order.zone is None and name not in draft.state.membership.nodes:
        said = [
            each for each, known in draft.state.membership.orders.items() if (known.weight, known.zone) != (None, None)
        ]
        return refused(f"nothing is set for node {name!r}; something is for {some_of(said)}")
    return _say(draft, name, replace(order, weight=None, zone=None), f"node {name!r} counts with what it says itself")


_KEEPS = "there is no other node to take over what it holds: it keeps that until one joins"


def _say(draft: Draft, name: NodeId, order: StandingOrder, detail: str) -> Answer:
    if order == draft.state.membership.order(name):
        return done(f"{detail} already")
    if name not in draft.state.membership.nodes and order != NO_ORDER:
        detail += "; no node of that name has joined yet"
    return unless_contradicting(draft, [NodeOrdered(name, order)], detail)


def _spoken(order: StandingOrder) -> str:
    parts = [] if order.weight is None else [f"weight {order.weight}"]
    parts += [] if order.zone is None else [f"zone {order.zone!r}"]
    return " and ".join(parts)


def _what_remains(state: State, name: NodeId, circumstances: Circumstances) -> str:
    slots = sum(1 for slot in state.slots.table if name in slot.replicas)
    bundles = sum(1 for bundle in state.bundles.by_id.values() if bundle.owner == name)
    held = f"it has {counted(slots, 'slot')} and {counted(bundles, 'bundle')} to give away"
    node: Node = state.membership.nodes[name]
    if node.role is NodeRole.DATA and not state.membership.can_relieve(name):
        return f"{held}; {_KEEPS}"
    if state.slots.paused:
        return f"{held}; its slots stay until reconciliation is resumed"
    return and_kept(done(held + sleeping_pins(state, name, "undrained")), state, name, circumstances).detail
