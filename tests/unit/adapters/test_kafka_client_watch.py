"""When a client that gets nowhere is doubted, and when another one stands in for it."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from controlplane.adapters.kafka_client_watch import (
    FIRST_PATIENCE_S,
    LONGEST_PATIENCE_S,
    SECOND_LOOK_S,
    ClientWatch,
)


def lost_at(watch: ClientWatch[str], from_s: float, until_s: float, *, another_is_answered: bool = True) -> list[float]:
    """When the watch gave its client up, looked at every 100 ms."""
    given_up = []
    for step in range(round((until_s - from_s) * 10) + 1):
        now_s = from_s + step / 10
        if watch.overdue(now_s) and watch.is_lost(another_was_answered=another_is_answered):
            given_up.append(now_s)
            watch.replaced(now_s)
    return given_up


def test_a_client_is_lost_that_gets_nothing_while_others_are_answered_twice() -> None:
    """Not at the first answer: a broker that is back answers whoever asks first."""
    watch: ClientWatch[str] = ClientWatch()
    watch.owes("a", 0.0)
    assert watch.overdue(FIRST_PATIENCE_S - 0.1) == []
    assert watch.overdue(FIRST_PATIENCE_S) == ["a"]
    assert not watch.is_lost(another_was_answered=True)
    assert watch.overdue(FIRST_PATIENCE_S + SECOND_LOOK_S - 0.1) == []
    assert watch.overdue(FIRST_PATIENCE_S + SECOND_LOOK_S) == ["a"]
    assert watch.is_lost(another_was_answered=True)


def test_what_comes_after_all_clears_the_client() -> None:
    """It had only waited for the broker, as everybody had."""
    watch: ClientWatch[str] = ClientWatch()
    watch.owes("a", 0.0)
    assert watch.overdue(FIRST_PATIENCE_S) == ["a"]
    assert not watch.is_lost(another_was_answered=True)
    watch.settled("a")
    watch.owes("a", 4.0)
    assert watch.overdue(4.0 + FIRST_PATIENCE_S) == ["a"]
    assert not watch.is_lost(another_was_answered=True), "the answer of before does not count any more"


def test_nobody_is_lost_while_nobody_is_answered() -> None:
    """A broker that is away for an hour is asked once in each patience, and no client is replaced for it."""
    watch: ClientWatch[str] = ClientWatch()
    watch.owes("a", 0.0)
    assert lost_at(watch, 0.0, 60.0, another_is_answered=False) == []
    assert lost_at(watch, 60.0, 70.0) != []


def test_each_client_that_does_no_better_gets_more_time() -> None:
    """Over a slow link what is owed comes at last, if new clients do not keep beginning with it."""
    watch: ClientWatch[str] = ClientWatch()
    watch.owes("a", 0.0)
    given_up = lost_at(watch, 0.0, 200.0)
    times = [after - before for before, after in pairwise(given_up)]
    assert times == sorted(times)
    assert times[0] < times[-1] <= LONGEST_PATIENCE_S + SECOND_LOOK_S + 0.2
    watch.settled("a")
    watch.owes("a", 201.0)
    assert watch.overdue(201.0 + FIRST_PATIENCE_S) == ["a"]


def test_chatter_elsewhere_does_not_shorten_the_patience() -> None:
    """Other partitions have records all the time: that says nothing of the one that is waited for."""
    watch: ClientWatch[str] = ClientWatch()
    watch.owes("slow", 0.0)
    assert lost_at(watch, 0.0, 10.0)
    patience_s = watch.patience_s
    watch.owes("busy", 10.0)
    watch.settled("busy")
    assert watch.patience_s == patience_s > FIRST_PATIENCE_S


def test_asking_for_the_same_again_is_no_excuse() -> None:
    """Who begins to read again from where he was has waited all the same."""
    watch: ClientWatch[str] = ClientWatch()
    for now_s in range(4):
        watch.owes("a", float(now_s))
        watch.keep_to(["a"])
    assert watch.overdue(FIRST_PATIENCE_S) == ["a"]
    watch.keep_to(["b"])
    assert watch.overdue(FIRST_PATIENCE_S * 9) == []
    assert watch.is_settled("a")


@given(gaps_s=st.lists(st.floats(0.01, FIRST_PATIENCE_S - 0.01), max_size=50))
def test_a_client_that_gets_something_in_time_is_never_doubted(gaps_s: list[float]) -> None:
    """However often it is looked at, and whatever others are answered."""
    watch: ClientWatch[str] = ClientWatch()
    now_s = 0.0
    watch.owes("a", now_s)
    for gap_s in gaps_s:
        now_s += gap_s
        assert watch.overdue(now_s) == []
        watch.settled("a")
        watch.owes("a", now_s)
