"""Operations on nodes: drains, exclusions, weights, zones, and fencing of silent nodes despite frozen evictions."""

from dataclasses import replace
from typing import Final

from controlplane.core.intents.intent import IntentKind
from controlplane.core.log.draft import Draft
from controlplane.core.log.state import State
from controlplane.core.membership.events import NodeDraining, NodeOrdered, NodeUndrained
from controlplane.core.membership.node import Node, NodeRole, NodeStatus
from controlplane.core.membership.standing_orders import NO_ORDER, StandingOrder
from controlplane.core.operations.answers import (
    Answer,
    and_kept,
    done,
    gone,
    idle_pins,
    refused,
    some_of,
    unknown_node,
    unless_contradicting,
)
from controlplane.core.operations.arguments import NODE, Argument, any_text
from controlplane.core.operations.intent_conflicts import (
    given_settings_of_node,
    no_goals,
    no_settings_of_node,
    node_goal,
)
from controlplane.core.operations.operation import Operation, Turn
from controlplane.core.operations.operation_context import Arguments, OperationContext
from controlplane.core.operations.slot_numbers import counted
from controlplane.core.operations.weights import parse_weight
from controlplane.core.slots.policy_contract import OrderKind
from controlplane.core.values.events import FIRST_LEVEL
from controlplane.core.values.identifiers import NodeId


def drain_node(draft: Draft, arguments: Arguments, context: OperationContext) -> Answer:
    """Move what a node holds to other nodes; its process keeps running."""
    node = draft.state.membership.nodes.get(arguments["node"])
    if node is None:
        return unknown_node(draft.state, arguments["node"])
    if not node.lives:
        return refused(f"node {node.node_id!r} {gone(node)}: it holds nothing")
    if node.status is NodeStatus.DRAINING:
        return done(f"node {node.node_id!r} drains already; {_what_remains(draft.state, node.node_id, context)}")
    draft.add(NodeDraining(node.node_id, node.incarnation, context.now_ms, leaving=False))
    return done(f"node {node.node_id!r} drains; {_what_remains(draft.state, node.node_id, context)}")


def undrain_node(draft: Draft, arguments: Arguments, context: OperationContext) -> Answer:
    """End a drain that an operator ordered."""
    node = draft.state.membership.nodes.get(arguments["node"])
    if node is None:
        return unknown_node(draft.state, arguments["node"])
    if not node.lives:
        return refused(f"node {node.node_id!r} {gone(node)}: it does not drain")
    if node.status is NodeStatus.ACTIVE:
        return done(f"node {node.node_id!r} does not drain")
    if node.leaving:
        return refused(f"node {node.node_id!r} asked to leave itself: let it go, and start it again to have it back")
    draft.add(NodeUndrained(node.node_id, node.incarnation, context.now_ms))
    return done(f"node {node.node_id!r} is active again")


def exclude_node(draft: Draft, arguments: Arguments, context: OperationContext) -> Answer:
    """Give a node nothing from now on, across its restarts."""
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
        detail += idle_pins(draft.state, name, "included again")
    answer = unless_contradicting(draft, [NodeOrdered(name, replace(order, excluded=True))], detail)
    return and_kept(answer, draft.state, name, context)


def include_node(draft: Draft, arguments: Arguments, _: OperationContext) -> Answer:
    """End an exclusion: the node may be given slots and bundles again."""
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


def set_node(draft: Draft, arguments: Arguments, _: OperationContext) -> Answer:
    """Set a node's weight or zone in place of the one that it joined with."""
    name = arguments["node"]
    order = draft.state.membership.order(name)
    if not arguments.keys() & {"weight", "zone"}:
        return refused("say what to set: weight, zone or both")
    if "weight" in arguments:
        order = replace(order, weight=parse_weight(arguments["weight"]))
    if "zone" in arguments:
        order = replace(order, zone=arguments["zone"])
    return _say(draft, name, order, f"node {name!r} counts with {_spoken(order)}")


def reset_node(draft: Draft, arguments: Arguments, _: OperationContext) -> Answer:
    """Restore the weight and the zone that the node joined with."""
    name = arguments["node"]
    order = draft.state.membership.order(name)
    if order.weight is None and order.zone is None and name not in draft.state.membership.nodes:
        said = [
            each for each, known in draft.state.membership.orders.items() if (known.weight, known.zone) != (None, None)
        ]
        return refused(f"nothing is set for node {name!r}; something is for {some_of(said)}")
    return _say(draft, name, replace(order, weight=None, zone=None), f"node {name!r} counts with what it says itself")


