"""The placers that the benchmarks compare with are the known ones: their published behaviour and worked examples."""

from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.movement import leader_changes, moves, placers
from benchmarks.placers.contract import Placer, Table
from benchmarks.placers.dicer import Dicer, Search
from benchmarks.placers.hashing import rendezvous, ring
from benchmarks.placers.jump import Jump, jump_hash
from benchmarks.placers.least import LeastMovement, least_moves
from benchmarks.placers.ranges import Ranges
from benchmarks.placers.round_robin import RoundRobin
from benchmarks.placers.sofa import Sofa
from benchmarks.placers.sticky import Sticky
from controlplane.core.slots.minimal.contract import PlacementNode, PlacementRules


def nodes(*names: str, weight: int = 1) -> tuple[PlacementNode, ...]:
    """Nodes of these names."""
    return tuple(PlacementNode(name, weight, 0) for name in names)


def held(table: Table, name: str) -> list[int]:
    """The slots that a node holds."""
    return [slot_id for slot_id, holders in enumerate(table) if name in holders]


def counts(table: Table) -> Counter[str]:
    """How many replicas each node holds."""
    return Counter(name for holders in table for name in holders)


EVERY = [placer.name for placer in placers(1, 1)]
fleets = st.lists(st.sets(st.sampled_from("abcdefgh"), min_size=3), min_size=1, max_size=5)


@pytest.mark.parametrize("name", EVERY)
@given(fleets, st.integers(1, 3))
def test_every_slot_has_its_replicas_on_distinct_nodes_that_live(name: str, fleets: list[set[str]], count: int) -> None:
    """Whoever comes and goes: otherwise the figures would compare tables that serve nobody."""
    (placer,) = [placer for placer in placers(24, count) if placer.name == name]
    for names in fleets:
        table = placer.place(nodes(*sorted(names)))[-1]
        assert len(table) == 24
        for holders in table:
            assert len(set(holders)) == count == len(holders)
            assert names.issuperset(holders)


def test_jump_hash_gives_the_answers_of_its_first_implementation() -> None:
    """The reference values that other implementations check themselves by."""
    first = [jump_hash(key, 100) for key in range(20)]
    assert first == [0, 55, 62, 8, 45, 59, 86, 97, 82, 59, 73, 37, 17, 56, 86, 21, 90, 37, 38, 83]
    assert [jump_hash(key, 11) for key in (10863919174838991, 2016238256797177309, 1673758223894951030)] == [6, 3, 5]
    assert [jump_hash(key, 100_001) for key in (2, 2201, 2202)] == [80343, 22152, 15018]


@given(st.integers(0, 2**64 - 1), st.integers(1, 2_000))
def test_jump_hash_moves_keys_to_the_new_bucket_only(key: int, buckets: int) -> None:
    """The paper's promise: monotone, and nothing else."""
    assert jump_hash(key, 1) == 0
    assert jump_hash(key, buckets + 1) in (jump_hash(key, buckets), buckets)


def test_with_jump_hash_a_leave_moves_the_slots_of_two_nodes() -> None:
    """The leaver's slots change hands as the last node takes its number, and the last node's own go to all."""
    placer = Jump(2_000, 1)
    (before,) = placer.place(nodes("a", "b", "c", "d", "e"))
    (after,) = placer.place(nodes("a", "c", "d", "e"))
    for old, new in zip(before, after, strict=True):
        if old == ("b",):
            assert new == ("e",)
        elif old != ("e",):
            assert new == old
    assert set(counts(tuple(new for old, new in zip(before, after, strict=True) if old == ("e",)))) == set("acde")


def test_ranges_are_contiguous_and_the_first_members_get_one_more() -> None:
    """Kafka's example: of three partitions the first of two members gets two."""
    assert Ranges(3, 1).place(nodes("c0", "c1")) == [(("c0",), ("c0",), ("c1",))]
    (table,) = Ranges(8, 2).place(nodes("a", "b", "c"))
    assert [holders[0] for holders in table] == list("aaabbbcc")
    assert [holders[1] for holders in table] == list("bbbcccaa")


def test_round_robin_deals_in_turn() -> None:
    """Kafka's example: of six partitions of two topics one member gets the first, third and fifth."""
    (table,) = RoundRobin(6, 1).place(nodes("c0", "c1"))
    assert (held(table, "c0"), held(table, "c1")) == ([0, 2, 4], [1, 3, 5])


def test_sticky_members_keep_what_they_have_when_one_goes() -> None:
    """Kafka's example of eight partitions and three members, of which the second goes: only its three are dealt out."""
    placer = Sticky(8, 1)
    (before,) = placer.place(nodes("c0", "c1", "c2"))
    assert [held(before, name) for name in ("c0", "c1", "c2")] == [[0, 3, 6], [1, 4, 7], [2, 5]]
    (after,) = placer.place(nodes("c0", "c2"))
    assert set(held(after, "c0")) > {0, 3, 6}
    assert set(held(after, "c2")) > {2, 5}
    assert counts(after) == {"c0": 4, "c2": 4}
    assert moves(before, after) == 3


