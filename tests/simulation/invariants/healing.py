"""Conditions that have to hold some time after the last fault."""

from collections.abc import Iterator

from controlplane.config import DEAD_LETTERS
from controlplane.core.membership.node import NodeStatus
from tests.simulation.invariants.log_watch import LogWatch
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
    if state.membership.evictions_frozen:
        yield "evictions are frozen"
    unanswered = sorted(world.intents_sent - watch.answers.keys())
    if unanswered:
        yield f"intents {unanswered[:4]} have no answer"
    yield from _unwritten_letters(world)


def _unwritten_letters(world: World) -> Iterator[str]:
    if not world.has_leader(DEAD_LETTERS, 0):
        return
    for name, running in sorted(world.running.items()):
        unwritten = running.controller._components.dead_letters.unwritten  # noqa: SLF001 - no program asks for it
        if unwritten:
            yield f"{name} has {unwritten} dead letters that are not written"
