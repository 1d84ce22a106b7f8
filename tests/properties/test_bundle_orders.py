"""Orders of bundles that operators give: whole or not at all, and one for a bundle."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from controlplane.core.bundles.events import (
    BundleOrdersEnded,
)
from controlplane.core.bundles.orders import BundleOrder, BundleOrderKind, OrderOutcome
from controlplane.core.bundles.ownership_state import OwnershipState
from controlplane.core.bundles.ranges import inner_bounds
from controlplane.core.intents.intent import IntentKind
from controlplane.core.log.state import State
from controlplane.core.operations.bundle_operations import SPLIT_ALGORITHMS
from tests.helpers.bundle_orders import (
    DELETE,
    DONE,
    NAMESPACES,
    REFUSED,
    SPLIT,
    TRANSFER,
    UNLOAD,
    ask,
    cluster,
    orders_of,
    with_orders,
    with_rows,
)

SELDOM = st.integers(0, 5).map(lambda number: number == 5)
OWNERS = st.sampled_from(["n1", "n2", "drains"])
ORDERS = st.sampled_from(
    [
        (BundleOrderKind.TRANSFER, "n2", "", ()),
        (BundleOrderKind.UNLOAD, None, "", ()),
        (BundleOrderKind.RELIEVE, None, "", ()),
        (BundleOrderKind.SPLIT, None, "number", (2,)),
    ]
)


@st.composite
def states(draw: st.DrawFn) -> State:
    """Bundles in every state of their ownership, perhaps with an order; perhaps a namespace that ends."""
    state = cluster()
    for bundle_id in sorted(state.bundles.by_id):
        where = draw(st.sampled_from([each for each in OwnershipState if each.is_active or each.value == "Free"]))
        has_owner = where not in (OwnershipState.FREE, OwnershipState.ASSIGNING)
        moves = where in (OwnershipState.RELEASING, OwnershipState.ASSIGNING)
        row = replace(
            state.bundles.by_id[bundle_id],
            state=where,
            owner=draw(OWNERS) if has_owner else None,
            next_owner=draw(OWNERS) if moves else None,
        )
        state = with_rows(state, row)
        if draw(SELDOM):
            state = with_orders(state, BundleOrder(bundle_id, *draw(ORDERS)))
    return ask(state, DELETE, namespace="kv")[2] if draw(SELDOM) else state


@st.composite
def lists(draw: st.DrawFn) -> str:
    """Known bundles and namespaces in any order, now and then an unknown one."""
    ids = sorted(cluster().bundles.by_id)
    known = st.sampled_from([*ids, *NAMESPACES])
    parts = draw(st.lists(st.one_of(known, known, known, st.just("kv/0x00000000_0x10000000")), min_size=1, max_size=5))
    return ",".join(parts)


REQUESTS = st.one_of(
    st.tuples(st.just(TRANSFER), st.fixed_dictionaries({"bundles": lists(), "node": st.sampled_from(["n1", "n2"])})),
    st.tuples(st.just(UNLOAD), st.fixed_dictionaries({"bundles": lists()})),
    st.tuples(
        st.just(SPLIT),
        st.fixed_dictionaries(
            {
                "bundles": lists(),
                "by": st.sampled_from(["number", "positions", *SPLIT_ALGORITHMS]),
                "numbers": st.sampled_from(["", "0", "2", "7", "0x10000000", "0x10000000,0x30000000"]),
            }
        ),
    ),
)


@settings(max_examples=300, deadline=None)
@given(state=states(), request=REQUESTS)
def test_orders_are_given_whole_or_not_at_all(state: State, request: tuple[IntentKind, dict[str, str]]) -> None:
    """Each order can be begun: for a bundle of a living namespace, for which no other one stands, ascending."""
    kind, arguments = request
    answer, events, after = ask(state, kind, **arguments)
    orders = orders_of(events)
    ids = [order.bundle_id for order in orders]
    listed = {
        bundle_id
        for part in arguments["bundles"].split(",")
        for bundle_id, bundle in state.bundles.by_id.items()
        if part in (bundle_id, bundle.namespace)
    }
    assert ids == sorted(set(ids))
    assert set(ids) <= listed
    assert len(events) <= 1
    if answer.outcome is REFUSED:
        assert (events, after) == ([], state)
        return
    taken = listed & state.bundles.orders.keys()
    ending = {each for each in listed if state.bundles.namespaces[state.bundles.by_id[each].namespace].is_ending}
    assert not taken
    assert not ending
    left = {each: state.bundles.by_id[each] for each in listed - set(ids)}
    if kind is TRANSFER:
        assert {bundle.serving_node for bundle in left.values()} <= {arguments["node"]}
    elif kind is UNLOAD:
        assert {bundle.ownership_state for bundle in left.values()} <= {OwnershipState.FREE}
    else:
        assert not left
    for order in orders:
        bundle = state.bundles.by_id[order.bundle_id]
        if order.split_by in ("number", "positions"):
            by_number = order.split_by == "number"
            bounds = inner_bounds(
                bundle.hash_range, order.numbers[0] if by_number else 0, () if by_number else order.numbers
            )
            edges = (bundle.lower, *bounds, bundle.upper)
            assert list(edges) == sorted(set(edges))


@settings(max_examples=100, deadline=None)
@given(state=states(), name=st.sampled_from(sorted(NAMESPACES)))
def test_a_deletion_leaves_one_order_for_each_bundle(state: State, name: str) -> None:
    """It ends the namespace's other orders, once each, and touches no other namespace."""
    answer, events, after = ask(state, DELETE, namespace=name)
    assert answer.outcome is DONE
    assert after.bundles.namespaces[name].is_ending
    ids = {each for each, bundle in state.bundles.by_id.items() if bundle.namespace == name}
    if state.bundles.namespaces[name].is_ending:
        assert events == []
        return
    ended = [each for event in events if isinstance(event, BundleOrdersEnded) for each in event.ended]
    assert [each.bundle_id for each in ended] == sorted(ids & state.bundles.orders.keys())
    assert {each.outcome for each in ended} <= {OrderOutcome.FAILED}
    assert {each: order.kind for each, order in after.bundles.orders.items() if each in ids} == dict.fromkeys(
        ids, BundleOrderKind.END
    )
    for each, order in state.bundles.orders.items():
        assert each in ids or after.bundles.orders[each] == order
