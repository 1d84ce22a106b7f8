"""Where requests for a bundle go in each state of its ownership, by one hand-written table."""

from dataclasses import replace

import pytest

from controlplane.config import ROUTING_TABLE, ClusterConfig
from controlplane.core.bundles.bundle import Bundle
from controlplane.core.bundles.ownership_state import OwnershipState
from controlplane.core.bundles.ranges import LAST_HASH
from controlplane.core.routing.replica import RoutingTable
from controlplane.core.values.addresses import Address
from controlplane.core.values.identifiers import Epoch, SlotId, Term
from controlplane.errors import NoRouteError, UnroutableError
from controlplane.inspection import readers
from controlplane.inspection.routes import bundle_route, slot_route, why_unserved
from controlplane.routing.route import BundleRoute, bundle_route_in
from controlplane.testing import MemoryBroker, MemoryLogReader, MemoryTransactionalWriter, VirtualClock
from controlplane.topic_reading.table_follower import TableFollower
from tests.helpers.sources import source_of
from tests.helpers.table_feed import TableFeed

CLUSTER = ClusterConfig("test")
ADDRESSES = {name: (Address("kv", f"{name}.example", 4_000),) for name in ("a", "b")}
FIRST = Bundle("kv", 0, LAST_HASH, "a")
OWNED = replace(FIRST, state=OwnershipState.OWNED, owner_epoch=Epoch(7), state_epoch=Epoch(7), version=1)
RELEASING = replace(OWNED, state=OwnershipState.RELEASING, next_owner="b")
ASSIGNING = replace(RELEASING, state=OwnershipState.ASSIGNING, owner=None, former_owner="a")
SPLITTING = replace(OWNED, state=OwnershipState.SPLITTING, split_algorithm="range_equally_divide")


def table_with(bundle: Bundle) -> RoutingTable:
    """A table of two nodes, and a namespace of this bundle alone, in epoch 1 of term 3."""
    broker = MemoryBroker(VirtualClock())
    broker.create_topic(CLUSTER.topic(ROUTING_TABLE))
    feed = TableFeed(MemoryTransactionalWriter(CLUSTER, broker))
    feed.term = 3
    for name, addresses in ADDRESSES.items():
        feed.node(name, addresses=addresses)
    feed.namespace("kv", ["a"]).bundle(bundle).commit()
    table = readers.read_routing_table(source_of(MemoryLogReader(CLUSTER, broker)))
    assert table is not None
    assert table.bundles == {bundle.bundle_id: bundle}
    return table


@pytest.mark.parametrize(
    ("bundle", "node_id", "is_served", "state", "owner_epoch"),
    [
        (FIRST, "a", True, OwnershipState.OWNED, 0),
        (OWNED, "a", True, OwnershipState.OWNED, 7),
        (SPLITTING, "a", True, OwnershipState.SPLITTING, 7),
        (replace(OWNED, owner="b", former_owner="a", is_forced=True), "b", True, OwnershipState.OWNED, 7),
        (RELEASING, "b", False, OwnershipState.RELEASING, 0),
        (ASSIGNING, "b", False, OwnershipState.ASSIGNING, 0),
    ],
)
def test_requests_go_to_the_owner_or_to_the_next_one(
    bundle: Bundle, node_id: str, is_served: bool, state: OwnershipState, owner_epoch: int
) -> None:
    """A client that is sent away by the former owner knows at once where to go, and that it may have to wait there."""
    route = bundle_route_in(table_with(bundle), "kv", "key")
    assert route == BundleRoute(
        node_id,
        ADDRESSES[node_id],
        bundle.bundle_id,
        Term(3),
        Epoch(1),
        is_served=is_served,
        state=state,
        owner_epoch=Epoch(owner_epoch),
    )
    assert route.address("kv").host == f"{node_id}.example"


