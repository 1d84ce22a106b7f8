"""Lets things happen in a cluster that is well; the seed chooses them."""

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from controlplane.codec.inputs import encode_input
from controlplane.config import HEARTBEATS, INTENTS, MEMBERSHIP
from controlplane.core.election.steps import ControllerPhase
from controlplane.core.intents.intent import IntentKind
from controlplane.core.log.state import State
from controlplane.core.membership.inputs import Heartbeat, NodeJoined, NodeLeft
from controlplane.core.membership.node import NodeRole
from controlplane.core.slots.pins import Exclusion, Pin
from controlplane.core.values.identifiers import Epoch, Incarnation
from tests.simulation.setting import CLUSTER, CONTROLLERS, NODES, SPARE_NODES
from tests.simulation.work_kinds import WorkKind
from tests.simulation.world import World

_CLOCK_LOST: Final = 0.3
"""How probably a machine has forgotten some of the time when it starts again."""
_WHOLE_NAMESPACE: Final = 0.3
"""How probably an order names all bundles of a namespace."""
_ARGUMENTS = Callable[[random.Random], Mapping[str, str]]


def _node(choose: random.Random) -> Mapping[str, str]:
    return {"node": choose.choice(NODES)}


def _slots(choose: random.Random) -> Mapping[str, str]:
    first = choose.randrange(60)
    return {"slots": f"{first}-{first + choose.randrange(4)}", "node": choose.choice(NODES)}


def _one_of(name: str, *values: str) -> _ARGUMENTS:
    return lambda choose: {name: choose.choice(values)}


def _nothing(_: random.Random) -> Mapping[str, str]:
    return {}


_NO_BUNDLE: Final = {"bundles": "kv/0x00000000_0x00000001"}
"""Stands for the bundles of an order where the state has none: the order is refused."""
_SPLITS: Final = (
    {"by": "number", "numbers": "2"},
    {"by": "number", "numbers": "3"},
    {"by": "range_equally_divide"},
    {"by": "topic_count_equally_divide"},
)
_BUNDLE_ORDERS: Final = frozenset({WorkKind.BUNDLE_TRANSFER, WorkKind.BUNDLE_UNLOAD, WorkKind.BUNDLE_SPLIT})

_INTENTS: Final[Mapping[WorkKind, tuple[IntentKind, _ARGUMENTS]]] = {
    WorkKind.DRAIN: (IntentKind.DRAIN_NODE, _node),
    WorkKind.UNDRAIN: (IntentKind.UNDRAIN_NODE, _node),
    WorkKind.EXCLUDE: (IntentKind.EXCLUDE_NODE, _node),
    WorkKind.INCLUDE: (IntentKind.INCLUDE_NODE, _node),
    WorkKind.SET_NODE: (
        IntentKind.SET_NODE,
        lambda choose: {**_node(choose), **_one_of("weight", "1", "2", "3")(choose)},
    ),
    WorkKind.RESET_NODE: (IntentKind.RESET_NODE, _node),
    WorkKind.PIN: (IntentKind.PIN_SLOTS, _slots),
    WorkKind.UNPIN: (IntentKind.UNPIN_SLOTS, _slots),
    WorkKind.EXCLUDE_SLOTS: (IntentKind.EXCLUDE_SLOTS, _slots),
    WorkKind.INCLUDE_SLOTS: (IntentKind.INCLUDE_SLOTS, _slots),
    WorkKind.REFRESH: (IntentKind.REFRESH_TABLE, _nothing),
    WorkKind.PAUSE: (IntentKind.PAUSE_RECONCILIATION, _nothing),
    WorkKind.RESUME: (IntentKind.RESUME_RECONCILIATION, _nothing),
    WorkKind.REPLICAS: (IntentKind.CHANGE_POLICY, _one_of("replica_count", "1", "2", "3")),
    WorkKind.SPLIT: (IntentKind.CHANGE_POLICY, _one_of("slot_count", "128")),
    WorkKind.SILENCE_LIMIT: (IntentKind.CHANGE_POLICY, _one_of("silence_limit_ms", "1500", "2000", "3000")),
    WorkKind.PACING: (IntentKind.CHANGE_POLICY, _one_of("moves_in_flight", "0", "4", "16")),
    WorkKind.SLOT_POLICY: (IntentKind.CHANGE_POLICY, _one_of("slot_policy", "minimal", "ring", "sofa", "rendezvous")),
    WorkKind.NAMESPACE: (IntentKind.CREATE_NAMESPACE, _one_of("namespace", "kv", "tenant/orders", "tenant/eu/orders")),
    WorkKind.BUNDLE_TRANSFER: (IntentKind.TRANSFER_BUNDLES, lambda choose: {**_NO_BUNDLE, **_node(choose)}),
    WorkKind.BUNDLE_UNLOAD: (IntentKind.UNLOAD_BUNDLES, lambda _: _NO_BUNDLE),
    WorkKind.BUNDLE_SPLIT: (
        IntentKind.SPLIT_BUNDLES,
        lambda choose: {**_NO_BUNDLE, **choose.choice(_SPLITS)},
    ),
    WorkKind.NAMESPACE_DELETED: (IntentKind.DELETE_NAMESPACE, _one_of("namespace", "kv", "tenant/orders")),
    WorkKind.BUNDLE_PACING: (IntentKind.CHANGE_POLICY, _one_of("bundle_moves_in_flight", "0", "1", "3")),
    WorkKind.TENANT: (
        IntentKind.SET_TENANT,
        lambda choose: {
            **_one_of("tenant", "tenant", "idle")(choose),
            **_one_of("clusters", "", "eu", CLUSTER, f"eu,{CLUSTER}")(choose),
        },
    ),
    WorkKind.TENANT_DELETED: (IntentKind.DELETE_TENANT, _one_of("tenant", "tenant", "idle")),
    WorkKind.OVERRIDE: (IntentKind.OVERRIDE_SELF_PRESERVATION, _nothing),
    WorkKind.NONSENSE_INTENT: (IntentKind.DRAIN_NODE, _one_of("node", "nobody")),
    WorkKind.INTENT_TWICE: (IntentKind.REFRESH_TABLE, _nothing),
}


