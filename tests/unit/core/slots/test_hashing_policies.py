"""The slot policies ``ring`` and ``rendezvous``: tables that follow from names and weights."""

import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

import pytest

from controlplane.core.cluster.policy import ClusterPolicy
from controlplane.core.intents.events import IntentOutcome
from controlplane.core.membership.events import NodeAdmitted, NodeFenced, NodeRemoved
from controlplane.core.slots.answers import ask
from controlplane.core.slots.minimal.contract import PlacementNode
from controlplane.core.slots.pins import Exclusion, Pin
from controlplane.core.slots.policies import BUILT_IN_POLICIES
from controlplane.core.slots.policies.rendezvous import score
from controlplane.core.slots.policies.ring import RingPolicy, slot_key
from controlplane.core.slots.policy_contract import OrderKind, SlotAnswer, SlotPolicy, SlotRequest
from controlplane.core.slots.reports import SlotReport, SlotStatus
from controlplane.core.slots.ring.hash_ring import HashRing
from controlplane.core.slots.table import Slot, empty_table
from controlplane.core.values.identifiers import Epoch, NodeId
from controlplane.core.values.replica_status import ReplicaStatus
from controlplane.errors import ConfigurationError
from tests.helpers.logs import complaints_of
from tests.helpers.world import World

RING, RENDEZVOUS = BUILT_IN_POLICIES["ring"], BUILT_IN_POLICIES["rendezvous"]
BOTH = pytest.mark.parametrize("policy", [RING, RENDEZVOUS], ids=lambda policy: policy.name)
SLOTS = 512


def nodes(*names: NodeId, **weights: int) -> tuple[PlacementNode, ...]:
    """Nodes of weight 1, and nodes with their weights, by name."""
    members = [*((name, 1) for name in names), *weights.items()]
    return tuple(PlacementNode(name, weight, 0) for name, weight in sorted(members))


def request(
    members: tuple[PlacementNode, ...], slots: tuple[Slot, ...] = (), replicas: int = 2, slot_count: int = SLOTS
) -> SlotRequest:
    """A request after these rows, or for the first table."""
    held = slots or empty_table(slot_count)
    epoch = Epoch(max(slot.leader_epoch for slot in held) + 1)
    cluster = ClusterPolicy(slot_count=len(held), replica_count=replicas)
    return SlotRequest(held, members, frozenset(), cluster, epoch, 0)


def planned(policy: SlotPolicy, asked: SlotRequest) -> tuple[Slot, ...]:
    """The whole table, judged as a leader judges it."""
    answer, refusal = ask(policy, asked)
    assert refusal is None
    return answer.slots


def holders(table: tuple[Slot, ...]) -> list[frozenset[NodeId]]:
    """The nodes of each slot."""
    return [frozenset(slot.replicas) for slot in table]


@BOTH
def test_options_are_refused_by_name(policy: SlotPolicy) -> None:
    """Neither has any."""
    policy.check_options({})
    with pytest.raises(ConfigurationError, match=f"nodes: {policy.name} has no options"):
        policy.check_options({"nodes": "3"})


@BOTH
@pytest.mark.parametrize("replicas", [1, 2, 3, 5])
def test_each_slot_has_its_replicas_as_far_as_there_are_nodes(policy: SlotPolicy, replicas: int) -> None:
    """One node, three, and none; nodes of weight 0 hold nothing."""
    for members, expected in ((nodes("a"), 1), (nodes("a", "b", "c", d=0), 3), (nodes(a=0), 0), ((), 0)):
        table = planned(policy, request(members, replicas=replicas))
        assert {len(slot.replicas) for slot in table} == {min(replicas, expected)}
        assert {name for slot in table for name in slot.replicas} <= {node.node_id for node in members if node.weight}


@BOTH
def test_the_table_does_not_depend_on_how_it_came_about(policy: SlotPolicy) -> None:
    """Names that share virtual nodes included: a return restores the table, and a second plan changes nothing."""
    names = [f"n{number}" for number in range(1, 13)]
    first = planned(policy, request(nodes(*names)))
    without = planned(policy, request(nodes(*names[:-2]), first))
    back = planned(policy, request(nodes(*names), without))
    assert holders(back) == holders(first)
    assert planned(policy, request(nodes(*names), back)) == back


