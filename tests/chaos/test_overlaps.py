"""The search for overlaps finds those of every shape, in both directions, and none where nothing is certain."""

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from controlplane.core.values.identifiers import Epoch, Term
from controlplane.node import FencingToken
from tests.chaos.overlaps import find_overlaps
from tests.chaos.served import Process, Serving

N1, N2, N1_AGAIN = Process("n1", 10), Process("n2", 20), Process("n1", 30)


def token(epoch: int) -> FencingToken:
    """A token of the first term."""
    return FencingToken(Term(1), Epoch(epoch))


def serving(process: Process, epoch: int, began_us: int, ended_us: int, thing: str = "slot 8") -> Serving:
    """A time throughout which a process would serve."""
    return Serving(thing, process, token(epoch), began_us, ended_us)


def test_a_former_owner_that_stops_late_is_found() -> None:
    """The next one began before."""
    (overlap,) = find_overlaps([serving(N1, 5, 0, 1_000), serving(N2, 9, 700, 5_000)])
    assert (overlap.former, overlap.later) == (N1, N2)
    assert (overlap.former_token, overlap.later_token) == (token(5), token(9))
    assert (overlap.began_us, overlap.ended_us) == (700, 1_000)
    assert overlap.length_ms == 0.3


def test_a_next_owner_that_begins_early_is_found_whatever_the_order() -> None:
    """It begins while the former one serves, and ends before that; the one with the lesser token is the former one."""
    servings = [serving(N1, 5, 0, 9_000), serving(N2, 9, 3_000, 4_000)]
    for given_in_order in (servings, servings[::-1]):
        (overlap,) = find_overlaps(given_in_order)
        assert (overlap.former, overlap.later, overlap.length_ms) == (N1, N2, 1.0)


def test_an_owner_that_comes_back_under_its_old_token_is_found() -> None:
    """It began after the next one, and is the former one all the same."""
    (overlap,) = find_overlaps([serving(N2, 9, 0, 5_000), serving(N1, 5, 2_000, 3_000)])
    assert (overlap.former, overlap.later) == (N1, N2)
    assert (overlap.began_us, overlap.ended_us) == (2_000, 3_000)


def test_two_processes_of_one_node_and_two_under_one_token_are_found() -> None:
    """It is processes that must not overlap, whatever their names and tokens."""
    assert len(find_overlaps([serving(N1, 5, 0, 1_000), serving(N1_AGAIN, 9, 500, 2_000)])) == 1
    assert len(find_overlaps([serving(N1, 5, 0, 1_000), serving(N2, 5, 500, 2_000)])) == 1


def test_a_moment_counts_that_lies_within_the_time_of_another() -> None:
    """One look has seen it between 500 and 600; that it was then is certain, the moment is not."""
    (overlap,) = find_overlaps([serving(N1, 5, 0, 1_000), serving(N2, 9, 600, 500)])
    assert overlap.length_ms == 0
    assert not find_overlaps([serving(N1, 5, 0, 550), serving(N2, 9, 600, 500)])
    assert not find_overlaps([serving(N1, 5, 550, 1_000), serving(N2, 9, 600, 500)])


def test_one_after_the_other_is_no_overlap() -> None:
    """Nor are two things, nor two tokens of one process."""
    assert not find_overlaps([serving(N1, 5, 0, 1_000), serving(N2, 9, 1_001, 5_000)])
    assert not find_overlaps([serving(N1, 5, 0, 1_000), serving(N2, 9, 500, 5_000, "slot 16")])
    assert not find_overlaps([serving(N1, 5, 0, 1_000), serving(N1, 9, 500, 5_000)])


def test_parts_of_one_overlap_are_told_once_from_its_first_to_its_last_moment() -> None:
    """A process that was not looked at for a while has two times under one token."""
    (overlap,) = find_overlaps([serving(N1, 5, 0, 1_000), serving(N1, 5, 4_000, 5_000), serving(N2, 9, 500, 9_000)])
    assert (overlap.began_us, overlap.ended_us) == (500, 5_000)


_SERVINGS = st.builds(
    serving, st.sampled_from([N1, N2, N1_AGAIN]), st.integers(1, 3), st.integers(0, 12), st.integers(0, 12)
)


@given(st.lists(_SERVINGS, max_size=7))
def test_the_overlaps_are_those_of_comparing_every_pair(servings: list[Serving]) -> None:
    """The sweep makes it quick; it must not make it wrong."""
    expected = {
        frozenset([(one.process, one.token), (other.process, other.token)])
        for one, other in combinations(servings, 2)
        if one.process != other.process and one.began_us <= other.ended_us and other.began_us <= one.ended_us
    }
    found = find_overlaps(servings)
    assert {frozenset([(each.former, each.former_token), (each.later, each.later_token)]) for each in found} == expected
    assert len(found) == len(expected)
