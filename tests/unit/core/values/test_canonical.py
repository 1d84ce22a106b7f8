"""Canonical forms: equal values have equal bytes, and what is no form of a value is refused with the path to it."""

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import get_args

import pytest

from controlplane.core.cluster.events import ClusterCreated, TermOpened
from controlplane.core.cluster.policy import ClusterPolicy
from controlplane.core.log.apply import apply_all
from controlplane.core.log.decision import Decision
from controlplane.core.log.events import EVENT_TYPES
from controlplane.core.log.state import State
from controlplane.core.membership.events import NodeAdmitted, NodeDraining
from controlplane.core.membership.node import Node, NodeRole, NodeStatus
from controlplane.core.routing.rows import TableValue
from controlplane.core.slots.events import SlotsAssigned
from controlplane.core.values.canonical import (
    CanonicalValue,
    canonical_bytes,
    digest_hex,
    from_canonical,
    later,
    to_canonical,
)
from controlplane.core.values.identifiers import Term
from controlplane.errors import InvalidInputError
from tests.golden.frozen import RECORDS, decode, read_json
from tests.helpers.world import World

FIRST_RELEASE = RECORDS / "Decision.v1.json"


class Colour(Enum):
    """An enum."""

    RED = "red"


@dataclass(frozen=True)
class Leaf:
    """One number and one choice."""

    number: int
    colour: Colour


@dataclass(frozen=True)
class Tree:
    """Everything that a value of the log is made of."""

    leaves: tuple[Leaf, ...]
    by_name: dict[str, float]
    note: str | None


TREE = Tree((Leaf(1, Colour.RED), Leaf(2, Colour.RED)), {"b": 2.0, "a": 1.0}, None)


def test_a_value_comes_back_from_its_plain_form() -> None:
    """Snapshots are canonical forms: one that gives another value would make another state."""
    assert from_canonical(Tree, to_canonical(TREE)) == TREE


def test_the_order_of_a_maps_keys_does_not_count() -> None:
    """Equal values have to have equal digests on every machine, however they were made."""
    other = replace(TREE, by_name={"a": 1.0, "b": 2.0})
    assert list(other.by_name) != list(TREE.by_name)
    assert canonical_bytes(other) == canonical_bytes(TREE)
    assert digest_hex(other) == digest_hex(TREE) != digest_hex(replace(TREE, note="x"))


def test_a_member_of_a_union_names_its_class() -> None:
    """Without the name an event could be taken for another one with the same fields."""
    assert b'"type":"NodeDraining"' in canonical_bytes((NodeDraining("n", 1, 0), SlotsAssigned(())))


DIGEST_OF_ONE_MODULE = """
import sys
from importlib import import_module

kind = getattr(import_module(sys.argv[1]), sys.argv[2])
from controlplane.core.values.canonical import canonical_bytes

print(canonical_bytes(kind(*[None] * len(kind.__dataclass_fields__))).decode())
"""


@pytest.mark.parametrize("kind", [*EVENT_TYPES, *get_args(TableValue)], ids=lambda kind: kind.__name__)
def test_the_form_does_not_depend_on_what_was_imported(kind: type) -> None:
    """A process that knows only the value's own module digests it like a controller: else no log could be verified."""
    alone = subprocess.run(
        [sys.executable, "-c", DIGEST_OF_ONE_MODULE, kind.__module__, kind.__name__],
        check=True,
        capture_output=True,
        text=True,
    )
    assert f'"type":"{kind.__name__}"' in alone.stdout, f"mark {kind.__name__} with @union_member where it is defined"


