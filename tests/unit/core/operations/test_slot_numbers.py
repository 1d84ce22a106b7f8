"""Slot numbers as people write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.core.operations.slot_numbers import leading_ranges, parse_slots, slot_ranges
from controlplane.errors import ConfigurationError


@given(st.frozensets(st.integers(0, 200), min_size=1), st.sampled_from((" ", ",", ", ")))
def test_ranges_are_read_back(slots: frozenset[int], separator: str) -> None:
    """What is printed can be given back."""
    assert parse_slots(slot_ranges(slots, separator), 201) == tuple(sorted(slots))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "write numbers and ranges"),
        ("3,", "write numbers and ranges"),
        ("-3", "write numbers and ranges"),
        ("7-3", "the range 7-3 runs backwards"),
        ("0-16", "slot 16 is unknown; known are 0 to 15"),
        ("1" * 20, "write numbers and ranges"),
    ],
)
def test_what_is_no_slot_is_refused(text: str, sentence: str) -> None:
    """With what would have been right."""
    with pytest.raises(ConfigurationError, match=sentence):
        parse_slots(text, 16)


def test_all_means_every_slot() -> None:
    """And a slot that is named twice is meant once."""
    assert parse_slots("all", 3) == (0, 1, 2)
    assert parse_slots("2,1-2", 3) == (1, 2)


@pytest.mark.parametrize(
    ("slots", "text"),
    [
        ((), ""),
        ((1, 2), "1-2"),
        ((1, 3, 4), "1 3-4"),
        ((1, 3, 4, 7), "1 3-4 and 1 more"),
        (range(0, 20, 2), "0 2 and 8 more"),
    ],
)
def test_of_many_ranges_the_first_are_shown(slots: tuple[int, ...], text: str) -> None:
    """And the others are counted by their slots, so that a line stays short however many slots there are."""
    assert leading_ranges(slots, 2) == text