@pytest.mark.parametrize(
    ("bundle", "problem"),
    [
        (replace(FIRST, owner=None), "has no owner in epoch 1"),
        (replace(OWNED, owner=None, state=OwnershipState.FREE, former_owner="a"), "has no owner in epoch 1"),
        (replace(RELEASING, next_owner=None), "is being released by 'a' in epoch 1"),
    ],
)
def test_a_bundle_that_goes_nowhere_yet_has_no_route(bundle: Bundle, problem: str) -> None:
    """The node that releases it would refuse the request, so there is nobody to ask until a later epoch."""
    with pytest.raises(NoRouteError, match=problem):
        bundle_route_in(table_with(bundle), "kv", "key")


def test_a_next_owner_that_has_left_is_no_route() -> None:
    """The leader chooses another one; a client has to wait for it, and need not be upgraded."""
    with pytest.raises(NoRouteError, match="goes to 'c', which has left in epoch 1"):
        bundle_route_in(table_with(replace(RELEASING, next_owner="c")), "kv", "key")


def test_a_next_owner_that_cannot_be_read_is_an_error() -> None:
    """Its address is what the client needs."""
    table = replace(table_with(RELEASING), unreadable={"main/node/b": "newer"})
    with pytest.raises(UnroutableError, match="'main/node/b'"):
        bundle_route_in(table, "kv", "key")
    assert bundle_route_in(replace(table_with(OWNED), unreadable=table.unreadable), "kv", "key").node_id == "a"


@pytest.mark.parametrize(
    ("bundle", "shown", "problem"),
    [
        (FIRST, ("Owned", "a", ["kv=a.example:4000"], 0, None, None, []), ""),
        (OWNED, ("Owned", "a", ["kv=a.example:4000"], 7, None, None, []), ""),
        (
            RELEASING,
            ("Releasing", None, [], None, "a", "b", ["kv=b.example:4000"]),
            "no node serves this key in epoch 1, its bundle is Releasing and goes to node 'b': wait for a later epoch",
        ),
        (
            ASSIGNING,
            ("Assigning", None, [], None, None, "b", ["kv=b.example:4000"]),
            "no node serves this key in epoch 1, its bundle is Assigning and goes to node 'b': wait for a later epoch",
        ),
        (
            replace(RELEASING, next_owner=None),
            ("Releasing", None, [], None, "a", None, []),
            "no node serves this key in epoch 1: wait for a later epoch",
        ),
    ],
)
def test_a_shown_route_names_the_node_that_serves(bundle: Bundle, shown: tuple[object, ...], problem: str) -> None:
    """``table route`` is asked why a key is not served: an owner that has to release it is not who serves it."""
    table = table_with(bundle)
    route = bundle_route(table, "kv", "key")
    names = ("state", "owner", "addresses", "owner_epoch", "releasing_node", "next_owner", "next_owner_addresses")
    assert tuple(route[name] for name in names) == shown
    assert why_unserved(table, route) == problem


def test_a_shown_route_to_a_slot_that_is_released_names_both_nodes_and_no_server() -> None:
    """Its leader answers "moved" already, and the next one does not lead it yet."""
    cluster, broker = ClusterConfig("test"), MemoryBroker(VirtualClock())
    broker.create_topic(cluster.topic(ROUTING_TABLE))
    feed = TableFeed(MemoryTransactionalWriter(cluster, broker), slot_count=1).node("a").node("b")
    follower = TableFollower(MemoryLogReader(cluster, broker))
    feed.slot(SlotId(0), "a", "b").commit()
    (table,) = follower.step(0).tables
    assert why_unserved(table, slot_route(table, "key")) == ""
    feed.releasing(SlotId(0), "a", "b", next_leader="b", release_epoch=Epoch(2)).commit()
    (table,) = follower.step(0).tables
    route = slot_route(table, "key")
    assert (route["leader"], route["next_leader"]) == ("a", "b")
    assert why_unserved(table, route) == (
        "no node may serve this key in epoch 2: its slot is released by node 'a' and will be led by node 'b'; "
        "wait for a later epoch"
    )