def test_sticky_members_give_up_what_is_over_the_quota() -> None:
    """A joiner gets the last ones of those who have most; who already has the rounded-up mean keeps it."""
    placer = Sticky(8, 1)
    (before,) = placer.place(nodes("c0", "c1"))
    (after,) = placer.place(nodes("c0", "c1", "c2"))
    assert counts(after) == {"c0": 3, "c1": 3, "c2": 2}
    assert held(after, "c2") == [6, 7]
    assert moves(before, after) == 2


def test_a_ring_moves_only_what_the_leaver_held_to_the_next_on_the_ring() -> None:
    """The others' arcs do not change; without the leaver the next one stands in front."""
    placer = ring(500, 2)
    (before,) = placer.place(nodes("a", "b", "c", "d"))
    (after,) = placer.place(nodes("a", "b", "d"))
    for old, new in zip(before, after, strict=True):
        assert set(new) >= set(old) - {"c"}
        assert new[0] == old[0] or old[0] == "c"
    assert placer.place(nodes("a", "b", "c", "d")) == [before]


def test_rendezvous_is_proportional_and_moves_only_what_changes() -> None:
    """Shares follow the weights, a heavier node only gains, and a leaver's slots go to the next best."""
    placer = rendezvous(4_000, 1)
    heavy = (*nodes("a", weight=2), *nodes("b", "c"))
    (before,) = placer.place(heavy)
    share = counts(before)
    assert abs(share["a"] - 2_000) < 150
    assert abs(share["b"] - 1_000) < 120
    (after,) = placer.place((*nodes("a", weight=3), *nodes("b", "c")))
    assert all(new in (old, ("a",)) for old, new in zip(before, after, strict=True))
    two = rendezvous(500, 2)
    ranked, left = two.place(heavy)[0], two.place(heavy[1:])[0]
    assert all({*old} - {"a"} <= {*new} for old, new in zip(ranked, left, strict=True))


def test_dicers_rule_fills_a_joiner_to_the_mean_and_lets_the_rest_lie() -> None:
    """A new node has to have the mean; what is within ten percent of it stays."""
    placer = Dicer(300, 2)
    (before,) = placer.place(nodes("a", "b", "c", "d", "e"))
    (joined,) = placer.place(nodes("a", "b", "c", "d", "e", "f"))
    assert counts(before) == dict.fromkeys("abcde", 120)
    assert counts(joined)["f"] == 100
    assert moves(before, joined) == 100
    assert all("f" in new for old, new in zip(before, joined, strict=True) if old != new)


def test_dicers_rule_gives_orphans_to_the_coldest_and_moves_nothing_else() -> None:
    """After a death everybody is about at the mean again, as far as the coldest does not hold the orphan already."""
    placer = Dicer(300, 2)
    (before,) = placer.place(nodes("a", "b", "c", "d", "e"))
    (after,) = placer.place(nodes("a", "b", "c", "d"))
    assert moves(before, after) == 120
    assert max(counts(after).values()) - min(counts(after).values()) <= 2
    assert leader_changes(before, after) == sum(old[0] == "e" for old in before)


@pytest.mark.parametrize(("load", "left"), [(34, 34), (35, 34)])
def test_dicers_rule_moves_nothing_that_costs_more_than_it_gains(load: int, left: int) -> None:
    """With 309 slots on ten nodes the band ends at 33.99: a load of 34 costs 0.16, and a move 0.25."""
    names = "abcdefghij"
    rest = [names[1 + index % 9] for index in range(309 - load)]
    search = Search((("a",),) * load + tuple((name,) for name in rest), names, 1)
    search.improve()
    assert counts(search.table())["a"] == left


def test_sofa_needs_several_tables_to_take_a_joiner_in() -> None:
    """Six leaders a tick: a joiner's share comes in pieces, and within the band nothing more moves."""
    placer = Sofa(120, 1)
    placer.place(nodes("a", "b", "c"))
    tables = placer.place(nodes("a", "b", "c", "d"))
    assert len(tables) > 1
    assert max(counts(tables[-1]).values()) <= 33  # the mean, 30, and ten percent
    assert placer.place(nodes("a", "b", "c", "d")) == [tables[-1]]


@given(fleets)
def test_the_default_policy_needs_just_what_is_proven(fleets: list[set[str]]) -> None:
    """What it moves is what its certificate calls the least; a table that it made needs nothing more."""
    placer = LeastMovement(24, PlacementRules(2))
    table: Table = ((),) * 24
    for names in fleets:
        fleet = nodes(*sorted(names))
        least = least_moves(table, fleet, PlacementRules(2))
        (after,) = placer.place(fleet)
        assert moves(table, after) == least
        assert least_moves(after, fleet, PlacementRules(2)) == 0
        table = after


@pytest.mark.parametrize("kind", [ring, Ranges, RoundRobin])
def test_placers_without_memory_give_one_table_for_one_fleet(kind: Callable[[int, int], Placer]) -> None:
    """However they came about."""
    placer = kind(64, 3)
    direct = placer.place(nodes("a", "b", "c", "d"))
    placer.place(nodes("c", "d", "e", "f"))
    assert placer.place(nodes("a", "b", "c", "d")) == direct
