"""Worlds whose plans are carried out at a limited pace, with the reports of their nodes."""

from typing import Any

from controlplane.config import HEARTBEATS
from controlplane.core.cluster.policy import ClusterPolicy
from controlplane.core.log.decision import Decision
from controlplane.core.membership.inputs import Heartbeat
from controlplane.core.membership.node import NodeRole
from controlplane.core.slots.events import SlotsAssigned
from controlplane.core.slots.reports import SlotStatus
from controlplane.core.slots.table import Slot
from controlplane.core.values.identifiers import NodeId
from controlplane.core.values.partitioning import partition_of
from controlplane.core.values.replica_status import ReplicaStatus
from tests.helpers.world import PARTITIONS, World


def paced_world(**settings: Any) -> World:  # noqa: ANN401 - fields of the policy
    """Sixteen slots with two replicas, no linger."""
    return World(ClusterPolicy(slot_count=16, join_linger_ms=0, **settings))


def report(world: World, *names: NodeId, ready: bool = True) -> None:
    """These nodes beat, and say of all that they hold that they are ready in it, or that they are not."""
    status = ReplicaStatus.HEALTHY if ready else ReplicaStatus.MIGRATING
    for name in names:
        statuses = tuple(
            SlotStatus(slot.slot_id, slot.leader_epoch, slot.leader == name, status, world.now_ms)
            for slot in world.state.slots.table
            if name in slot.replicas
        )
        node = world.state.membership.nodes.get(name)
        beat = Heartbeat(
            name,
            node.incarnation if node else 1,
            world.now_ms,
            world.state.epoch,
            NodeRole.DATA,
            slot_statuses=statuses,
        )
        world.append(HEARTBEATS, partition_of(name.encode(), PARTITIONS), beat)


def look(world: World) -> Decision | None:
    """Let a tick pass and decide."""
    world.tick()
    return world.decide()


def start(world: World, *names: NodeId) -> None:
    """Nodes that join together and are ready in all they got."""
    for name in names:
        world.join(name)
    report(world, *names)
    look(world)
    report(world, *names)


def fourth_joins(world: World) -> None:
    """A node comes to three that are there; nothing is decided yet."""
    world.join("n4")
    report(world, "n1", "n2", "n3", "n4")


def moved(before: tuple[Slot, ...], after: tuple[Slot, ...]) -> int:
    """How many replicas are new."""
    return sum(len(set(new.replicas) - set(old.replicas)) for old, new in zip(before, after, strict=True))


def moves_of(decision: Decision, before: tuple[Slot, ...]) -> int:
    """How many replicas a decision moves."""
    rows = [slot for event in decision.events if isinstance(event, SlotsAssigned) for slot in event.slots]
    return sum(len(set(slot.replicas) - set(before[slot.slot_id].replicas)) for slot in rows)


def carry_on(world: World, *names: NodeId, steps: int = 60) -> list[Decision]:
    """Report every node ready, repeatedly, until the plan is carried out."""
    taken = []
    for _ in range(steps):
        report(world, *names)
        decision = look(world)
        if decision is not None:
            taken.append(decision)
        if world.state.slots.plan is None:
            break
    return taken
