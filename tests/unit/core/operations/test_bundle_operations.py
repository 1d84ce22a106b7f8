"""What operators ask for bundles: transfers, unloads, splits, and the end of a namespace."""

from dataclasses import replace

import pytest

from controlplane.core.bundles.bundle import Bundle, Namespace, bundles_at_level_1
from controlplane.core.bundles.events import (
    BundleOrdersEnded,
    BundleOrdersGiven,
    NamespaceCreated,
    NamespaceEnding,
)
from controlplane.core.bundles.orders import BundleOrder, BundleOrderKind, EndedOrder, OrderOutcome
from controlplane.core.bundles.ownership_state import OwnershipState
from controlplane.core.bundles.ranges import LAST_HASH
from controlplane.core.intents.intent import IntentKind
from controlplane.core.log.apply import apply
from controlplane.core.operations.argument_checks import check_arguments
from controlplane.core.operations.bundle_operations import SPLIT_ALGORITHMS
from controlplane.errors import ConfigurationError
from tests.helpers.bundle_orders import (
    DELETE,
    DONE,
    FIRST,
    FOURTH,
    REFUSED,
    SECOND,
    SPLIT,
    THIRD,
    TRANSFER,
    UNLOAD,
    ask,
    cluster,
    orders_of,
    with_orders,
    with_rows,
)


def test_bundles_are_ordered_to_a_node() -> None:
    """Whatever the order in which they are listed, and each once."""
    answer, events, _ = ask(cluster(), TRANSFER, bundles=f"{SECOND}, {FIRST},{SECOND}", node="n2")
    assert answer == (DONE, f"2 bundles ({FIRST}, {SECOND}) are ordered to node 'n2'")
    orders = (BundleOrder(FIRST, BundleOrderKind.TRANSFER, "n2"), BundleOrder(SECOND, BundleOrderKind.TRANSFER, "n2"))
    assert events == [BundleOrdersGiven(orders)]


def test_a_namespace_stands_for_all_of_its_bundles() -> None:
    """Not for those of another one, also beside single bundles."""
    _, events, _ = ask(cluster(), UNLOAD, bundles=f"acme/orders,{FOURTH}")
    ids = [order.bundle_id for order in orders_of(events)]
    assert ids == ["acme/orders/0x00000000_0x80000000", "acme/orders/0x80000000_0xffffffff", FOURTH]


def test_bundles_stay_with_the_owner_that_they_are_ordered_to() -> None:
    """An answer says so, and only the others are ordered."""
    state = with_rows(cluster(), replace(cluster().bundles.by_id[THIRD], owner="n2"))
    answer, events, _ = ask(state, TRANSFER, bundles=THIRD, node="n2")
    assert (answer, events) == ((DONE, f"bundle {THIRD!r} is owned by node 'n2' already"), [])
    answer, events, _ = ask(state, TRANSFER, bundles=f"{THIRD},{FOURTH}", node="n2")
    assert [order.bundle_id for order in orders_of(events)] == [FOURTH]
    assert answer.detail == (
        f"bundle {FOURTH!r} is ordered to node 'n2'; bundle {THIRD!r} is owned by node 'n2' already"
    )


def test_a_bundle_that_its_owner_releases_does_not_stay() -> None:
    """It is on its way to another node, so that it has to come back."""
    row = replace(cluster().bundles.by_id[FIRST], state=OwnershipState.RELEASING, next_owner="n2", version=2)
    _, events, _ = ask(with_rows(cluster(), row), TRANSFER, bundles=FIRST, node="n1")
    assert [order.bundle_id for order in orders_of(events)] == [FIRST]


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("n3", "node 'n3' is unknown; known are drains, excluded, fenced, n1, n2 and 1 more"),
        ("drains", "node 'drains' drains: it receives no bundles"),
        ("fenced", "node 'fenced' is fenced: it cannot own bundles until it joins again"),
        ("gone", "node 'gone' has left: it cannot own bundles until it joins again"),
        ("excluded", "node 'excluded' is excluded: it receives no bundles until it is included again"),
        ("session", "node 'session' is a session node: only data nodes own bundles"),
    ],
)
def test_a_node_that_may_receive_nothing_is_no_destination(name: str, why: str) -> None:
    """Each for its own reason."""
    assert ask(cluster(), TRANSFER, bundles=FIRST, node=name)[:2] == ((REFUSED, why), [])