@pytest.mark.parametrize(
    ("changes", "reason", "path"),
    [
        ({"leaves": [{"number": 1}]}, "missing_field", r"Tree\.leaves\[0\] lacks colour"),
        (
            {"leaves": [{"number": "1", "colour": "red"}]},
            "wrong_type",
            r"Tree\.leaves\[0\]\.number is '1', expected int",
        ),
        ({"leaves": [{"number": True, "colour": "red"}]}, "wrong_type", r"Tree\.leaves\[0\]\.number is True"),
        ({"leaves": [{"number": 1, "colour": "blue"}]}, "wrong_type", r"Tree\.leaves\[0\]\.colour is 'blue'"),
        ({"leaves": 3}, "wrong_type", r"Tree\.leaves is 3, expected a list"),
        ({"by_name": {"a": "x"}}, "wrong_type", r"Tree\.by_name\['a'\] is 'x', expected float"),
        ({"by_name": []}, "wrong_type", r"Tree\.by_name is \[\], expected a map"),
        ({"note": 5}, "wrong_type", r"Tree\.note is 5, expected str"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_path(changes: dict[str, CanonicalValue], reason: str, path: str) -> None:
    """A damaged snapshot or a mistyped setting has to be found by somebody."""
    plain = to_canonical(TREE)
    assert isinstance(plain, dict)
    with pytest.raises(InvalidInputError, match=path) as caught:
        from_canonical(Tree, {**plain, **changes})
    assert caught.value.reason == reason


@dataclass(frozen=True)
class Grown:
    """A record that got a field after its first values were written."""

    number: int
    later: Mapping[str, str] = field(default_factory=dict, metadata=later(since_level=2))


def test_a_later_field_leaves_older_digests_as_they_are() -> None:
    """A log is verified by digests that older code computed, which had never heard of the field."""
    assert canonical_bytes(Grown(1)) == b'{"number":1}'
    assert canonical_bytes((Grown(1, {"a": "b"}),)) == b'[{"later":{"a":"b"},"number":1}]'
    assert to_canonical(Grown(1)) == {"number": 1, "later": {}}
    assert from_canonical(Grown, {"number": 1}) == Grown(1)
    assert from_canonical(Grown, to_canonical(Grown(1, {"a": "b"}))) == Grown(1, {"a": "b"})
    with pytest.raises(InvalidInputError, match="Grown lacks number"):
        from_canonical(Grown, {"later": {}})


def test_digests_are_those_of_the_first_release() -> None:
    """Frozen: a policy's fingerprint stands in every decision, and a state's digest has to come out again."""
    assert ClusterPolicy().fingerprint() == "d8801eeb0a53a24d"
    options = {"protected_nodes": "1"}
    assert ClusterPolicy(1024, slot_policy="sofa", slot_policy_options=options).fingerprint() == "3819c26b55c400fe"
    policy = ClusterPolicy(slot_count=8)
    node = Node("n1", 1, NodeRole.DATA, NodeStatus.ACTIVE, (), "", 1, 0, "1", 5, 1_000)
    events = (ClusterCreated("log", policy), TermOpened(Term(1), "c1", "test", 1, policy), NodeAdmitted(node))
    digest = "48a2a0b41f51a0f88d0cb36e02a4bab7946c33eec71fa14dd157bfe9b435a660"
    assert apply_all(State(), events).digest() == digest, "mark new fields of images with later(since_level=...)"
    decisions = [decode([bytes.fromhex(record) for record in case["records"]]) for case in read_json(FIRST_RELEASE)]
    assert {decision.digest() for decision in decisions if isinstance(decision, Decision)} == {
        "8f6df66c82f811dfc3b5c32f6c9a502ac07a9d38593431e37f22caac5e5ed9a7",
        "d0506efef27c69c0ba1874031fab4e20b02c481f6633c7fc4c825ae23b8a2543",
    }


def test_a_whole_number_is_a_float_where_one_is_expected() -> None:
    """JSON does not tell 1 from 1.0."""
    assert from_canonical(Tree, {"leaves": [], "by_name": {"a": 1}, "note": None}).by_name == {"a": 1.0}


@pytest.mark.parametrize("value", [{1, 2}, b"bytes", object()])
def test_what_has_no_canonical_form_is_a_mistake_of_the_caller(value: object) -> None:
    """Guessing a form would give digests that depend on the guess."""
    with pytest.raises(TypeError, match=type(value).__name__):
        to_canonical(value)


def test_a_damaged_snapshot_is_refused() -> None:
    """A state that is not the fold of the log must not be led from."""
    world = World(ClusterPolicy(slot_count=4))
    world.admit("n1")
    plain = to_canonical(world.state)
    assert from_canonical(State, plain) == world.state
    twice = json.loads(json.dumps(plain).replace('[1, {"', '[0, {"', 1))
    with pytest.raises(InvalidInputError, match="stands twice"):
        from_canonical(State, twice)
