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
        if watch.overdue(now_s) and watch.is_lost(now_s, another_was_answered=another_is_answered):
            given_up.append(now_s)
            watch.replaced(now_s)
    return given_up


def test_a_client_is_lost_that_gets_nothing_while_others_are_answered_twice() -> None:
    """Not at the first answer: a broker that is back answers whoever asks first."""
    watch: ClientWatch[str] = ClientWatch()
    watch.owes("a", 0.0)
    assert watch.overdue(FIRST_PATIENCE_S - 0.1) == []
    assert watch.overdue(FIRST_PATIENCE_S) == ["a"]
    assert not watch.is_lost(FIRST_PATIENCE_S, another_was_answered=True)
    assert watch.overdue(FIRST_PATIENCE_S + SECOND_LOOK_S - 0.1) == []
    assert watch.overdue(FIRST_PATIENCE_S + SECOND_LOOK_S) == ["a"]
    assert watch.is_lost(FIRST_PATIENCE_S + SECOND_LOOK_S, another_was_answered=True)


def test_what_comes_after_all_clears_the_client() -> None:
    """It had only waited for the broker, as everybody had."""
    watch: ClientWatch[str] = ClientWatch()
    watch.owes("a", 0.0)
    assert watch.overdue(FIRST_PATIENCE_S) == ["a"]
    assert not watch.is_lost(FIRST_PATIENCE_S, another_was_answered=True)
    watch.settled("a", 4.0)
    watch.owes("a", 4.0)
    assert watch.overdue(4.0 + FIRST_PATIENCE_S) == ["a"]
    assert not watch.is_lost(4.0 + FIRST_PATIENCE_S, another_was_answered=True), (
        "the answer of before does not count any more"
    )


def test_nobody_is_lost_while_nobody_is_answered() -> None:
    """A broker that is away for an hour is asked once in each patience, and no client is replaced for it."""
    watch: ClientWatch[str] = ClientWatch()
    watch.owes("a", 0.0)
    assert lost_at(watch, 0.0, 60.0, another_is_answered=False) == []
    assert lost_at(watch, 60.0, 70.0) != []


def test_each_client_that_does_no_better_gets_more_time() -> None:
    """Over a slow link what is owed comes at last; new clients must not keep beginning with it."""
    watch: ClientWatch[str] = ClientWatch()
    watch.owes("a", 0.0)
    given_up = lost_at(watch, 0.0, 200.0)
    times = [after - before for before, after in pairwise(given_up)]
    assert times == sorted(times)
    assert times[0] < times[-1] <= LONGEST_PATIENCE_S + SECOND_LOOK_S + 0.2
    for later_s in range(201, 204):
        watch.owes("a", later_s)
        watch.settled("a", later_s)
    assert watch.patience_s == FIRST_PATIENCE_S


def test_what_comes_together_counts_once() -> None:
    """One batch that got through does not show a client to be fast, and what was not waited for shows nothing."""
    watch: ClientWatch[str] = ClientWatch()
    for now_s in range(3):
        watch.owes("a", now_s)
        watch.owes("b", now_s)
        watch.replaced(now_s)
    patience_s = watch.patience_s
    watch.settled("a", 3.0)
    watch.settled("b", 3.0)
    watch.settled("c", 4.0)
    assert watch.patience_s == patience_s / 2


def test_a_client_that_gets_anything_is_given_longer() -> None:
    """Behind an outage very much is sent at once, and the acknowledgements come one after the other."""
    watch: ClientWatch[str] = ClientWatch()
    watch.owes("late", 0.0)
    for now_s in range(1, round(LONGEST_PATIENCE_S)):
        watch.owes("busy", float(now_s))
        watch.settled("busy", float(now_s))
        assert watch.overdue(now_s + 0.5) == []
    assert watch.overdue(LONGEST_PATIENCE_S) == ["late"]


def test_a_place_of_which_nothing_comes_is_noticed_beside_others() -> None:
    """A partition can stay without a broker in a client whose other partitions are served."""
    watch: ClientWatch[str] = ClientWatch()
    watch.owes("stuck", 0.0)
    given_up = []
    for step in range(400):
        now_s = step / 10
        watch.owes("busy", now_s)
        watch.settled("busy", now_s)
        if watch.overdue(now_s) and watch.is_lost(now_s, another_was_answered=True):
            given_up.append(now_s)
            watch.replaced(now_s)
    assert given_up == [LONGEST_PATIENCE_S + SECOND_LOOK_S]


