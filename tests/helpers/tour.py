"""One history in which every kind of event happens, each because an input called for it."""

from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple

from controlplane.core.cluster.policy import FEATURE_LEVEL, HANDOFFS_FROM_LEVEL, SEVERAL_BROKERS_LEVEL, ClusterPolicy
from controlplane.core.deciding.what_if import what_if
from controlplane.core.intents.events import IntentAnswered
from controlplane.core.intents.intent import Intent
from controlplane.core.log.decision import Decision
from controlplane.core.log.events import Event
from tests.helpers.world import World

NODES = ("n1", "n2", "n3")


class Asked(NamedTuple):
    """An intent, the result of a what-if just before it, and the decision that answered it."""

    intent: Intent
    foretold: tuple[Event, ...]
    decision: Decision


@dataclass
class Tour(World):
    """A world that asks what-if before each intent."""

    asked: list[Asked] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Begin at the first feature level, so that it can be raised."""
        super().__init__(ClusterPolicy(slot_count=8), first_feature_level=1)

    def ask(self, kind: str, **arguments: str) -> IntentAnswered:
        """See :class:`World`."""
        intent = Intent("supposed", kind, self.principal, arguments)
        draft, _ = what_if(self.state, self.observations, [intent])
        answer = super().ask(kind, **arguments)
        self.asked.append(Asked(intent, tuple(draft.events), self.decisions[-1]))
        return answer


@cache
def tour(raised_level: int = FEATURE_LEVEL) -> Tour:
    """The world after the tour, which tests must not change; its log was raised from the first level to another."""
    world = Tour()
    world.admit(*NODES)
    for level in range(2, raised_level + 1):
        world.ask("raise_feature_level", level=str(level), upgraded="c1")
    world.run(300, NODES)
    world.ask("create_namespace", namespace="kv")
    if raised_level >= HANDOFFS_FROM_LEVEL:
        _bundles(world)
        _handoffs(world)
    world.ask("set_tenant", tenant="acme", clusters="eu,us")
    world.ask("delete_tenant", tenant="acme")
    _orders(world)
    world.run(1_000, NODES)
    _plans(world)
    world.ask("change_policy", slot_count="16")
    world.ask("change_policy", silence_limit_ms="1500")
    world.run(4_000, NODES)
    _deaths(world)
    world.ask("change_policy", slot_policy="sofa")
    world.admit("n5")
    world.run(2_000, (*NODES, "n5"))
    if raised_level >= SEVERAL_BROKERS_LEVEL:
        world.ask("change_policy", forget_nodes_after_ms="30000")
        world.ask("reset_node", node="n4")
        world.run(31_000, (*NODES, "n5"))
        world.admit("n6")
    return world


def _bundles(world: Tour) -> None:
    """Bundles move, are split, and end with their namespace. These nodes are of before handoffs."""
    first = next(iter(world.state.bundles.by_id.values()))
    other = next(node_id for node_id in NODES if node_id != first.owner)
    world.ask("transfer_bundles", bundles=first.bundle_id, node=other)
    world.ask("unload_bundles", bundles=first.bundle_id)
    world.ask("split_bundles", bundles=first.bundle_id, by="number", numbers="2")
    world.ask("create_namespace", namespace="short-lived")
    world.ask("delete_namespace", namespace="short-lived")


def _handoffs(world: Tour) -> None:
    """The leadership of a slot is about to move between nodes that hand off, and stays after all."""
    beating = (*NODES, "h1", "h2")
    for node_id in beating[-2:]:
        world.join(node_id, hands_off=True)
        world.heartbeat(node_id)
    world.run(1_000, beating)
    world.ask("pin_slots", slots="0", node="h1", leads="true")
    world.ask("unpin_slots", slots="0", node="h1")
    world.ask("pin_slots", slots="0", node="h2", leads="true")
    world.ask("unpin_slots", slots="0", node="h2")
    for node_id in beating[-2:]:
        world.left(node_id)
    world.run(1_000, NODES)


def _orders(world: Tour) -> None:
    """Operators' orders, and their removal."""
    for kind, arguments in (
        ("drain_node", {"node": "n1"}),
        ("undrain_node", {"node": "n1"}),
        ("set_node", {"node": "n1", "weight": "3"}),
        ("reset_node", {"node": "n1"}),
        ("pin_slots", {"slots": "0-2", "node": "n1"}),
        ("unpin_slots", {"slots": "1", "node": "n1"}),
        ("exclude_slots", {"slots": "4", "node": "n2"}),
        ("include_slots", {"slots": "4", "node": "n2"}),
        ("pause_reconciliation", {}),
        ("resume_reconciliation", {}),
    ):
        world.ask(kind, **arguments)


def _plans(world: Tour) -> None:
    """A plan that is carried out piece by piece, and another one that takes its place."""
    world.ask("change_policy", moves_in_flight="1")
    world.admit("n4")
    world.ask("set_node", node="n4", weight="2")
    world.ask("change_policy", moves_in_flight="0")
    world.left("n4")
    world.run(300, NODES)


def _deaths(world: Tour) -> None:
    """Too many nodes fall silent, come back, and one dies for good."""
    world.run(2_500, ("n1",))
    world.run(2_500, NODES)
    world.run(12_000, ("n1", "n2"))
    world.join("n3", incarnation=2)
    world.heartbeat("n3", incarnation=2)
    world.run(500, ("n1", "n2"))