@pytest.mark.parametrize(
    ("bundles", "why"),
    [
        ("kw", "there is no namespace 'kw'; known are acme/orders, kv, kv2"),
        (
            "0x00000000_0x40000000",
            (
                "there is no namespace '0x00000000_0x40000000'; known are acme/orders, kv, kv2; "
                "a bundle is written with its namespace, as in NAMESPACE/RANGE"
            ),
        ),
        ("kw/0x00000000_0x40000000", "there is no namespace 'kw'; known are acme/orders, kv, kv2"),
        (
            f"{FIRST},kv/0x00000000_0x20000000",
            f"there is no bundle 'kv/0x00000000_0x20000000': its hashes are in {FIRST}",
        ),
        (
            "kv/0x20000000_0x80000000",
            f"there is no bundle 'kv/0x20000000_0x80000000': its hashes are in {FIRST}, {SECOND}",
        ),
    ],
)
def test_a_list_with_an_unknown_bundle_is_refused_as_a_whole(bundles: str, why: str) -> None:
    """The answer names what there is."""
    for kind, others in ((TRANSFER, {"node": "n2"}), (UNLOAD, {}), (SPLIT, {"by": "number", "numbers": "2"})):
        assert ask(cluster(), kind, bundles=bundles, **others)[:2] == ((REFUSED, why), [])


@pytest.mark.parametrize("text", ["", ",", "kv,", "A B", "kv/0x0_0x4", "kv/0x80000000_0x40000000", "kv/0xAB_0xcd"])
def test_a_malformed_list_is_refused_before_it_is_sent(text: str) -> None:
    """No cluster could have such bundles."""
    with pytest.raises(ConfigurationError, match="bundles"):
        check_arguments(UNLOAD, {"bundles": text})


def test_bundles_of_feature_level_1_are_found() -> None:
    """The last one ends at 2^32, and is named so."""
    rows = tuple(bundles_at_level_1("old", 2))
    state = apply(cluster(), NamespaceCreated(Namespace("old", 2), rows))
    answer, events, _ = ask(state, TRANSFER, bundles="old/0x80000000_0x100000000", node="n2")
    assert (answer.outcome, len(orders_of(events))) == (DONE, 1)


def test_no_part_of_a_bundle_of_feature_level_1_begins_at_the_last_hash() -> None:
    """Pulsar's last range ends there, and the part would be named like an empty one."""
    rows = tuple(replace(each, owner="n1") for each in bundles_at_level_1("old", 2))
    state = apply(cluster(), NamespaceCreated(Namespace("old", 2), rows))
    for numbers in ("0xffffffff", "0xc0000000,0xffffffff"):
        answer, events, _ = ask(state, SPLIT, bundles=rows[1].bundle_id, by="positions", numbers=numbers)
        assert (answer.outcome, events) == (REFUSED, [])
        assert answer.detail.endswith("cannot be split at 0xffffffff: parts begin between its bounds")
    answer, _, _ = ask(state, SPLIT, bundles=rows[1].bundle_id, by="positions", numbers="0xfffffffe")
    assert answer.outcome is DONE


@pytest.mark.parametrize(
    ("order", "text"),
    [
        (BundleOrder(SECOND, BundleOrderKind.TRANSFER, "n2"), "transfer to n2"),
        (BundleOrder(SECOND, BundleOrderKind.UNLOAD), "unload"),
        (BundleOrder(SECOND, BundleOrderKind.RELIEVE), "relieve"),
        (BundleOrder(SECOND, BundleOrderKind.END), "end"),
        (BundleOrder(SECOND, BundleOrderKind.SPLIT, None, "number", (3,)), "split into 3 parts"),
        (BundleOrder(SECOND, BundleOrderKind.SPLIT, None, "positions", (255, 4096)), "split at 0x000000ff, 0x00001000"),
        (BundleOrder(SECOND, BundleOrderKind.SPLIT, None, SPLIT_ALGORITHMS[0]), "split by flow_or_qps_equally_divide"),
    ],
)
def test_a_bundle_takes_one_order_at_a_time(order: BundleOrder, text: str) -> None:
    """The answer says which one stands; the other bundles of the list are not ordered either."""
    why = f"bundle {SECOND!r} is ordered already: {text}; it takes another order when that one has ended"
    state = with_orders(cluster(), order)
    for kind, others in ((TRANSFER, {"node": "n2"}), (UNLOAD, {}), (SPLIT, {"by": "number", "numbers": "2"})):
        assert ask(state, kind, bundles=f"{FIRST},{SECOND}", **others)[:2] == ((REFUSED, why), [])


