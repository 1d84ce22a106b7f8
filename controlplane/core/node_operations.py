"""What operators can ask for a node: to be drained and back, to be excluded, to count with another weight or zone."""

from dataclasses import replace
from typing import Final

from controlplane.core.asked import (
    Answer,
    Arguments,
    Circumstances,
    done,
    refused,
    some_of,
    unknown_node,
    unless_contradicting,
)
from controlplane.core.draft import Draft
from controlplane.core.events import NodeDraining, NodeOrdered, NodeUndrained
from controlplane.core.identifiers import NodeId
from controlplane.core.membership import Node, NodeStatus
from controlplane.core.orders import MAX_WEIGHT, NO_ORDER, StandingOrder
from controlplane.core.records import NodeRole
from controlplane.core.state import State

_DIGITS: Final = len(str(MAX_WEIGHT))
"""No weight has more."""


def drain_node(draft: Draft, arguments: Arguments, circumstances: Circumstances) -> Answer:
    """Relieve a node of what it holds; it goes on living."""
    node = draft.state.nodes.get(arguments["node"])
    if node is None:
        return unknown_node(draft.state, arguments["node"])
    if not node.lives:
        return refused(f"node {node.node_id!r} is {node.status.value}: it holds nothing")
    if node.status is NodeStatus.DRAINING:
        return done(f"node {node.node_id!r} drains already; {_what_remains(draft.state, node.node_id)}")
    draft.add(NodeDraining(node.node_id, node.incarnation, circumstances.now_ms, leaving=False))
    return done(f"node {node.node_id!r} drains; {_what_remains(draft.state, node.node_id)}")


def undrain_node(draft: Draft, arguments: Arguments, circumstances: Circumstances) -> Answer:
    """Take an operator's drain back."""
    node = draft.state.nodes.get(arguments["node"])
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


def exclude_node(draft: Draft, arguments: Arguments, _: Circumstances) -> Answer:
    """Give a node nothing from now on, whichever process bears its name."""
    name = arguments["node"]
    order = draft.state.order(name)
    if order.excluded:
        return done(f"node {name!r} is excluded already")
    detail = f"node {name!r} is excluded"
    node = draft.state.nodes.get(name)
    if node is None:
        detail += "; no node of that name has joined yet"
    elif node.lives and not others_own(draft.state, name):
        detail += f"; {_KEEPS}"
    return unless_contradicting(draft, [NodeOrdered(name, replace(order, excluded=True))], detail)


def include_node(draft: Draft, arguments: Arguments, _: Circumstances) -> Answer:
    """Take an exclusion back."""
    name = arguments["node"]
    order = draft.state.order(name)
    if order.excluded:
        return unless_contradicting(
            draft, [NodeOrdered(name, replace(order, excluded=False))], f"node {name!r} is included again"
        )
    if name in draft.state.nodes:
        return done(f"node {name!r} is not excluded")
    excluded = [each for each, order in draft.state.orders.items() if order.excluded]
    return refused(f"node {name!r} is not excluded; excluded are {some_of(excluded)}")


def set_node(draft: Draft, arguments: Arguments, _: Circumstances) -> Answer:
    """Let a node count with another weight or zone than it says itself."""
    name = arguments["node"]
    order = draft.state.order(name)
    if not arguments.keys() & {"weight", "zone"}:
        return refused("say what to set: weight, zone or both")
    if "weight" in arguments:
        text = arguments["weight"]
        # Digits are counted first: Python refuses to read a number of thousands of them.
        if not (text.isascii() and text.isdigit() and len(text) <= _DIGITS and 1 <= int(text) <= MAX_WEIGHT):
            return refused(f"weight {text!r:.40} is not between 1 and {MAX_WEIGHT:,}")
        order = replace(order, weight=int(text))
    if "zone" in arguments:
        order = replace(order, zone=arguments["zone"])
    return _say(draft, name, order, f"node {name!r} counts with {_spoken(order)}")


def reset_node(draft: Draft, arguments: Arguments, _: Circumstances) -> Answer:
    """Let a node's own weight and zone count again."""
    name = arguments["node"]
    order = draft.state.order(name)
    if order.weight is None and order.zone is None and name not in draft.state.nodes:
        said = [each for each, known in draft.state.orders.items() if (known.weight, known.zone) != (None, None)]
        return refused(f"nothing is set for node {name!r}; something is for {some_of(said)}")
    return _say(draft, name, replace(order, weight=None, zone=None), f"node {name!r} counts with what it says itself")


def others_own(state: State, name: NodeId) -> bool:
    """Whether some other node may be given slots."""
    return any(node.node_id != name for node in state.placing_nodes)


_KEEPS = "there is no other node to take over what it holds: it keeps that until one joins"


def _say(draft: Draft, name: NodeId, order: StandingOrder, detail: str) -> Answer:
    if order == draft.state.order(name):
        return done(f"{detail} already")
    if name not in draft.state.nodes and order != NO_ORDER:
        detail += "; no node of that name has joined yet"
    return unless_contradicting(draft, [NodeOrdered(name, order)], detail)


def _spoken(order: StandingOrder) -> str:
    parts = [] if order.weight is None else [f"weight {order.weight}"]
    parts += [] if order.zone is None else [f"zone {order.zone!r}"]
    return " and ".join(parts)


def _what_remains(state: State, name: NodeId) -> str:
    slots = sum(1 for slot in state.slots if name in slot.replicas)
    bundles = sum(1 for bundle in state.bundles.values() if bundle.owner == name)
    held = f"it has {slots} slots and {bundles} bundles to give away"
    node: Node = state.nodes[name]
    if node.role is NodeRole.DATA and not others_own(state, name):
        return f"{held}; {_KEEPS}"
    return f"{held}; its slots stay until reconciliation is resumed" if state.paused else held
