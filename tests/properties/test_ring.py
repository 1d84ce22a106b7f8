"""HiveMQ's ring through any history, against a plain retelling of its rules."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controlplane.core.slots.ring.hash_ring import HashRing
from controlplane.core.slots.ring.text_hash import text_hash
from controlplane.errors import NoRouteError

SHARING = ("n", "n1", "n11", "n12", "n111", "n2", "1", "")
APART = ("ash", "elm", "fir", "oak", "\U0001f680", "\ud83d")
COUNT = 500


class Retold:
    """A ring as two maps, scanned from end to end."""

    def __init__(self) -> None:
        self.names: dict[int, str] = {}
        self.owners: dict[str, str] = {}
        self.nodes: set[str] = set()

    def add(self, node: str) -> None:
        """Take free places, and those whose name sorts after the node's name and 1."""
        for name in (f"{node}{index}" for index in range(COUNT)):
            place = text_hash(name)
            if place not in self.names or units(self.names[place]) > units(f"{node}1"):
                self.names[place], self.owners[name] = name, node
                self.nodes.add(node)

    def remove(self, node: str) -> None:
        """Clear all places of the node's names."""
        for name in (f"{node}{index}" for index in range(COUNT)):
            self.names.pop(text_hash(name), None)
            self.owners.pop(name, None)
        self.nodes.discard(node)

    def walk(self, key: str) -> list[str]:
        """The nodes in the order in which they are met from a key on."""
        circle = sorted(self.names)
        ahead = [place for place in circle if place >= text_hash(key)]
        return list(dict.fromkeys(self.owners[self.names[place]] for place in (ahead or circle) + circle))


def units(text: str) -> list[int]:
    """The UTF-16 units of a text."""
    data = text.encode("utf-16-be", "surrogatepass")
    return [int.from_bytes(data[at : at + 2]) for at in range(0, len(data), 2)]


steps = st.lists(st.tuples(st.sampled_from(["add", "remove"]), st.sampled_from(SHARING + APART)), max_size=12)
keys = st.lists(
    st.text(st.characters(), max_size=6) | st.sampled_from(["n110", "n1110", "1499"]), min_size=1, max_size=4
)


@settings(max_examples=40)
@given(steps, keys, st.integers(-1, 8))
def test_a_ring_is_what_its_rules_say(history: list[tuple[str, str]], asked: list[str], count: int) -> None:
    """Owner, replicas and number of places, after nodes with shared names came, came again and went."""
    ring, retold = HashRing(), Retold()
    for action, node in history:
        getattr(ring, action)(node)
        getattr(retold, action)(node)
    assert (len(ring), {*ring.nodes}) == (len(retold.names), retold.nodes)
    for key in asked:
        walk = retold.walk(key)
        if not walk:
            with pytest.raises(NoRouteError):
                ring.owner(key)
            continue
        wanted = max(0, min(count, len(retold.nodes) - 1))
        assert (ring.owner(key), ring.replicas(key, count)) == (walk[0], frozenset(walk[1 : 1 + wanted]))


@settings(max_examples=40)
@given(st.permutations(APART), st.sets(st.sampled_from(APART), max_size=5), keys)
def test_rings_of_names_apart_depend_on_their_set_only(joined: list[str], left: set[str], asked: list[str]) -> None:
    """Whatever the order, and whoever was there before."""
    ring = HashRing(joined)
    for node in left:
        ring.remove(node)
    other = HashRing(sorted(set(joined) - left))
    for key in asked:
        assert ring.owner(key) == other.owner(key)
        assert ring.replicas(key, 2) == other.replicas(key, 2)
        assert ring.owner(key) not in ring.replicas(key, 2)


@settings(max_examples=40)
@given(st.sets(st.sampled_from(APART), min_size=1, max_size=5), keys)
def test_a_join_takes_keys_for_the_joining_node_only(nodes: set[str], asked: list[str]) -> None:
    """No key goes from one that stays to another that stays."""
    ring = HashRing(sorted(nodes))
    before = [(ring.owner(key), ring.replicas(key, 1)) for key in asked]
    ring.add("yew")
    for key, (owner, replicas) in zip(asked, before, strict=True):
        assert ring.owner(key) in (owner, "yew")
        assert ring.replicas(key, 1) <= replicas | {owner, "yew"}
