"""Commands that show how things stand, and change nothing."""

from controlplane.core.deciding.what_if import Change, NodeDies, effect_of, what_if
from controlplane.core.intents.intent import Intent
from controlplane.core.membership.inputs import NodeJoined, NodeLeaving
from controlplane.core.membership.node import Node, NodeRole
from controlplane.core.membership.standing_orders import StandingOrder
from controlplane.core.slots.table import NodeSlots, by_node
from controlplane.inspection.table_status import table_status
from tests.scenarios.engine.call import Call
from tests.scenarios.engine.cluster import Cluster
from tests.scenarios.engine.printing import (
    bundle_text,
    holders_text,
    pairs_text,
    proof_lines,
    table_lines,
    time_text,
    wrapped,
)
from tests.scenarios.engine.script import ScenarioError


def table(cluster: Cluster, call: Call) -> list[str]:
    """``table``: the slots by node; ``L`` leads, ``f`` follows. Below, the epoch since which each leader has led."""
    call.only(words=0)
    placing = (node.node_id for node in cluster.state.membership.placing_nodes)
    return table_lines(cluster.state.slots.table, placing)


def nodes(cluster: Cluster, call: Call) -> list[str]:
    """``nodes``: each member with its status, and what operators ordered about its name."""
    call.only(words=0)
    membership = cluster.state.membership
    held = by_node(cluster.state.slots.table)
    known = [_node_line(node, held.get(name), membership.order(name)) for name, node in membership.nodes.items()]
    orders = [f"{name} never joined{_order_text(order)}" for name, order in membership.orders.items()]
    absent = [line for name, line in zip(membership.orders, orders, strict=True) if name not in membership.nodes]
    return [*known, *absent] or ["no nodes"]


def bundles(cluster: Cluster, call: Call) -> list[str]:
    """``bundles``: each bundle with its owner."""
    call.only(words=0)
    return [bundle_text(each) for each in cluster.state.bundles.by_id.values()] or ["no bundles"]


def decision(cluster: Cluster, call: Call) -> list[str]:
    """``decision [SEQ]``: the proof of the last decision, or of that one: figures, shares and prices."""
    call.only()
    taken = cluster.world.decisions
    seq = int(call.words[0]) if call.words else len(taken)
    if not 1 <= seq <= len(taken):
        raise ScenarioError(f"there is no decision {seq}; there are 1 to {len(taken)}")
    return proof_lines(taken[seq - 1])


def state(cluster: Cluster, call: Call) -> list[str]:
    """``state``: the numbers of the log, and what stands in the way of movement: freezes, pauses, orders, plans."""
    call.only(words=0)
    now = cluster.state
    limit = f"{now.cluster.silence_limit_ms} ms"
    if now.cluster.former_silence_limit is not None:
        limit += f", {now.cluster.policy.silence_limit_ms} ms later"
    evictions = "frozen" if now.membership.evictions_frozen else "allowed"
    reconciliation = "paused" if now.slots.paused else "on"
    lines = [
        f"term {now.term} of {now.leader}, decision {now.seq}, epoch {now.epoch}, {len(now.slots.table)} slots",
        f"silence limit {limit}; evictions {evictions}; reconciliation {reconciliation}",
    ]
    if now.slots.pins:
        lines.append(f"pins {pairs_text(now.slots.pins)}")
    if now.slots.exclusions:
        lines.append(f"exclusions {pairs_text(now.slots.exclusions)}")
    return lines


def status(cluster: Cluster, call: Call) -> list[str]:
    """``status``: how the table stands, what its plan waits for, and what it cannot have."""
    call.only(words=0)
    cluster.world.observe()
    now = table_status(cluster.state, cluster.world.observations)
    stable = "stable" if now.stable else "not stable"
    lines = [f"{stable}; {now.replicas_missing} replicas missing; {now.slots_without_a_node} slots without a node"]
    if now.refusal:
        lines += wrapped(f"refused: {now.refusal}", 0)
    for sentence in now.shortfalls:
        lines += wrapped(f"cannot be: {sentence}", 0)
    if now.plan is None:
        return lines
    made_at_ms = cluster.state.slots.plan.made_at_ms if cluster.state.slots.plan else 0
    lines.append(f"plan of decision {now.plan}, made at {time_text(made_at_ms)}, {len(now.waiting)} rows wait:")
    for row in now.waiting:
        planned = cluster.state.slots.planned[row.slot_id]
        lines += wrapped(f"slot {row.slot_id} to {holders_text(planned)}: {row.reason}", 2)
    return lines


def suppose(cluster: Cluster, call: Call) -> list[str]:
    """``what-if CHANGE [; CHANGE ...]``: what would happen; nothing is decided.

    A change is ``die NODE``, ``join NODE [zone=Z] [weight=N]``, ``leave NODE``, or ``intent KIND [NAME=VALUE ...]``.
    """
    cluster.world.observe()
    changes = [_change(cluster, part, number) for number, part in enumerate(call.parts())]
    effect = effect_of(*what_if(cluster.state, cluster.world.observations, changes))
    sentences = [f"refused: {refusal}" for refusal in effect.refusals]
    sentences += [f"cannot be: {shortfall}" for shortfall in effect.shortfalls]
    sentences += [f"{answer.outcome.value}: {answer.detail}" for answer in effect.answers]
    said = [line for sentence in sentences for line in wrapped(sentence, 0)]
    if effect.refused:
        return said
    return [
        *said,
        f"{effect.moved} moved, least {effect.least_moved}; {effect.moved_now} now, {effect.rows_waiting} rows wait",
        f"{effect.leader_changes} leaders changed, least {effect.least_leader_changes}",
        *(f"  slot {old.slot_id}: {holders_text(old)} -> {holders_text(new)}" for old, new in effect.rows),
    ]


def _change(cluster: Cluster, part: Call, number: int) -> Change:
    if len(part.words) != 1:
        raise ScenarioError(f"{part.name} takes one word, found {list(part.words)}")
    word = part.words[0]
    known = cluster.state.membership.nodes.get(word)
    incarnation = known.incarnation if known else 0
    match part.name:
        case "die":
            return NodeDies(word)
        case "join":
            zone, weight = part.settings.get("zone", ""), part.whole("weight", 1)
            return NodeJoined(word, incarnation + 1, NodeRole.DATA, (), zone, weight, 0, "1", cluster.world.now_ms)
        case "leave":
            return NodeLeaving(word, incarnation, "supposed")
        case "intent":
            return Intent(f"supposed-{number}", word, "tester", part.settings)
        case _:
            raise ScenarioError(f"{part.name!r} cannot be supposed: write die, join, leave or intent")


def _node_line(node: Node, slots: NodeSlots | None, order: StandingOrder) -> str:
    leads, follows = (len(slots.leads), len(slots.follows)) if slots else (0, 0)
    said = [f"{node.node_id} {node.status.value}", f"incarnation {node.incarnation}"]
    said += [node.role.value] if node.role is not NodeRole.DATA else []
    said += [f"zone {node.zone}"] if node.zone else []
    said += [f"weight {node.weight}"] if node.weight != 1 else []
    return f"{', '.join(said)}; leads {leads}, follows {follows}{_order_text(order)}"


def _order_text(order: StandingOrder) -> str:
    said = ["excluded"] if order.excluded else []
    said += [f"weight {order.weight}"] if order.weight is not None else []
    said += [f"zone {order.zone}"] if order.zone is not None else []
    return f"; ordered: {', '.join(said)}" if said else ""