def test_the_later_of_two_orders_in_a_decision_is_refused() -> None:
    """The first stands already when the second is taken up."""
    _, _, state = ask(cluster(), UNLOAD, bundles="kv")
    answer, _, _ = ask(state, TRANSFER, bundles=FIRST, node="n2")
    assert answer.detail.startswith(f"bundle {FIRST!r} is ordered already: unload")


def test_bundles_without_an_owner_are_assigned_and_not_unloaded() -> None:
    """There is nobody to release them."""
    answer, events, _ = ask(cluster(None), UNLOAD, bundles=FIRST)
    assert (answer, events) == ((DONE, f"bundle {FIRST!r} is without an owner already"), [])
    answer, events, _ = ask(cluster(None), TRANSFER, bundles=FIRST, node="n2")
    assert (answer.outcome, [order.bundle_id for order in orders_of(events)]) == (DONE, [FIRST])


def test_a_bundle_that_is_being_assigned_is_unloaded_when_it_is_owned() -> None:
    """It has no owner yet, and is not free."""
    row = replace(cluster().bundles.by_id[FIRST], state=OwnershipState.ASSIGNING, owner=None, next_owner="n2")
    _, events, _ = ask(with_rows(cluster(), row), UNLOAD, bundles=FIRST)
    assert [order.bundle_id for order in orders_of(events)] == [FIRST]


@pytest.mark.parametrize(
    ("by", "numbers", "said"),
    [
        ("number", "2", "into 2 parts"),
        ("number", "128", "into 128 parts"),
        ("positions", "0x20000000,0x00000001", "at 0x00000001, 0x20000000"),
        ("positions", "1", "at 0x00000001"),
        ("topic_count_equally_divide", "", "by topic_count_equally_divide"),
    ],
)
def test_bundles_are_ordered_to_be_split(by: str, numbers: str, said: str) -> None:
    """Positions are hexadecimal or decimal, in any order."""
    answer, events, _ = ask(cluster(), SPLIT, bundles=FIRST, by=by, numbers=numbers)
    assert answer == (DONE, f"bundle {FIRST!r} is ordered to be split {said}")
    (order,) = orders_of(events)
    assert (order.kind, order.split_by, order.numbers) == (
        BundleOrderKind.SPLIT,
        by,
        tuple(sorted(int(each, 0) for each in numbers.split(",") if each)),
    )


@pytest.mark.parametrize(
    ("by", "numbers", "why"),
    [
        ("number", "1", "needs one number from 2 to 128, the number of parts, not 1"),
        ("number", "129", "needs one number from 2 to 128, the number of parts, not 129"),
        ("number", "", "needs one number from 2 to 128, the number of parts, not none"),
        ("number", "2,3", "needs one number from 2 to 128, the number of parts, not 2, 3"),
        ("positions", "", "a split by positions needs 1 to 127 different hashes"),
        ("positions", "5,5", "a split by positions needs 1 to 127 different hashes"),
        ("positions", ",".join(map(str, range(1, 129))), "a split by positions needs 1 to 127 different hashes"),
        ("positions", "0", f"bundle {FIRST!r} cannot be split at 0x00000000: parts begin between its bounds"),
        ("positions", "0x40000000", "cannot be split at 0x40000000: parts begin between its bounds"),
        ("positions", "5,0xffffffff", "cannot be split at 0xffffffff: parts begin between its bounds"),
        ("range_equally_divide", "2", "a split by range_equally_divide takes no numbers"),
    ],
)
def test_a_split_that_is_impossible_is_refused(by: str, numbers: str, why: str) -> None:
    """Numbers have to fit the way of splitting, and positions the bundle."""
    answer, events, _ = ask(cluster(), SPLIT, bundles=FIRST, by=by, numbers=numbers)
    assert (answer.outcome, events) == (REFUSED, [])
    assert why in answer.detail


def test_positions_have_to_be_inside_of_every_bundle() -> None:
    """Those of the first bundle are outside of the second one."""
    answer, _, _ = ask(cluster(), SPLIT, bundles=f"{FIRST},{SECOND}", by="positions", numbers="0x20000000")
    assert answer == (
        REFUSED,
        f"bundle {SECOND!r} cannot be split at 0x20000000: parts begin between its bounds",
    )