@BOTH
def test_only_slots_of_those_who_come_or_go_move(policy: SlotPolicy) -> None:
    """Nodes that stay give up nothing to one another."""
    before = planned(policy, request(nodes("ash", "elm", "fir", "oak"), replicas=3))
    after = planned(policy, request(nodes("ash", "elm", "fir", "oak", "yew"), before, replicas=3))
    for old, new in zip(holders(before), holders(after), strict=True):
        assert new - old <= {"yew"}
    left = planned(policy, request(nodes("elm", "fir", "oak", "yew"), after, replicas=3))
    for old, new in zip(holders(after), holders(left), strict=True):
        assert old - new <= {"ash"}


def test_the_ring_leads_by_the_owner_of_the_slots_key() -> None:
    """Whatever weights, zones, pins, exclusions and reports say."""
    members = tuple(replace(node, zone="same", capacity=1) for node in nodes("a", "b", c=7))
    asked = replace(
        request(members, replicas=3),
        pins=(Pin(0, "a", leads=True),),
        exclusions=(Exclusion(1, "a"), Exclusion(1, "b")),
        reports={"a": SlotReport((SlotStatus(2, 1, True, ReplicaStatus.HEALTHY, 0),), Epoch(1), 0, 0)},
    )
    ring = HashRing("abc")
    for slot in planned(RING, asked):
        assert slot.leader == ring.owner(f"slot/{slot.slot_id}")
        assert {*slot.followers} == ring.replicas(slot_key(slot.slot_id), 2)
    assert RingPolicy.supported_orders == frozenset()


def test_slots_of_numbered_nodes_are_not_at_their_virtual_nodes() -> None:
    """The number alone as key would give slots 10 to 19 and 100 to 199 to a node that is named ``1``."""
    led = Counter(slot.leader for slot in planned(RING, request(nodes("0", "1", "2"))))
    assert all(100 < led[name] < 250 for name in "012")


def test_rendezvous_follows_the_weights() -> None:
    """With one replica, and a heavier node only gains."""
    asked = request(nodes("b", "c", a=2), replicas=1, slot_count=4_096)
    before = planned(RENDEZVOUS, asked)
    led = Counter(slot.leader for slot in before)
    assert abs(led["a"] - 2_048) < 150
    assert abs(led["b"] - 1_024) < 120
    after = planned(RENDEZVOUS, request(nodes("b", "c", a=3), before, replicas=1))
    assert all(new.leader in (old.leader, "a") for old, new in zip(before, after, strict=True))
    assert RENDEZVOUS.supported_orders == {OrderKind.WEIGHTS}


def test_great_weights_cost_nothing() -> None:
    """A score is one hash, whatever the weight; only ratios of weights matter."""
    small = planned(RENDEZVOUS, request(nodes(a=1, b=2, c=3)))
    great = planned(RENDEZVOUS, request(nodes(a=10**15, b=2 * 10**15, c=3 * 10**15)))
    assert sum(old != new for old, new in zip(holders(small), holders(great), strict=True)) == 0
    assert score(0, PlacementNode("a", 2, 0)) == 2 * score(0, PlacementNode("a", 1, 0)) > 0


def test_rendezvous_keeps_leaders_and_prefers_heirs_with_the_data() -> None:
    """A joiner leads nothing that has a leader; after a death a ready holder leads, else one that held the slot."""
    four = planned(RENDEZVOUS, request(nodes("a", "b", "c", "d"), replicas=3))
    five = planned(RENDEZVOUS, request(nodes("a", "b", "c", "d", "e"), four, replicas=3))
    assert any("e" in slot.replicas for slot in five)
    for old, new in zip(four, five, strict=True):
        assert new.leader == old.leader if old.leader in new.replicas else new.leader in old.followers
    reports = {
        name: SlotReport(tuple(SlotStatus(n, 1, True, ReplicaStatus.HEALTHY, 0) for n in range(SLOTS)), Epoch(1), 0, 0)
        for name in ("e",)
    }
    after = planned(RENDEZVOUS, replace(request(nodes("b", "c", "d", "e"), five, replicas=3), reports=reports))
    for old, new in zip(five, after, strict=True):
        if old.leader == "a":
            assert new.leader == "e" if "e" in new.replicas else new.leader in old.followers


