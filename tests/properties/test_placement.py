"""What every slot plan keeps to, whatever the table before and whoever the nodes are."""

import os
import random
import subprocess
import sys
from dataclasses import replace
from math import ceil, floor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controlplane.core.slots.certificate import ReadyHeirs
from controlplane.core.slots.minimal.contract import PlacementNode
from controlplane.core.slots.table import Slot, empty_table
from controlplane.core.values.canonical import digest_hex
from controlplane.core.values.identifiers import Epoch
from controlplane.errors import InvariantViolationError, PlacementRefusedError
from tests.helpers.placement_problems import (
    Problem,
    counts,
    equal_nodes,
    plan,
    problems,
    verify,
    without,
)


@given(problems())
def test_the_verifier_accepts_every_plan(problem: Problem) -> None:
    """Planner and verifier share no code and agree."""
    planned = problem.solve()
    after = planned.applied_to(problem.previous)
    complaints = verify(problem.previous, problem.nodes, problem.replica_count, after, planned.certificate)
    assert complaints == []
    assert planned.certificate.least_moved == planned.certificate.moved
    assert planned.certificate.least_leader_changes == planned.certificate.leader_changes


@given(problems())
def test_only_changed_rows_are_given_and_leader_epochs_follow_the_leader(problem: Problem) -> None:
    """A row is in the plan exactly if it differs; its leader epoch is the plan's exactly if its leader differs."""
    rows = {slot.slot_id: slot for slot in problem.solve(epoch=77).slots}
    assert list(rows) == sorted(rows)
    for before in problem.previous:
        after = rows.get(before.slot_id)
        if after is None:
            continue
        assert after != before
        assert after.leader_epoch == (before.leader_epoch if after.leader == before.leader else 77)


@given(problems())
def test_a_second_plan_changes_nothing(problem: Problem) -> None:
    """A table that was planned for these nodes stays as it is, and the certificate says so."""
    settled = replace(problem, previous=problem.solve().applied_to(problem.previous))
    again = settled.solve(epoch=101)
    assert again.slots == ()
    assert again.certificate.moved == 0
    assert again.certificate.leader_changes == 0


@given(problems(), st.randoms(use_true_random=False))
def test_the_order_of_nodes_does_not_matter(problem: Problem, shuffler: random.Random) -> None:
    """Two controllers that list the nodes in different orders decide alike, to the byte."""
    nodes = list(problem.nodes)
    shuffler.shuffle(nodes)
    assert digest_hex(replace(problem, nodes=tuple(nodes)).solve()) == digest_hex(problem.solve())


@pytest.mark.slow
def test_the_hash_seed_of_the_process_does_not_matter() -> None:
    """Sets and dicts of names must not leak their order: three processes with different seeds plan the same bytes."""
    program = """
import random
from controlplane.core.slots.minimal.contract import PlacementNode
from controlplane.core.values.canonical import digest_hex
from controlplane.core.slots.table import empty_table
from tests.helpers.placement_problems import equal_nodes, plan
table, choose, digests = empty_table(64), random.Random(5), []
for epoch in range(1, 12):
    nodes = choose.sample([PlacementNode(n.node_id, choose.randint(1, 3), 0) for n in equal_nodes(9)], 6)
    ready = frozenset((s.slot_id, name) for s in table for name in s.followers)
    planned = plan(table, nodes, 3, epoch, ready)
    table = planned.applied_to(table)
    digests.append(digest_hex(planned))
print(digest_hex(digests))
"""
    answers = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed in ("0", "1", "4242")
    }
    assert len(answers) == 1


@given(st.integers(20, 64), st.integers(2, 11), st.integers(1, 3), st.data())
def test_a_node_that_leaves_takes_only_its_own_replicas_along(
    slot_count: int, width: int, replica_count: int, data: st.DataObject
) -> None:
    """Among equal nodes, exactly the replicas of the lost node are placed anew, wherever a node is there for them.

    In smaller tables the nodes that lack most may hold all of its slots already: then it can take more.
    """
    nodes = equal_nodes(width)
    table = plan(empty_table(slot_count), nodes, replica_count, Epoch(1)).applied_to(empty_table(slot_count))
    gone = data.draw(st.sampled_from(nodes)).node_id
    problem = without(Problem(table, nodes, replica_count), gone)
    held = sum(gone in slot.replicas for slot in table)
    expected = held if width > replica_count else 0
    planned = problem.solve()
    assert planned.certificate.moved == expected
    assert planned.certificate.lost_slots == tuple(slot.slot_id for slot in table if slot.replicas == (gone,))


