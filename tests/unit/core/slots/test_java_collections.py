"""Java's hash maps, as far as their order decides; expected orders were seen on JDK 17."""

from collections.abc import Iterable

import pytest

from controlplane.core.slots.sofa.java_collections import JavaMap, copied_set, java_hash, java_set


def computed(keys: Iterable[int]) -> JavaMap[int, None]:
    """A map that was filled by ``computeIfAbsent``."""
    found: JavaMap[int, None] = JavaMap()
    for key in keys:
        found.compute_if_absent(key, lambda: None)
    return found


@pytest.mark.parametrize(
    ("key", "code"), [("", 0), ("a", 97), ("hello", 99_162_322), ("polygenelubricants", 1 << 31), (7, 7)], ids=str
)
def test_hashes_are_javas(key: str | int, code: int) -> None:
    """The numbers that every Java gives, the smallest Integer among them."""
    assert java_hash(key) == code


def test_characters_beyond_the_first_plane_are_two_units() -> None:
    """Java hashes the two halves of a pair: a name with such a character would sort elsewhere."""
    assert java_hash("\U0001f680") == (31 * 0xD83D + 0xDE80) % 2**32


def test_order_is_that_of_the_bins() -> None:
    """Few numbers in sixteen bins come out by their remainder, not by their size."""
    assert list(java_set([3, 17, 64, 200])) == [64, 17, 3, 200]
    assert list(java_set(range(0, 256, 5)))[:5] == [0, 130, 5, 135, 10]


def test_new_keys_go_to_the_end_by_put_and_to_the_front_by_compute() -> None:
    """The same keys come in another order by the way in which they were added."""
    keys = [*range(12), 16]
    assert list(java_set(keys)) == keys
    assert list(computed(keys)) == [16, *range(12)]
    assert list(computed([0, 16, 32])) == [32, 16, 0]


def test_compute_grows_before_and_put_afterwards() -> None:
    """Thirteen keys double a table of sixteen at once by ``put``, and by ``compute_if_absent`` with the next call."""
    table = computed([*range(12), 27])
    assert list(table) == [*range(11), 27, 11]
    table.compute_if_absent(0, lambda: None)
    assert list(table) == [*range(12), 27]
    assert list(java_set([*range(12), 16])) == [*range(12), 16]
    assert list(java_set([*range(11), 16])) == [0, 16, *range(1, 11)]


def test_crowded_bin_doubles_a_small_table() -> None:
    """The ninth key of a bin by ``put``, the eighth by ``compute_if_absent``: bins grow rather than become trees."""
    crowd = [16 * number for number in range(9)]
    assert list(java_set(crowd[:8])) == crowd[:8]
    assert list(java_set(crowd)) == crowd[::2] + crowd[1::2]
    assert list(computed(crowd[:7])) == crowd[6::-1]
    assert list(computed(crowd[:8])) == [*crowd[6::-2], *crowd[7::-2]]


def test_copy_has_room_from_the_start() -> None:
    """``new HashSet(collection)``: twelve keys get 32 bins, where filling one by one leaves sixteen."""
    keys = [16, *range(11)]
    assert list(java_set(keys)) == [16, *range(11)]
    assert list(copied_set(keys)) == [*range(11), 16]


def test_removing_keeps_the_capacity() -> None:
    """A purged node leaves its bins behind."""
    table = java_set([*range(13)])
    for key in range(12):
        table.remove(key)
    table.put(17, None)
    assert list(table) == [12, 17]
    assert list(java_set([12, 17])) == [17, 12]