def test_anything_that_comes_clears_a_client_that_got_nothing() -> None:
    """It was the broker, and the rest will come."""
    watch: ClientWatch[str] = ClientWatch()
    watch.owes("a", 0.0)
    watch.owes("b", 0.0)
    assert watch.overdue(FIRST_PATIENCE_S) == ["a", "b"]
    assert not watch.is_lost(FIRST_PATIENCE_S, another_was_answered=True)
    watch.settled("b", 3.5)
    assert watch.overdue(FIRST_PATIENCE_S + SECOND_LOOK_S) == []


def test_what_comes_while_another_is_asked_clears_the_client() -> None:
    """The answer to a question that nobody has any more says nothing."""
    watch: ClientWatch[str] = ClientWatch()
    watch.owes("a", 0.0)
    assert watch.overdue(FIRST_PATIENCE_S) == ["a"]
    watch.settled("a", 3.5)
    assert not watch.is_lost(4.0, another_was_answered=True)
    watch.owes("a", 4.0)
    assert watch.overdue(4.0 + FIRST_PATIENCE_S) == ["a"]
    assert not watch.is_lost(4.0 + FIRST_PATIENCE_S, another_was_answered=True)


def test_the_second_look_waits_from_the_answer_on() -> None:
    """An answer can take seconds itself; only what comes after it clears the client."""
    watch: ClientWatch[str] = ClientWatch()
    watch.owes("a", 0.0)
    assert watch.overdue(FIRST_PATIENCE_S) == ["a"]
    answered_s = FIRST_PATIENCE_S + 5.0
    assert not watch.is_lost(answered_s, another_was_answered=True)
    assert watch.overdue(answered_s + SECOND_LOOK_S - 0.1) == []
    assert watch.overdue(answered_s + SECOND_LOOK_S) == ["a"]


def test_a_client_that_is_answered_itself_is_given_the_longest_patience() -> None:
    """A leader that waits for a follower that has just died acknowledges nothing, to whomever."""
    watch: ClientWatch[str] = ClientWatch()
    watch.owes("a", 0.0)
    lost_at_s = [
        now_s
        for now_s in range(60)
        if watch.overdue(now_s) and watch.is_lost(now_s, another_was_answered=True, this_was_answered=True)
    ]
    assert lost_at_s[0] >= LONGEST_PATIENCE_S + SECOND_LOOK_S
    assert lost_at_s[0] <= LONGEST_PATIENCE_S + FIRST_PATIENCE_S + SECOND_LOOK_S


def test_a_silent_place_beside_others_is_asked_about_seldom() -> None:
    """A partition without a leader can stay so for hours, and each look costs a connection."""
    watch: ClientWatch[str] = ClientWatch()
    watch.owes("silent", 0.0)
    looks = 0
    for now_s in range(240):
        watch.owes("busy", now_s)
        watch.settled("busy", now_s)
        if watch.overdue(now_s):
            looks += 1
            assert not watch.is_lost(now_s, another_was_answered=False)
    assert looks <= 240 / LONGEST_PATIENCE_S


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


def test_a_place_that_is_left_takes_its_answer_with_it() -> None:
    """Who was put elsewhere, or sends there no more, is doubted anew and looked at twice."""
    watch: ClientWatch[str] = ClientWatch()
    watch.owes("a", 0.0)
    assert watch.overdue(FIRST_PATIENCE_S) == ["a"]
    assert not watch.is_lost(FIRST_PATIENCE_S, another_was_answered=True)
    watch.keep_to(["b"])
    watch.owes("b", 10.0)
    assert watch.overdue(10.0 + FIRST_PATIENCE_S) == ["b"]
    assert not watch.is_lost(10.0 + FIRST_PATIENCE_S, another_was_answered=True)
    assert watch.overdue(10.0 + FIRST_PATIENCE_S + SECOND_LOOK_S) == ["b"]
    assert watch.is_lost(10.0 + FIRST_PATIENCE_S + SECOND_LOOK_S, another_was_answered=True)


@given(gaps_s=st.lists(st.floats(0.01, FIRST_PATIENCE_S - 0.01), max_size=50))
def test_a_client_that_gets_something_in_time_is_never_doubted(gaps_s: list[float]) -> None:
    """However often it is looked at, and whatever others are answered."""
    watch: ClientWatch[str] = ClientWatch()
    now_s = 0.0
    watch.owes("a", now_s)
    for gap_s in gaps_s:
        now_s += gap_s
        assert watch.overdue(now_s) == []
        watch.settled("a", now_s)
        watch.owes("a", now_s)