@BOTH
def test_a_cluster_goes_through_its_life_under_the_policy(policy: SlotPolicy) -> None:
    """Chosen while the cluster runs; a drain, a death and a return; the log verifies and ``minimal`` leads back."""
    world = World(ClusterPolicy(slot_count=64))
    world.admit("n1", "n2", "n11")
    assert world.ask("change_policy", slot_policy=policy.name).outcome is IntentOutcome.DONE
    for node in ("n3", "n4"):
        world.admit(node)
    assert world.ask("pin_slots", slots="3", node="n1").detail.endswith(f"{policy.name!r} does not look at pins")
    assert world.ask("drain_node", node="n2").outcome is IntentOutcome.DONE
    assert "n2" not in {name for slot in world.state.slots.table for name in slot.replicas}
    assert world.ask("change_policy", slot_policy="minimal").outcome is IntentOutcome.DONE
    assert complaints_of(world.decisions) == []


@pytest.mark.parametrize("seed", range(4))
def test_a_live_table_is_that_of_a_ring_with_the_same_history(seed: int) -> None:
    """Joins, departures, deaths and returns, in any order, of nodes whose names share nothing."""
    choose = random.Random(seed)
    world = World(ClusterPolicy(slot_count=64, slot_policy="ring", replica_count=3))
    names = ("ash", "beech", "cedar", "elm", "fir", "oak", "yew")
    ring = HashRing()
    for step in range(1, 25):
        node = choose.choice(names)
        if node not in ring.nodes:
            world.join(node, incarnation=step)
            world.heartbeat(node, incarnation=step)
            ring.add(node)
        elif len(ring.nodes) > 3:
            ring.remove(node)
            if choose.random() < 0.5:
                world.left(node, world.state.membership.nodes[node].incarnation)
        world.run(4_000, beating=tuple(ring.nodes))
        for slot in world.state.slots.table:
            key = slot_key(slot.slot_id)
            assert (slot.leader, frozenset(slot.followers)) == (ring.owner(key), ring.replicas(key, 2))
    events = {type(event) for decision in world.decisions for event in decision.events}
    assert events >= {NodeAdmitted, NodeFenced, NodeRemoved}
    assert complaints_of(world.decisions) == []


class Liar(SlotPolicy):
    """Bears the name of a policy, and decides as for other nodes, or with another leader."""

    def __init__(self, policy: SlotPolicy, *, leads_otherwise: bool = False) -> None:
        self.name = policy.name
        self._policy = policy
        self._leads_otherwise = leads_otherwise

    def check_options(self, options: Mapping[str, str]) -> None:
        """Anything goes."""

    def plan(self, request: SlotRequest) -> SlotAnswer:
        """The policy's rows without the last node, or led by the last holder."""
        if not self._leads_otherwise:
            return self._policy.plan(replace(request, nodes=request.nodes[:-1] or request.nodes))
        rows = self._policy.plan(request).slots
        return SlotAnswer(
            tuple(
                held.assigned(max(row.replicas), row.replicas, request.epoch)
                for row, held in zip(rows, request.held, strict=True)
            )
        )


@BOTH
def test_log_verification_finds_rows_that_names_and_weights_do_not_explain(policy: SlotPolicy) -> None:
    """Also while rows wait for their turn; a leader of one's own choice is wrong on the ring only."""
    for lie, wrong in ((Liar(policy), True), (Liar(policy, leads_otherwise=True), policy is RING), (policy, False)):
        cluster = ClusterPolicy(slot_count=64, slot_policy=policy.name, moves_in_flight=4)
        world = World(cluster, {policy.name: lie})
        world.admit("n1", "n11", "n2")
        world.admit("n3")
        world.ask("set_node", node="n3", weight="3")
        found = complaints_of(world.decisions)
        assert any("has to go to" in sentence for sentence in found) == wrong, found
