"""The bundles of a table by hash, and what differs from the table before."""

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from controlplane.core.bundles.bundle import HASH_SPACE, Bundle, bundles_at_level_1, equal_bundles
from controlplane.node.bundle_index import BundleIndex


def table(*bundles: Bundle) -> dict[str, Bundle]:
    """Rows by id."""
    return {each.bundle_id: each for each in bundles}


cuts = st.lists(st.integers(1, 15), unique=True, max_size=6).map(sorted)
tables = st.lists(
    st.tuples(st.sampled_from(["a", "b"]), cuts).map(
        lambda drawn: [
            Bundle(drawn[0], lower << 28, upper << 28, None)
            for lower, upper in zip([0, *drawn[1]], [*drawn[1], 16], strict=True)
        ][: 1 + len(drawn[1]) // 2 * 2]
    ),
    max_size=2,
    unique_by=lambda bundles: bundles[0].namespace,
).map(lambda drawn: table(*(bundle for bundles in drawn for bundle in bundles)))


@given(st.lists(tables, max_size=5), st.integers(0, 15).map(lambda part: part << 28))
def test_any_tables_are_searched_like_by_a_look_at_each_row(history: list[Mapping[str, Bundle]], hashed: int) -> None:
    """Also where a row is missing, which a newer version wrote; and every changed row is told."""
    index = BundleIndex()
    before: Mapping[str, Bundle] = {}
    for rows in history:
        changed = index.follow(rows)
        assert {key for key, row in changed.items() if row is None} == before.keys() - rows.keys()
        assert {key: row for key, row in changed.items() if row is not None} == {
            key: row for key, row in rows.items() if before.get(key) is not row
        }
        before = rows
        for namespace in ("a", "b"):
            holding = [
                each for each in rows.values() if each.namespace == namespace and each.lower <= hashed < each.end
            ]
            assert index.at(namespace, hashed) == next(iter(holding), None)


def test_a_table_with_the_same_bundles_is_not_looked_at() -> None:
    """Most epochs change slots only, and there may be 100,000 bundles."""
    index = BundleIndex()
    rows = table(*equal_bundles("kv", 4))
    assert len(index.follow(rows)) == 4
    assert index.follow(rows) == {}


def test_the_last_hash_belongs_to_the_last_bundle_at_every_level() -> None:
    """Its upper bound is 2^32 - 1, or 2^32 at feature level 1."""
    for bundles in (equal_bundles("kv", 2), bundles_at_level_1("kv", 2)):
        index = BundleIndex()
        index.follow(table(*bundles))
        assert index.at("kv", HASH_SPACE - 1) == bundles[1]
        assert index.at("kv", 0) == bundles[0]


def test_the_parts_of_a_bundle_are_those_within_its_range() -> None:
    """Its neighbours are not."""
    index = BundleIndex()
    parent = equal_bundles("kv", 2)[1]
    low, high = Bundle("kv", parent.lower, 3 << 30, None), Bundle("kv", 3 << 30, parent.upper, None)
    index.follow(table(equal_bundles("kv", 2)[0], low, high))
    assert index.within(parent) == [low, high]