def override_self_preservation(draft: Draft, _: Arguments, __: OperationContext) -> Answer:
    """Answer with the nodes that the decision has fenced: silent nodes are fenced before intents are carried out."""
    before = draft.before.membership.nodes
    fenced = [
        node_id
        for node_id, node in draft.state.membership.nodes.items()
        if node.status is NodeStatus.FENCED and node_id in before and before[node_id].lives
    ]
    if not fenced:
        return done("no node was silent: none is fenced")
    return done(f"{counted(len(fenced), 'silent node')} fenced: {some_of(fenced)}")


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


def _what_remains(state: State, name: NodeId, context: OperationContext) -> str:
    slots = sum(1 for slot in state.slots.table if name in slot.replicas)
    bundles = sum(1 for bundle in state.bundles.by_id.values() if name in (bundle.owner, bundle.next_owner))
    held = f"it has {counted(slots, 'slot')} and {counted(bundles, 'bundle')} to give away"
    node: Node = state.membership.nodes[name]
    if node.role is NodeRole.DATA and not state.membership.can_relieve(name):
        return f"{held}; {_KEEPS}"
    if state.slots.paused:
        return f"{held}; its slots stay until reconciliation is resumed"
    return and_kept(done(held + idle_pins(state, name, "undrained")), state, name, context).detail


NODE_OPERATIONS: Final = (
    Operation(
        kind=IntentKind.OVERRIDE_SELF_PRESERVATION,
        summary="Fence the silent nodes although evictions are frozen.",
        carry_out=override_self_preservation,
        arguments=(),
        check_settings=None,
        goals=no_goals,
        turn=Turn.BEFORE_EXPIRY,
        feature_level=FIRST_LEVEL,
        command="intents override-self-preservation",
        supposition="",
    ),
    Operation(
        kind=IntentKind.DRAIN_NODE,
        summary="Move the slots and bundles of a node to other nodes while its process runs, until it restarts.",
        carry_out=drain_node,
        arguments=(NODE,),
        check_settings=None,
        goals=node_goal("drained", value=True),
        turn=Turn.IN_ORDER,
        feature_level=FIRST_LEVEL,
        command="nodes drain NODE",
        supposition="node NODE drains",
    ),
    Operation(
        kind=IntentKind.UNDRAIN_NODE,
        summary="End a drain that an operator ordered.",
        carry_out=undrain_node,
        arguments=(NODE,),
        check_settings=None,
        goals=node_goal("drained", value=False),
        turn=Turn.IN_ORDER,
        feature_level=FIRST_LEVEL,
        command="nodes undrain NODE",
        supposition="node NODE undrains",
    ),
    Operation(
        kind=IntentKind.EXCLUDE_NODE,
        summary="Give a node nothing, across its restarts, until it is included again.",
        carry_out=exclude_node,
        arguments=(NODE,),
        check_settings=None,
        goals=node_goal("excluded", value=True),
        turn=Turn.IN_ORDER,
        feature_level=FIRST_LEVEL,
        command="nodes exclude NODE",
        supposition="node NODE excluded",
    ),
    Operation(
        kind=IntentKind.INCLUDE_NODE,
        summary="End the exclusion of a node.",
        carry_out=include_node,
        arguments=(NODE,),
        check_settings=None,
        goals=node_goal("excluded", value=False),
        turn=Turn.IN_ORDER,
        feature_level=FIRST_LEVEL,
        command="nodes include NODE",
        supposition="node NODE included",
    ),
    Operation(
        kind=IntentKind.SET_NODE,
        summary="Set the weight or the zone of a node, in place of those that it joined with.",
        carry_out=set_node,
        arguments=(
            NODE,
            Argument(
                name="weight",
                meaning="its share of slots relative to other nodes, a whole number from 1",
                required=False,
                check=parse_weight,
                order=OrderKind.WEIGHTS,
            ),
            Argument(
                name="zone",
                meaning="its failure domain; an empty text for none",
                required=False,
                check=any_text,
                order=OrderKind.ZONES,
            ),
        ),
        check_settings=None,
        goals=given_settings_of_node,
        turn=Turn.IN_ORDER,
        feature_level=FIRST_LEVEL,
        command="nodes set NODE [--weight WEIGHT] [--zone ZONE]",
        supposition="node NODE [weight=WEIGHT] [zone=ZONE]",
    ),
    Operation(
        kind=IntentKind.RESET_NODE,
        summary="Restore the weight and the zone that a node joined with.",
        carry_out=reset_node,
        arguments=(NODE,),
        check_settings=None,
        goals=no_settings_of_node,
        turn=Turn.IN_ORDER,
        feature_level=FIRST_LEVEL,
        command="nodes set NODE --reset",
        supposition="",
    ),
)
