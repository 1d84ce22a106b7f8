"""The verifier refuses what is not as the certificate says, and names it."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import combinations, product

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from controlplane.core.slots.certificate import Certificate
from controlplane.core.slots.minimal.contract import PlacementNode
from controlplane.core.slots.table import Slot, empty_table
from controlplane.core.values.identifiers import Epoch
from tests.helpers.placement_problems import Problem, equal_nodes, plan, problems, verify

NODES = equal_nodes(4)
BEFORE = plan(empty_table(16), NODES[:3], 2, Epoch(1)).applied_to(empty_table(16))
PLANNED = plan(BEFORE, NODES, 2, Epoch(2))
AFTER = PLANNED.applied_to(BEFORE)
LED_BY_OTHERS = next(slot.slot_id for slot in AFTER if "n003" not in slot.replicas)


def _with_row(**changes: object) -> tuple[Slot, ...]:
    row = replace(AFTER[LED_BY_OTHERS], **changes)  # type: ignore[arg-type]  # the cases below name fields of Slot
    return tuple(row if slot.slot_id == LED_BY_OTHERS else slot for slot in AFTER)


def _swapped_leader() -> tuple[Slot, ...]:
    """The same sets with two leaderships exchanged for nothing: balanced, but with two changes too many."""
    for one in AFTER:
        for other in AFTER:
            kept = one.leader == BEFORE[one.slot_id].leader and other.leader == BEFORE[other.slot_id].leader
            if kept and one.followers == (other.leader,) and other.followers == (one.leader,):
                rows = {
                    slot.slot_id: Slot(slot.slot_id, slot.followers[0], (slot.leader or "",), Epoch(2))
                    for slot in (one, other)
                }
                return tuple(rows.get(slot.slot_id, slot) for slot in AFTER)
    raise AssertionError("the example has no two slots with exchanged roles")


def _needless_exchanges(before: tuple[Slot, ...], after: tuple[Slot, ...]) -> Iterator[tuple[Slot, ...]]:
    """Every table in which two slots exchanged a kept follower for one that is new to them."""
    for one, other in combinations(after, 2):
        for mine, theirs in product(one.followers, other.followers):
            old, new = before[one.slot_id].replicas, before[other.slot_id].replicas
            if mine in old and theirs in new and theirs not in old + one.replicas and mine not in new + other.replicas:
                rows = {
                    one.slot_id: replace(one, followers=tuple(sorted({*one.followers, theirs} - {mine}))),
                    other.slot_id: replace(other, followers=tuple(sorted({*other.followers, mine} - {theirs}))),
                }
                yield tuple(rows.get(slot.slot_id, slot) for slot in after)


def _needless_moves() -> tuple[Slot, ...]:
    """Balanced and legal, but with two moves too many."""
    return next(_needless_exchanges(BEFORE, AFTER))


def _certificate(**changes: object) -> Certificate:
    return replace(PLANNED.certificate, **changes)  # type: ignore[arg-type]  # the cases below name its fields


CASES: dict[str, tuple[Callable[[], tuple[Slot, ...]], Certificate, str]] = {
    "a row missing": (lambda: AFTER[:-1], PLANNED.certificate, "does not have the slots"),
    "a replica missing": (lambda: _with_row(followers=()), PLANNED.certificate, "do not add up to what there is"),
    "a replica twice": (
        lambda: _with_row(followers=(AFTER[LED_BY_OTHERS].leader,)),
        PLANNED.certificate,
        f"slot {LED_BY_OTHERS}: a node holds it twice",
    ),
    "a stranger": (lambda: _with_row(followers=("zz",)), PLANNED.certificate, "zz is no node that may hold it"),
    "no leader": (
        lambda: _with_row(leader=None, followers=AFTER[LED_BY_OTHERS].replicas),
        PLANNED.certificate,
        "it has holders and no leader",
    ),
    "unsorted followers": (
        lambda: _with_row(followers=("n002", "n001")),
        PLANNED.certificate,
        "followers are not sorted",
    ),
    "a leader epoch that rose for nothing": (
        lambda: _with_row(leader_epoch=Epoch(9)),
        PLANNED.certificate,
        "leader epoch changed though its leader did not",
    ),
    "an unbalanced node": (lambda: _with_row(followers=("n003",)), PLANNED.certificate, "node n003: 9 replicas"),
    "needless moves": (_needless_moves, PLANNED.certificate, "the prices prove only"),
    "needless moves, confessed": (
        _needless_moves,
        _certificate(moved=PLANNED.certificate.moved + 2, least_moved=PLANNED.certificate.moved + 2),
        "replicas moved: 10, but the prices prove only 8",
    ),
    "needless changes, confessed": (
        _swapped_leader,
        _certificate(
            leader_changes=PLANNED.certificate.leader_changes + 2,
            least_leader_changes=PLANNED.certificate.leader_changes + 2,
        ),
        "leaders changed: they cost 6, but the prices prove only 4",
    ),
    "moves understated": (lambda: AFTER, _certificate(moved=7), "replicas moved: 8, but the certificate says 7"),
    "least understated": (lambda: AFTER, _certificate(least_moved=7), "the certificate's least is 7, not 8"),
    "changes understated": (lambda: AFTER, _certificate(leader_changes=0), "leaders changed: 4, but the certificate"),
    "least changes": (lambda: AFTER, _certificate(least_leader_changes=3), "the certificate's least is 3, not 4"),
    "bad node prices": (
        lambda: AFTER,
        _certificate(node_prices={node.node_id: 0 for node in NODES}),
        "replicas moved: 8, but the prices prove only 0",
    ),
    "bad leader prices": (
        lambda: AFTER,
        _certificate(leader_prices={node.node_id: 0 for node in NODES}),
        "leaders changed: they cost 4, but the prices prove only",
    ),
    "a price of nobody": (lambda: AFTER, _certificate(node_prices={"zz": 0}), "node prices do not name the nodes"),
    "a price that no sum can hold": (
        _needless_moves,
        _certificate(
            moved=PLANNED.certificate.moved + 2,
            least_moved=PLANNED.certificate.moved + 2,
            node_prices={**PLANNED.certificate.node_prices, "n000": -(1 << 60)},
        ),
        "more than any table of this size needs",
    ),
    "an absence that no sum can hold": (lambda: AFTER, _certificate(absence_price=1 << 70), "a price is beyond"),
    "another policy": (lambda: AFTER, _certificate(policy="sofa"), "policy 'sofa' is not 'minimal'"),
    "a slot lost": (lambda: AFTER, _certificate(lost_slots=(3,)), "slots lost with their last holder: []"),
}


@pytest.mark.parametrize("case", CASES)
def test_what_was_tampered_with_is_refused_and_named(case: str) -> None:
    """Each rule of the verifier, broken once: the complaint says which slot, node or number."""
    after, certificate, complaint = CASES[case]
    complaints = verify(BEFORE, NODES, 2, after(), certificate)
    assert any(complaint in sentence for sentence in complaints), complaints


def test_the_example_itself_is_accepted() -> None:
    """Otherwise the refusals above would prove nothing."""
    assert verify(BEFORE, NODES, 2, AFTER, PLANNED.certificate) == []


def test_a_leader_epoch_that_did_not_rise_is_refused() -> None:
    """The fencing token of a slot has to be new whenever its leader is."""
    changed = next(slot for slot in AFTER if slot.leader != BEFORE[slot.slot_id].leader)
    after = tuple(replace(slot, leader_epoch=Epoch(1)) if slot is changed else slot for slot in AFTER)
    assert verify(BEFORE, NODES, 2, after, PLANNED.certificate) == [
        f"slot {changed.slot_id}: its leader changed but its leader epoch did not rise"
    ]


def test_a_new_node_that_leads_in_place_of_an_heir_is_refused() -> None:
    """A slot whose leader died has to go to a holder of its data, though the number of changes is the same."""
    previous = (Slot(0, "a", ("b",), Epoch(1)),)
    nodes = [PlacementNode("b", 1, 0), PlacementNode("c", 1, 0)]
    planned = plan(previous, nodes, 2, Epoch(2))
    assert planned.slots == (Slot(0, "b", ("c",), Epoch(2)),)
    usurped = (Slot(0, "c", ("b",), Epoch(2)),)
    assert verify(previous, nodes, 2, usurped, planned.certificate) == [
        "leaders changed: they cost 3, but the prices prove only 1"
    ]


@given(problems(), st.data())
def test_no_prices_prove_more_than_was_moved(problem: Problem, data: st.DataObject) -> None:
    """Duality is the verifier's ground: whatever the prices, they never prove a number above the optimum."""
    planned = problem.solve()
    names = sorted(node.node_id for node in problem.nodes)
    prices = {name: data.draw(st.integers(-3, 3)) for name in names}
    certificate = replace(planned.certificate, node_prices=prices)
    after = planned.applied_to(problem.previous)
    complaints = verify(problem.previous, problem.nodes, problem.replica_count, after, certificate)
    for complaint in complaints:
        assert complaint.startswith("replicas moved: ")
        counted, proven = (int(word) for word in complaint.replace(",", "").split() if word.lstrip("-").isdigit())
        assert proven < counted


@given(st.integers(6, 24), st.integers(4, 7), st.integers(2, 3), st.integers(0, 500))
def test_a_worse_plan_is_refused_whatever_its_numbers(slots: int, width: int, replicas: int, choice: int) -> None:
    """Two slots that exchange followers for nothing stay balanced; the moves that they confess cannot be proven."""
    nodes = equal_nodes(width)
    before = plan(empty_table(slots), nodes, replicas, Epoch(1)).applied_to(empty_table(slots))
    planned = plan(before, nodes[1:], replicas, Epoch(2))
    after = planned.applied_to(before)
    exchanges = list(_needless_exchanges(before, after))
    assume(exchanges)
    exchanged = exchanges[choice % len(exchanges)]
    moved = sum(len(set(new.replicas) - set(old.replicas)) for old, new in zip(before, exchanged, strict=True))
    certificate = replace(planned.certificate, moved=moved, least_moved=moved)
    complaints = verify(before, nodes[1:], replicas, exchanged, certificate)
    assert f"replicas moved: {moved}, but the prices prove only {planned.certificate.moved}" in complaints