@given(st.integers(1, 40), st.integers(1, 8), st.integers(1, 3))
def test_a_node_that_joins_is_given_its_share_and_nothing_else_moves(
    slot_count: int, width: int, replica_count: int
) -> None:
    """Among equal nodes, a joiner receives the floor of its share (or fills the slots that were short of a node)."""
    nodes = equal_nodes(width)
    table = plan(empty_table(slot_count), nodes, replica_count, Epoch(1)).applied_to(empty_table(slot_count))
    joiner = PlacementNode("zz", 1, 0)
    planned = plan(table, (*nodes, joiner), replica_count, Epoch(2))
    after = planned.applied_to(table)
    received = sum("zz" in slot.replicas for slot in after)
    share = slot_count * min(replica_count, width + 1) / (width + 1)
    assert planned.certificate.moved == received
    assert received == (floor(share) if width >= replica_count else ceil(share))


@settings(max_examples=40)
@given(st.lists(problems(max_slots=1), min_size=2, max_size=8), st.integers(1, 24), st.integers(1, 3))
def test_any_history_of_joins_leaves_and_weights_stays_certified(
    fleets: list[Problem], slot_count: int, replica_count: int
) -> None:
    """The rules hold for tables that grew out of one another, not only for random ones."""
    table = empty_table(slot_count)
    for epoch, fleet in enumerate(fleets, start=1):
        planned = plan(table, fleet.nodes, replica_count, Epoch(epoch))
        after = planned.applied_to(table)
        assert verify(table, fleet.nodes, replica_count, after, planned.certificate) == []
        table = after


def test_a_slot_without_its_leader_goes_to_the_holder_that_is_ready() -> None:
    """Of two holders that are left, the one that reported the slot ready takes over, whichever its name."""
    previous = (Slot(0, "a", ("b", "c"), Epoch(1)),)
    nodes = [PlacementNode("b", 1, 0), PlacementNode("c", 1, 0), PlacementNode("d", 1, 0)]
    for heir in ("b", "c"):
        planned = plan(previous, nodes, 3, Epoch(2), frozenset({(0, heir), (0, "d")}))
        assert planned.slots[0].leader == heir


def test_a_slot_without_its_leader_goes_to_a_holder_rather_than_to_a_new_node() -> None:
    """Two changes of leaders that hold their slots are better than one leader that begins with nothing."""
    previous = (
        Slot(0, "a", ("b",), Epoch(1)),
        Slot(1, "b", ("c",), Epoch(1)),
        Slot(2, "c", ("b",), Epoch(1)),
    )
    nodes = [PlacementNode("b", 1, 0), PlacementNode("c", 1, 0), PlacementNode("d", 1, 0)]
    after = plan(previous, nodes, 2, Epoch(2)).applied_to(previous)
    assert after[0].leader == "b"


def test_an_heir_that_is_ready_is_worth_a_second_change() -> None:
    """To lead with old data because the ready holder leads enough already would lose what it knows."""
    previous = (Slot(0, "a", ("b", "c"), Epoch(1)), Slot(1, "c", ("b",), Epoch(1)))
    nodes = [PlacementNode("b", 1, 0), PlacementNode("c", 1, 0)]
    unknown = plan(previous, nodes, 2, Epoch(2))
    assert [slot.leader for slot in unknown.applied_to(previous)] == ["b", "c"]
    ready = frozenset({(0, "c")})
    known = plan(previous, nodes, 2, Epoch(2), ready)
    after = known.applied_to(previous)
    assert [slot.leader for slot in after] == ["c", "b"]
    assert known.certificate.leader_changes == 2
    assert known.certificate.ready_heirs == (ReadyHeirs(0, ("c",)),)
    assert verify(previous, nodes, 2, after, known.certificate) == []
    assert verify(previous, nodes, 2, after, replace(known.certificate, ready_heirs=())) == [
        "leaders changed: they cost 2, but the prices prove only 1"
    ]


def test_among_equally_cheap_leaders_the_ready_one_is_taken() -> None:
    """A leader that has to give a slot up gives it to a holder that is ready, whichever its name."""
    previous = (Slot(0, "a", ("b", "c"), Epoch(1)), Slot(1, "a", ("b", "c"), Epoch(1)))
    nodes = [PlacementNode(name, 1, 0) for name in ("a", "b", "c")]
    for heir in ("b", "c"):
        after = plan(previous, nodes, 3, Epoch(2), frozenset({(0, heir), (1, heir)})).applied_to(previous)
        assert sorted(slot.leader or "" for slot in after) == ["a", heir]


