"""A split of all slots, as routing clients and the nodes that hold them see it."""

from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from controlplane.adapters.system_threads import SystemThreads
from controlplane.config import ClusterConfig
from controlplane.core.cluster.policy import ClusterPolicy
from controlplane.core.session.node_session import SessionState
from controlplane.core.values.identifiers import Epoch
from controlplane.core.values.replica_status import ReplicaStatus
from controlplane.node import NodeAgent, NodeCallbacks, SlotGained, SlotLost
from controlplane.node.callbacks import Access
from controlplane.node.description import NodeDescription
from controlplane.node.holdings import HoldingBook
from controlplane.routing import RoutingClient
from controlplane.testing import MemoryEventWriter
from controlplane.topic_reading.table_follower import TableFollower
from tests.helpers.polling import poll_until
from tests.helpers.published_world import PublishedWorld

CLUSTER = ClusterConfig("test")


def three_nodes(**policy: int) -> PublishedWorld:
    """A published cluster of three nodes with eight slots."""
    world = PublishedWorld(CLUSTER, ClusterPolicy(slot_count=8, **policy))  # type: ignore[arg-type]  # by name
    world.admit("n1", "n2", "n3")
    return world


@given(st.lists(st.text(max_size=12), min_size=1, max_size=30), st.sampled_from((16, 64)))
@settings(max_examples=15, deadline=None)
def test_client_routes_right_over_a_split(keys: list[str], slot_count: int) -> None:
    """Before it by the old table, after it by the new one, never by a mixture: slot count and rows swap together."""
    world = three_nodes()
    client = RoutingClient(world.reader(), SystemThreads(), cluster=CLUSTER.name, registry=CollectorRegistry())
    read(client)
    before = {key: client.route(key) for key in keys}
    # During a pause nothing moves: every key has to go where it went.
    world.ask("pause_reconciliation")
    world.ask("change_policy", slot_count=str(slot_count))
    read(client)
    for key in keys:
        route = client.route(key)
        assert (route.node_id, route.followers) == (before[key].node_id, before[key].followers)
        assert route.slot_id % 8 == before[key].slot_id
        assert (route.term, route.leader_epoch) >= (before[key].term, before[key].leader_epoch)
    world.ask("resume_reconciliation")
    read(client)
    table = client.table
    assert table is not None
    assert table.settings.slot_count == len(table.slots) == slot_count
    for key in keys:
        route = client.route(key)
        assert route.node_id == world.state.slots.table[route.slot_id].leader
    client.close()


def read(client: RoutingClient) -> None:
    """Steps to the end, which is told only where a poll finds nothing more."""
    for _ in range(2):
        client.step(0)


def test_late_client_reads_the_split_table() -> None:
    """One that begins after the split meets rows of both counts on its way, and shows only whole tables."""
    world = three_nodes()
    world.ask("change_policy", slot_count="32")
    world.ask("drain_node", node="n1")
    client = RoutingClient(world.reader(), SystemThreads(), cluster=CLUSTER.name, registry=CollectorRegistry())
    read(client)
    assert client.table is not None
    assert client.table.slots == world.state.slots.table
    client.close()


def test_holder_is_told_of_which_slot_a_part_is() -> None:
    """It has the data already; whoever gains a part anew is sent to the holders of the slot that it was split from."""
    world = three_nodes(replica_count=1)
    books = {name: HoldingBook(name) for name in ("n1", "n2", "n3")}
    followers = {name: TableFollower(world.reader()) for name in books}
    for name, book in books.items():
        for table in followers[name].step(0).tables:
            book.begin(book.follow(table, 1))
        for slot_id in world.held(name):
            book.mark_ready(slot_id, None, 1)
    before = world.state.slots.table
    world.ask("change_policy", slot_count="16")
    for name, book in books.items():
        (table,) = followers[name].step(0).tables
        changes = book.follow(table, 1)
        gained = {slot.slot_id: slot for slot in changes.gained}
        assert set(gained) >= {slot_id for slot_id in world.held(name) if slot_id >= 8}
        for slot_id, slot in gained.items():
            former = before[slot_id % 8].leader
            assert slot.part_of == (slot_id % 8 if former == name and slot_id >= 8 else None)
            assert former == name or slot.sources[:1] == (former,)
        for lost in changes.lost:
            assert lost.led
        kept = {slot_id for slot_id in world.held(name) if slot_id < 8 and before[slot_id].leader == name}
        assert all(book.ownership(slot_id).access is Access.ACCEPT for slot_id in kept)
        groups = book.report(wall_ms=1).groups
        statuses = {slot_id: group.status for group in groups for slot_id in group.slot_ids}
        assert all(statuses[slot_id] is ReplicaStatus.MIGRATING for slot_id in gained)
    moved = [slot for slot in world.state.slots.table if slot.leader != before[slot.slot_id % 8].leader]
    assert moved, "the case has to have a part that moves"


