"""A split of all slots, as routing clients and the nodes that hold them see it."""

from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from controlplane.config import ClusterConfig
from controlplane.core.identifiers import Epoch
from controlplane.core.policy import Policy
from controlplane.core.records import ReplicaStatus
from controlplane.node.callbacks import Access
from controlplane.node.holdings import HoldingBook
from controlplane.routing import RoutingClient, RoutingMetrics
from controlplane.table_follower import TableFollower
from tests.helpers.published_world import PublishedWorld

CLUSTER = ClusterConfig("test")


def three_nodes(**policy: int) -> PublishedWorld:
    """A published cluster of three nodes with eight slots."""
    world = PublishedWorld(CLUSTER, Policy(slot_count=8, **policy))  # type: ignore[arg-type]  # by name
    world.admit("n1", "n2", "n3")
    return world


@given(st.lists(st.text(max_size=12), min_size=1, max_size=30), st.sampled_from((16, 64)))
@settings(max_examples=15, deadline=None)
def test_client_routes_right_over_a_split(keys: list[str], slot_count: int) -> None:
    """Before it by the old table, after it by the new one, never by a mixture: slot count and rows swap together."""
    world = three_nodes()
    client = RoutingClient(world.reader(), cluster=CLUSTER.name, metrics=RoutingMetrics(CollectorRegistry()))
    client.step(0)
    before = {key: client.route(key) for key in keys}
    # During a pause nothing moves: every key has to go where it went.
    world.ask("pause_reconciliation")
    world.ask("change_policy", slot_count=str(slot_count))
    client.step(0)
    for key in keys:
        route = client.route(key)
        assert (route.node_id, route.followers) == (before[key].node_id, before[key].followers)
        assert route.slot_id % 8 == before[key].slot_id
        assert (route.term, route.leader_epoch) >= (before[key].term, before[key].leader_epoch)
    world.ask("resume_reconciliation")
    client.step(0)
    table = client.table
    assert table is not None
    assert table.settings.slot_count == len(table.slots) == slot_count
    for key in keys:
        route = client.route(key)
        assert route.node_id == world.state.slots[route.slot_id].leader
    client.close()


def test_late_client_reads_the_split_table() -> None:
    """One that begins after the split meets rows of both counts on its way, and shows only whole tables."""
    world = three_nodes()
    world.ask("change_policy", slot_count="32")
    world.ask("drain_node", node="n1")
    client = RoutingClient(world.reader(), cluster=CLUSTER.name, metrics=RoutingMetrics(CollectorRegistry()))
    client.step(0)
    assert client.table is not None
    assert client.table.slots == world.state.slots
    client.close()


def test_holder_is_told_of_which_slot_a_part_is() -> None:
    """It has the data already; whoever gains a part anew is sent to the holders of the slot that it was split from."""
    world = three_nodes(replica_count=1)
    books = {name: HoldingBook(name) for name in ("n1", "n2", "n3")}
    followers = {name: TableFollower(world.reader()) for name in books}
    for name, book in books.items():
        for table in followers[name].step(0).tables:
            book.follow(table, 1)
        for slot_id in world.held(name):
            book.mark_ready(slot_id, None, 1)
    before = world.state.slots
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
        statuses = {status.slot_id: status.status for status in book.statuses(wall_ms=1)[0]}
        assert all(statuses[slot_id] is ReplicaStatus.MIGRATING for slot_id in gained)
    moved = [slot for slot in world.state.slots if slot.leader != before[slot.slot_id % 8].leader]
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