class Workload:
    """Carries out each :class:`WorkKind` in a world."""

    def __init__(self, world: World, state: Callable[[], State]) -> None:
        """Begin without work; ``state`` returns the present state by the log."""
        self._world = world
        self._state = state

    def do(self, kind: WorkKind, choose: random.Random, name: str) -> None:
        """Let it happen; ``name`` is unique to this happening."""
        world = self._world
        if kind in _INTENTS:
            intent, arguments = _INTENTS[kind]
            asked = self._standing(kind, choose) or {**arguments(choose), **self._bundles(kind, choose)}
            world.ask(name, intent.value, asked)
            if kind is WorkKind.INTENT_TWICE:
                again_ms = world.scheduler.now_ms + choose.choice((0, choose.randint(50, 1_500)))
                world.scheduler.at(again_ms, lambda: world.ask(name, intent.value, asked))
            return
        match kind:
            case WorkKind.NODE_JOINS:
                world.start_node(choose.choice(SPARE_NODES))
            case WorkKind.NODE_LEAVES | WorkKind.NODE_LEAVES_AT_ONCE:
                node_id = choose.choice((*SPARE_NODES, NODES[-1]))
                if node_id in world.agents:
                    world.stop_node(node_id, drain=kind is WorkKind.NODE_LEAVES)
            case WorkKind.NODE_RESTARTS:
                node_id = choose.choice(NODES)
                world.kill(node_id)
                if choose.random() < _CLOCK_LOST:
                    world.machines[node_id].clock.wall_step_ms -= 5_000
                world.start_node(node_id)
            case WorkKind.RESIGNATION:
                leaders = [
                    each.name for each in world.running.values() if each.controller.phase is ControllerPhase.LEADING
                ]
                asked = {"controller": choose.choice(sorted(leaders) or CONTROLLERS)}
                world.ask(name, IntentKind.RESIGN_LEADER.value, asked)
            case WorkKind.BAD_RECORD:
                topic = choose.choice((HEARTBEATS, MEMBERSHIP, INTENTS))
                world.send(topic, "stranger", choose.randbytes(choose.randrange(40)), 0)
            case WorkKind.STALE_HEARTBEAT:
                stale = Heartbeat(choose.choice(NODES), Incarnation(1), 0, Epoch(0), NodeRole.DATA)
                world.send(HEARTBEATS, stale.node_id, encode_input(stale))
            case _:
                message = f"{kind} is neither an intent of _INTENTS nor has a case here"
                raise ValueError(message)

    def _standing(self, kind: WorkKind, choose: random.Random) -> Mapping[str, str]:
        """An existing pin or exclusion, for an intent that removes one. Random slots would hardly ever hit one."""
        slots = self._state().slots
        orders: Mapping[WorkKind, Sequence[Pin | Exclusion]] = {
            WorkKind.UNPIN: slots.pins,
            WorkKind.INCLUDE_SLOTS: slots.exclusions,
        }
        standing = orders.get(kind, ())
        if not standing:
            return {}
        chosen = choose.choice(standing)
        return {"slots": str(chosen.slot_id), "node": chosen.node_id}

    def _bundles(self, kind: WorkKind, choose: random.Random) -> Mapping[str, str]:
        """Existing bundles for an order that names some: one, or all of its namespace if it moves them."""
        known = sorted(self._state().bundles.by_id)
        if kind not in _BUNDLE_ORDERS or not known:
            return {}
        chosen = choose.choice(known)
        if kind is not WorkKind.BUNDLE_SPLIT and choose.random() < _WHOLE_NAMESPACE:
            return {"bundles": chosen.rpartition("/")[0]}
        return {"bundles": chosen}

    def let_names_go(self, count: int) -> None:
        """Nodes have joined and left, and are remembered."""
        for number in range(count):
            name = f"gone-{number}"
            self._world.without_process.add(name)
            joined = NodeJoined(name, 1, NodeRole.SESSION, (), "", 1, 0, "1", 0)
            self._world.send(MEMBERSHIP, name, encode_input(joined))
            self._world.send(MEMBERSHIP, name, encode_input(NodeLeft(name, 1, "gone")))

    def tidy_up(self) -> None:
        """Operators revoke the orders that keep a cluster from being healthy, and missing nodes come back."""
        ask = self._world.ask
        ask("end-resume", IntentKind.RESUME_RECONCILIATION.value, {})
        ask("end-override", IntentKind.OVERRIDE_SELF_PRESERVATION.value, {})
        for node_id in NODES:
            ask(f"end-undrain-{node_id}", IntentKind.UNDRAIN_NODE.value, {"node": node_id})
            ask(f"end-include-{node_id}", IntentKind.INCLUDE_NODE.value, {"node": node_id})
            self._world.start_node(node_id)
