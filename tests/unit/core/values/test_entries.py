"""Entries are a map that never changes, in the order of its keys, with the digest of what is in it."""

from random import Random

from hypothesis import example, given
from hypothesis import strategies as st

from controlplane.core.routing.row_hashes import RowHashes
from controlplane.core.values.canonical import canonical_bytes
from controlplane.core.values.digests import row_hash
from controlplane.core.values.entries import Entries

KEYS = st.integers(0, 20)
CHANGES = st.lists(st.tuples(KEYS, st.none() | st.text(max_size=3)), max_size=40)


def changed(entries: Entries[int, str], key: int, value: str | None) -> Entries[int, str]:
    """With another value, or without the key."""
    if value is not None:
        return entries.put([(key, value)])
    return entries.drop([key] if key in entries else [])


@given(CHANGES)
@example([(1, "a"), (1, None)])
@example([(10, "a"), (9, "b"), (10, "c")])
def test_entries_are_what_a_dict_would_be_and_keep_their_digest(changes: list[tuple[int, str | None]]) -> None:
    """After every change: the same entries, ascending; a digest of them alone; no older map touched."""
    entries, model = Entries[int, str](), dict[int, str]()
    for key, value in changes:
        before, model_before = entries, dict(model)
        entries = changed(entries, key, value)
        model.pop(key, None)
        if value is not None:
            model[key] = value
        assert list(entries.items()) == sorted(model.items())
        assert entries.digest == entries.computed_digest() == Entries(model).digest
        assert entries == Entries(reversed(model.items())) == model
        assert list(before.items()) == sorted(model_before.items())


def test_several_changes_at_once_are_those_changes_one_after_the_other() -> None:
    """Also where a key comes twice."""
    pairs = [(3, "a"), (1, "b"), (3, "c")]
    one_by_one: Entries[int, str] = Entries()
    for pair in pairs:
        one_by_one = one_by_one.put([pair])
    assert Entries[int, str]().put(pairs) == one_by_one == Entries(pairs) == {1: "b", 3: "c"}
    assert Entries(pairs).digest == one_by_one.digest


@given(st.sets(KEYS), st.sets(KEYS), st.sets(KEYS), st.randoms(use_true_random=False))
@example(set(range(9)), {0, 3, 4, 8}, set(), Random(0))
def test_a_map_whose_order_was_known_is_in_order_after_a_change(
    keys: set[int], dropped: set[int], put: set[int], order: Random
) -> None:
    """Also where several keys go at once, in any order of theirs."""
    entries = Entries(dict.fromkeys(keys, "a"))
    assert list(entries) == sorted(keys)
    gone = order.sample(sorted(keys & dropped), len(keys & dropped))
    assert list(entries.drop(gone)) == sorted(keys - dropped)
    assert list(entries.put((key, "b") for key in put).items()) == [
        (key, "b" if key in put else "a") for key in sorted(keys | put)
    ]
    assert list(entries) == sorted(keys)


def test_the_digest_is_the_documented_sum() -> None:
    """Whoever checks a snapshot in another language computes it so."""
    shares = [row_hash(canonical_bytes(key), canonical_bytes(value)) for key, value in ((1, "a"), (2, "b"))]
    assert Entries({1: "a", 2: "b"}).digest == sum(shares) % (1 << 64)


def test_keys_and_values_do_not_change_places_in_the_digest() -> None:
    """An entry under another key, or two keys with exchanged values, is another map."""
    assert len({Entries(pairs).digest for pairs in ({1: "a", 2: "b"}, {1: "b", 2: "a"}, {1: "a", 3: "b"})}) == 3


def test_hashes_of_rows_add_up_to_the_digest_of_their_table() -> None:
    """They are hashes already, over key and value."""
    hashes = RowHashes({"main/slot/0": 5, "main/slot/1": (1 << 64) - 2})
    assert hashes.digest == 3
    assert hashes.drop(["main/slot/0"]).digest == (1 << 64) - 2