def test_one_slot_is_not_given_away_twice() -> None:
    """A node with two leaderships too many gives two slots to the two nodes that lack one each."""
    previous = (
        *(Slot(slot_id, "a", ("b", "c", "d"), Epoch(1)) for slot_id in range(6)),
        *(Slot(slot_id, "a", ("b",), Epoch(1)) for slot_id in range(6, 9)),
    )
    nodes = [PlacementNode(name, 1, 0) for name in ("b", "c", "d")]
    _, led = counts(plan(previous, nodes, 3, Epoch(2)).applied_to(previous), ["b", "c", "d"])
    assert led == {"b": 3, "c": 3, "d": 3}


def test_a_slot_with_a_replica_too_many_keeps_its_leader() -> None:
    """Fewer replicas wished: a follower goes, not the leader, wherever the names stand."""
    for leader, followers in (("a", ("b", "c")), ("c", ("a", "b"))):
        previous = (Slot(0, leader, followers, Epoch(1)),)
        nodes = [PlacementNode(name, 1, 0) for name in ("a", "b", "c")]
        planned = plan(previous, nodes, 2, Epoch(2))
        assert planned.certificate.moved == 0
        assert planned.certificate.leader_changes == 0


def test_without_nodes_all_slots_lose_their_holders_and_are_named_once() -> None:
    """The last node's death empties the table and names the slots; the next plan does not name them again."""
    table = plan(empty_table(4), equal_nodes(1), 2, Epoch(1)).applied_to(empty_table(4))
    planned = plan(table, [], 2, Epoch(2))
    assert planned.certificate.lost_slots == (0, 1, 2, 3)
    empty = planned.applied_to(table)
    assert empty == tuple(Slot(slot_id, None, (), Epoch(2)) for slot_id in range(4))
    again = plan(empty, equal_nodes(1), 2, Epoch(3))
    assert again.certificate.lost_slots == ()
    assert all(slot.leader == "n000" for slot in again.applied_to(empty))


def test_a_node_of_weight_zero_is_relieved_of_everything_and_loses_nothing() -> None:
    """A living node that is to hold nothing gives all away; its slots are not lost, because it can hand them over."""
    nodes = [PlacementNode("a", 1, 0), PlacementNode("b", 1, 0)]
    table = plan(empty_table(8), nodes, 1, Epoch(1)).applied_to(empty_table(8))
    planned = plan(table, [PlacementNode("a", 0, 0), nodes[1]], 1, Epoch(2))
    assert planned.certificate.lost_slots == ()
    assert {slot.leader for slot in planned.applied_to(table)} == {"b"}
    assert planned.certificate.moved == 4


def test_too_little_room_fills_every_node_and_leaves_the_fewest_slots_unserved() -> None:
    """Capacities are a promise: nodes are filled to them, slots that have a living holder stay, the rest wait."""
    nodes = [PlacementNode("a", 1, 3), PlacementNode("b", 5, 2)]
    table = plan(empty_table(8), nodes, 2, Epoch(1)).applied_to(empty_table(8))
    held, _ = counts(table, ["a", "b"])
    assert held == {"a": 3, "b": 2}
    assert sum(slot.leader is None for slot in table) == 3
    assert plan(table, nodes, 2, Epoch(2)).slots == ()


def test_replicas_that_a_dead_node_leaves_are_spread_over_many() -> None:
    """The first placement mixes the holders: what one node leaves is not inherited by two neighbours."""
    nodes = equal_nodes(20)
    table = plan(empty_table(512), nodes, 2, Epoch(1)).applied_to(empty_table(512))
    companions = {name for slot in table if "n007" in slot.replicas for name in slot.replicas}
    assert len(companions) > 15


@pytest.mark.parametrize(
    ("previous", "nodes", "replica_count"),
    [
        ((), equal_nodes(1), 1),
        (empty_table(1), equal_nodes(1), 0),
        (empty_table(1), equal_nodes(1) * 2, 1),
        (empty_table(1), [PlacementNode("a", -1, 0)], 1),
        (empty_table(1), [PlacementNode("a", 1, -1)], 1),
        (empty_table(2)[::-1], equal_nodes(1), 1),
    ],
    ids=["no slots", "no replicas", "a node twice", "negative weight", "negative capacity", "rows out of order"],
)
def test_nonsense_is_refused(previous: tuple[Slot, ...], nodes: list[PlacementNode], replica_count: int) -> None:
    """A defect of the caller stops with a sentence instead of becoming a table."""
    with pytest.raises(InvariantViolationError, match="placement: "):
        plan(previous, nodes, replica_count, Epoch(1))


def test_costs_beyond_64_bits_are_refused_and_no_defect() -> None:
    """A leader that took it for a defect would stop, and so would every one after it."""
    with pytest.raises(PlacementRefusedError, match="32,768 slots on 32,768 nodes"):
        plan(empty_table(1 << 15), equal_nodes(1 << 15), 1, Epoch(1))
