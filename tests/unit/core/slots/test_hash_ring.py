"""HiveMQ's ring: its hash, its quirks with names that share virtual nodes, and its ends."""

import time

import pytest

from controlplane.core.slots.ring.hash_ring import HashRing, VirtualNode
from controlplane.core.slots.ring.text_hash import PLACES_PER_NODE, places_of, text_hash
from controlplane.errors import NoRouteError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", -1205034819632174695),
        ("hello", -4777684530141795464),
        ("node10", -7545625176179617249),
        ("node1499", -3882376671292274859),
    ],
)
def test_hash_of_a_text_is_signed(text: str, expected: int) -> None:
    """Known hashes of zero-allocation hashing."""
    assert text_hash(text) == expected


def test_surrogates_are_hashed_as_they_are() -> None:
    """An unpaired surrogate is a key of its own, and a pair in two characters is the character that it encodes."""
    assert len({text_hash(text) for text in ("\ud83d", "\ude80", "?", "\ufffd", "")}) == 5
    assert text_hash("\ud83d\ude80") == text_hash("\U0001f680")


@pytest.mark.parametrize("wrong", [b"key", bytearray(b"key"), 7, None])
def test_what_is_no_text_is_refused(wrong: object) -> None:
    """As a key and as a node's name, by a ring that is empty, too."""
    ring = HashRing()
    for ask in (ring.owner, ring.add, text_hash):
        with pytest.raises(TypeError, match=r"decode it first|unhashable"):
            ask(wrong)  # type: ignore[arg-type]
    assert ring.nodes == frozenset()


def test_an_empty_ring_owns_nothing() -> None:
    """Before the first node and after the last one."""
    ring = HashRing(["a"])
    ring.remove("a")
    assert len(ring) == 0
    for ask in (lambda: ring.owner("key"), lambda: ring.replicas("key", 1)):
        with pytest.raises(NoRouteError, match="no node is on the ring"):
            ask()


def test_one_node_owns_everything_and_has_no_replicas() -> None:
    """The number of replicas is cut down to the other nodes; fewer than none are none."""
    ring = HashRing(["a"])
    assert {ring.owner(f"key {number}") for number in range(100)} == {"a"}
    assert ring.replicas("key", 3) == frozenset()
    assert HashRing(["a", "b"]).replicas("key", -1) == frozenset()


def test_a_key_at_a_place_belongs_to_it_and_one_behind_the_last_to_the_first() -> None:
    """The name of a virtual node is a key that hashes to its very place."""
    ring = HashRing(["x", "y", "z"])
    places = sorted((place, node, index) for node in "xyz" for index, place in enumerate(places_of(node)))
    for _, node, index in places:
        assert ring.virtual_node(f"{node}{index}") == VirtualNode(node, index)
    behind = next(text for number in range(10**6) if text_hash(text := f"k{number}") > places[-1][0])
    assert ring.virtual_node(behind) == VirtualNode(*places[0][1:])
    before = next(text for number in range(10**6) if text_hash(text := f"k{number}") < places[0][0])
    assert ring.virtual_node(before) == VirtualNode(*places[0][1:])


def test_replicas_are_the_next_other_nodes() -> None:
    """Checked against a walk over the whole circle."""
    nodes = ["ash", "beech", "cedar", "elm"]
    ring = HashRing(nodes)
    circle = sorted((place, node) for node in nodes for place in places_of(node))
    for number in range(500):
        key = f"key {number}"
        ahead = [node for place, node in circle if place >= text_hash(key)] + [node for _, node in circle]
        walk = list(dict.fromkeys(ahead))
        assert ring.owner(key) == walk[0]
        for count in range(6):
            assert ring.replicas(key, count) == frozenset(walk[1 : 1 + count])


def test_a_later_node_takes_shared_places_except_the_first_two() -> None:
    """``n1`` with 10 to 19 and 110 to 199 is ``n11`` with 0 to 9 and 10 to 99; HiveMQ compares with the literal 1."""
    ring = HashRing(["n1", "n11"])
    assert len(ring) == 2 * PLACES_PER_NODE - 100
    assert {index for index in range(100) if ring.virtual_node(f"n11{index}").node == "n1"} == {0, 1}


def test_a_node_with_a_shorter_name_takes_all_shared_places() -> None:
    """In the other order: the names that ``n1`` shares are those of its virtual nodes from 10 on."""
    ring = HashRing(["n11", "n1"])
    assert {ring.virtual_node(f"n11{index}").node for index in range(100)} == {"n1"}


def test_a_leaving_node_takes_shared_places_with_it() -> None:
    """Whoever has them; they do not come back before that node joins again."""
    ring = HashRing(["n11", "n1"])
    ring.remove("n11")
    assert len(ring) == PLACES_PER_NODE - 100
    ring.add("n1")
    assert len(ring) == PLACES_PER_NODE
    ring.remove("nobody")
    assert len(ring) == PLACES_PER_NODE


def test_a_node_without_places_is_never_found() -> None:
    """The search for replicas ends although the ring counts the node; HiveMQ's would go on for ever."""
    ring = HashRing(["a", "b"])
    for index in range(PLACES_PER_NODE):
        ring._taken.pop(places_of("b")[index])  # noqa: SLF001 - no history of short names takes all of them
    assert ring.nodes == {"a", "b"}
    assert ring.replicas("key", 1) == frozenset()


def test_names_are_compared_by_utf_16_units(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where all names collide, the order of names decides: in UTF-16, U+1F680 comes before U+FFFD."""
    module = "controlplane.core.slots.ring.hash_ring.places_of"
    monkeypatch.setattr(module, lambda _: (0,) * PLACES_PER_NODE)
    ring = HashRing(["\U0001f680", "\ufffd"])
    assert ring.owner("key") == "\U0001f680"
    assert HashRing(["\ufffd", "\U0001f680"]).owner("key") == "\U0001f680"


def test_a_ring_of_a_thousand_nodes_answers_at_once() -> None:
    """Half a million virtual nodes, and a hundred thousand keys."""
    began_s = time.process_time()
    ring = HashRing(f"10.0.{number // 250}.{number % 250}:7800" for number in range(1_000))
    owners = {ring.owner(f"client-{number}") for number in range(100_000)}
    assert len(owners) == 1_000
    assert time.process_time() - began_s < 10