def test_who_skipped_epochs_fetches_its_parts() -> None:
    """It may have lost the slot meanwhile, and with it writes that went to others."""
    world = three_nodes()
    book, follower = HoldingBook("n1"), TableFollower(world.reader())
    for table in follower.step(0).tables:
        book.follow(table, 1)
    world.ask("change_policy", slot_count="16")
    world.ask("drain_node", node="n2")
    changes = book.follow(follower.step(0).tables[-1], 1)
    parts = [slot for slot in changes.gained if slot.slot_id >= 8]
    assert parts
    assert {slot.part_of for slot in parts} == {None}
    assert changes.epoch == Epoch(world.state.epoch)


class Store(NodeCallbacks):
    """Keeps data by slot as a service may: dropped with the loss of the slot, at hand for a part of it."""

    def __init__(self) -> None:
        self.kept: set[int] = set()
        self.fetched: set[int] = set()
        self.told_apart: set[int] = set()

    def on_slots_gained(self, gained: Sequence[SlotGained]) -> None:
        """Tell a part apart from what is here, fetch everything else."""
        for slot in gained:
            if slot.part_of is None:
                self.fetched.add(slot.slot_id)
            else:
                assert slot.part_of in self.kept, f"slot {slot.part_of} was lost before its part {slot.slot_id} came"
                self.told_apart.add(slot.slot_id)
            self.kept.add(slot.slot_id)

    def on_slots_lost(self, lost: Sequence[SlotLost]) -> None:
        """Drop."""
        self.kept -= {slot.slot_id for slot in lost}


@pytest.fixture
def world() -> PublishedWorld:
    """A cluster of one node with eight slots, each of them held once."""
    world = PublishedWorld(CLUSTER, ClusterPolicy(slot_count=8, replica_count=1, return_window_ms=0))
    world.admit("n2")
    return world


@pytest.fixture
def store() -> Store:
    """Hears what the agent is told."""
    return Store()


@pytest.fixture
def agent(world: PublishedWorld, store: Store) -> Iterator[NodeAgent]:
    """A second node, which holds its share and has the data."""
    began_ms = world.clock.wall_ms()
    agent = NodeAgent(
        writer=MemoryEventWriter(CLUSTER, world.broker),
        reader=world.reader(),
        clock=world.clock,
        threads=SystemThreads(),
        node=NodeDescription("n1"),
        cluster=CLUSTER.name,
        callbacks=store,
    ).start()
    poll_until(lambda: agent.state is SessionState.JOINING)
    world.join("n1", incarnation=began_ms)
    world.run(1_000, ("n1", "n2"))
    poll_until(lambda: store.kept == world.held("n1"))
    for slot_id in store.kept:
        agent.slot_ready(slot_id)
    yield agent
    agent.stop(drain=False)


def test_part_is_told_before_the_loss_of_its_slot(world: PublishedWorld, store: Store, agent: NodeAgent) -> None:
    """Whoever drops a slot's data with the slot must still have it when the part comes that stays with him."""
    goes = min(store.kept)
    world.intent("split", "change_policy", slot_count="16")
    world.intent("pin", "pin_slots", slots=str(goes), node="n2")
    world.tick()
    assert world.decide() is not None
    assert goes not in world.held("n1")
    assert goes + 8 in world.held("n1")
    poll_until(lambda: store.kept == world.held("n1"))
    agent.check()
    assert goes + 8 in store.told_apart
    assert store.told_apart | store.fetched >= store.kept