@pytest.mark.parametrize(
    ("by", "numbers"),
    [("luck", ""), ("specified_positions_divide", ""), ("positions", "0x100000000"), ("number", "-1"), ("number", "x")],
)
def test_a_split_of_no_cluster_is_refused_before_it_is_sent(by: str, numbers: str) -> None:
    """Algorithms that are not there, and numbers that are none. Given positions need no algorithm."""
    with pytest.raises(ConfigurationError, match=r"by is|numbers"):
        check_arguments(SPLIT, {"bundles": FIRST, "by": by, "numbers": numbers})


@pytest.mark.parametrize(("upper", "parts", "splits"), [(2, 2, True), (1, 2, False), (2, 3, False), (3, 3, True)])
def test_narrow_bundles_have_a_hash_for_each_part(upper: int, parts: int, splits: bool) -> None:
    """A part without a hash could not be named."""
    rows = tuple(
        Bundle("narrow", *each, "n1", OwnershipState.OWNED, version=1) for each in ((0, upper), (upper, LAST_HASH))
    )
    state = apply(cluster(), NamespaceCreated(Namespace("narrow", 2), rows))
    answer, _, _ = ask(state, SPLIT, bundles=rows[0].bundle_id, by="number", numbers=str(parts))
    assert answer.outcome is (DONE if splits else REFUSED)
    assert splits or f"bundle {rows[0].bundle_id!r} cannot be split" in answer.detail
    if upper == 1:
        answer, _, _ = ask(state, SPLIT, bundles=rows[0].bundle_id, by=SPLIT_ALGORITHMS[0])
        assert "its bounds are neighbours" in answer.detail


def test_only_an_owner_splits() -> None:
    """Nobody else has the topics."""
    why = f"bundle {FIRST!r} has no owner that could split it"
    assert ask(cluster(None), SPLIT, bundles=FIRST, by="number", numbers="2")[:2] == ((REFUSED, why), [])


def test_a_namespace_ends_with_its_bundles() -> None:
    """Orders that stand for them fail; those of other namespaces stay."""
    others = BundleOrder("acme/orders/0x00000000_0x80000000", BundleOrderKind.UNLOAD)
    state = with_orders(cluster(), BundleOrder(THIRD, BundleOrderKind.TRANSFER, "n2"), others)
    answer, events, after = ask(state, DELETE, namespace="kv")
    assert answer == (DONE, "namespace 'kv' is being deleted: 4 bundles to be released; 1 order of them ended")
    assert events == [
        BundleOrdersEnded((EndedOrder(THIRD, OrderOutcome.FAILED, "its namespace is being deleted"),)),
        NamespaceEnding("kv"),
        BundleOrdersGiven(tuple(BundleOrder(each, BundleOrderKind.END) for each in (FIRST, SECOND, THIRD, FOURTH))),
    ]
    assert after.bundles.orders[others.bundle_id] == others


def test_a_namespace_that_ends_takes_no_more_orders() -> None:
    """Not even for a bundle whose order has ended, and no namespace of its name is created meanwhile."""
    _, _, state = ask(cluster(), DELETE, namespace="kv")
    state = apply(state, BundleOrdersEnded((EndedOrder(FIRST, OrderOutcome.DONE, "released"),)))
    why = "namespace 'kv' is being deleted: its bundles take no orders any more"
    for kind, others in ((TRANSFER, {"node": "n2"}), (UNLOAD, {}), (SPLIT, {"by": "number", "numbers": "2"})):
        assert ask(state, kind, bundles=FIRST, **others)[:2] == ((REFUSED, why), [])
    assert ask(state, DELETE, namespace="kv")[:2] == ((DONE, "namespace 'kv' is being deleted already"), [])
    assert ask(state, IntentKind.CREATE_NAMESPACE, namespace="kv")[0] == (REFUSED, "namespace 'kv' is being deleted")


def test_a_namespace_that_there_is_not_is_not_deleted() -> None:
    """It may be mistyped, and a deletion cannot be taken back."""
    why = "there is no namespace 'kw'; known are acme/orders, kv, kv2"
    assert ask(cluster(), DELETE, namespace="kw")[:2] == ((REFUSED, why), [])
