"""Conditions that have to hold some time after the last fault."""

from collections.abc import Iterator

from controlplane.config import DEAD_LETTERS
from controlplane.core.log.state import State
from controlplane.core.membership.node import NodeStatus
from controlplane.core.routing.hashing import slot_of
from controlplane.core.values.identifiers import NodeId
from controlplane.node import Access, NodeAgent
from tests.simulation.invariants.log_watch import LogWatch
from tests.simulation.invariants.planned_overlap import HASHES
from tests.simulation.service import KEYS
from tests.simulation.world import World

LIVENESS = "liveness returns when faults stop"
ALL_ANSWERED = "every intent in the log is answered"


def what_did_not_heal(world: World, watch: LogWatch) -> Iterator[str]:
    """The conditions that do not hold, one sentence each."""
    state = watch.state
    for name, agent in sorted(world.agents.items()):
        node = state.membership.nodes.get(name)
        if node is None or node.status is not NodeStatus.ACTIVE:
            status = node and node.status.value
            yield f"{name} lives and is not active in the log: {status}, its agent says {agent.state.value}"
        if agent.table is None or agent.table.epoch != state.epoch:
            yield f"{name} has the table of epoch {agent.table and agent.table.epoch}, the log is at {state.epoch}"
    for name, client in sorted(world.clients.items()):
        if client.table is None or client.table.epoch != state.epoch:
            yield f"{name} has the table of epoch {client.table and client.table.epoch}, the log is at {state.epoch}"
    for name, node in sorted(state.membership.nodes.items()):
        if node.lives and name not in world.agents:
            yield f"{name} is dead, and {node.status.value} in the log"
    unserved = [slot.slot_id for slot in state.slots.table if slot.leader is None]
    if unserved:
        yield f"slots {unserved[:8]} have no leader"
    yield from _unserved_keys(world, state)
    if state.membership.evictions_frozen:
        yield "evictions are frozen"
    unanswered = sorted(world.intents_sent - watch.answers.keys())
    if unanswered:
        yield f"intents {unanswered[:4]} have no answer"
    yield from _unwritten_letters(world)


def _unserved_keys(world: World, state: State) -> Iterator[str]:
    """The keys that their owners refuse, although nothing is handed off."""
    table, hash_function = state.slots.table, state.cluster.policy.hash_function
    for key in KEYS if table else ():
        slot = table[slot_of(key, len(table), hash_function)]
        handoff = state.slots.handoffs.get(slot.slot_id)
        processes = _processes(world, slot.leader)
        is_handed_off = handoff is not None and handoff.releases
        if not is_handed_off and processes and not any(_serves_slot(each, key) for each in processes):
            yield f"{slot.leader} does not serve {key} of slot {slot.slot_id}"
    for bundle in state.bundles.by_id.values():
        if bundle.serving_node is None:
            continue
        processes = _processes(world, bundle.serving_node)
        keys = [key for key, hashed in HASHES.items() if bundle.lower <= hashed < bundle.end][:1] if processes else []
        for key in keys:
            if not any(each.bundle_of(bundle.namespace, key).access is Access.ACCEPT for each in processes):
                yield f"{bundle.owner} does not serve {key} of bundle {bundle.bundle_id}"


def _processes(world: World, node_id: NodeId | None) -> list[NodeAgent]:
    """The agents of a node that run."""
    found = [(place, agent) for agents in (world.agents, world.twins) for place, agent in agents.items()]
    return [agent for place, agent in found if place.removesuffix("-again") == node_id and world.machines[place].runs]


def _serves_slot(agent: NodeAgent, key: str) -> bool:
    table = agent.table
    return table is not None and agent.ownership(table.slot_for(key).slot_id).access is Access.ACCEPT


def _unwritten_letters(world: World) -> Iterator[str]:
    if not world.has_leader(DEAD_LETTERS, 0):
        return
    for name, running in sorted(world.running.items()):
        unwritten = running.controller._components.dead_letters.unwritten  # noqa: SLF001 - no program asks for it
        if unwritten:
            yield f"{name} has {unwritten} dead letters that are not written"
