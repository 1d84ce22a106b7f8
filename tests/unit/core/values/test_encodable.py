"""Values that can be stored and read again, and what keeps others from it."""

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import pytest

from controlplane.core.values.canonical import from_canonical, to_canonical
from controlplane.core.values.encodable import unencodable
from controlplane.core.values.ordered_map import OrderedMap


class Kind(enum.Enum):
    """A member is stored as its value."""

    ONE = "one"


class Odd(enum.Enum):
    """Its member has a value that cannot be stored."""

    SET = frozenset({"a"})


class Pair(NamedTuple):
    """A named tuple."""

    first: int
    second: float | None


@dataclass(frozen=True, slots=True)
class Memory:
    """A memory of everything that is allowed."""

    kind: Kind
    pairs: tuple[Pair, ...]
    counts: Mapping[str, int]


@dataclass
class Open:
    """It may change."""

    pairs: tuple[Pair, ...]


MEMORY = Memory(Kind.ONE, (Pair(1, 0.5), Pair(2, None)), OrderedMap({"b": 1, "a": 2}))


def test_what_is_allowed_is_read_again_from_its_canonical_form() -> None:
    """Nothing of it is lost."""
    assert unencodable(MEMORY, "memory") is None
    assert from_canonical(Memory, to_canonical(MEMORY)) == MEMORY
    assert unencodable((None, True, 1, 1.5, "text", (), {}, (1, ("a", None))), "memory") is None


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ({1: "a"}, "memory has a key that is no text, but a int"),
        ({"a": (1, {"b", "c"})}, "memory['a'][1] is a set; use numbers"),
        (Pair([], None), "memory.first is a list; use numbers"),  # type: ignore[arg-type]  # what is to be found
        (Open(()), "memory is a Open, a dataclass that may change; make it frozen"),
        (Memory(Kind.ONE, (), {"a": object()}), "memory.counts['a'] is a object"),  # type: ignore[dict-item]  # as above
        (Memory, "memory is a type"),
        ((Odd.SET,), "memory[0].value is a frozenset"),
    ],
)
def test_what_cannot_be_stored_is_named_with_its_place(value: object, found: str) -> None:
    """A user reads which part of a memory has to be another one."""
    assert str(unencodable(value, "memory")).startswith(found)
