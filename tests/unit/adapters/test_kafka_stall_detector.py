"""When a Kafka client stalls, and when it has to be replaced."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from controlplane.adapters.kafka_stall_detector import (
    LONGEST_STALL_LIMIT_S,
    SECOND_PROBE_AFTER_S,
    SHORTEST_STALL_LIMIT_S,
    StallDetector,
)


def replaced_at(
    stalls: StallDetector[str], from_s: float, until_s: float, *, leader_answers: bool = True
) -> list[float]:
    """When clients were replaced that were checked every 100 ms."""
    times_s = []
    for step in range(round((until_s - from_s) * 10) + 1):
        now_s = from_s + step / 10
        if stalls.overdue(now_s) and stalls.must_replace(now_s, leader_answered=leader_answers):
            times_s.append(now_s)
            stalls.replaced(now_s)
    return times_s


def test_a_client_that_receives_nothing_is_replaced_after_two_answered_probes() -> None:
    """One answer is not enough: a broker that has come back answers the probe before it reaches its old clients."""
    stalls: StallDetector[str] = StallDetector()
    stalls.expect("a", 0.0)
    assert stalls.overdue(SHORTEST_STALL_LIMIT_S - 0.1) == []
    assert stalls.overdue(SHORTEST_STALL_LIMIT_S) == ["a"]
    assert not stalls.must_replace(SHORTEST_STALL_LIMIT_S, leader_answered=True)
    assert stalls.overdue(SHORTEST_STALL_LIMIT_S + SECOND_PROBE_AFTER_S - 0.1) == []
    assert stalls.overdue(SHORTEST_STALL_LIMIT_S + SECOND_PROBE_AFTER_S) == ["a"]
    assert stalls.must_replace(SHORTEST_STALL_LIMIT_S + SECOND_PROBE_AFTER_S, leader_answered=True)


def test_an_arrival_clears_the_client_and_forgets_the_answered_probe() -> None:
    """The client had waited for the broker only; the next stall needs two answers of its own."""
    stalls: StallDetector[str] = StallDetector()
    stalls.expect("a", 0.0)
    assert stalls.overdue(SHORTEST_STALL_LIMIT_S) == ["a"]
    assert not stalls.must_replace(SHORTEST_STALL_LIMIT_S, leader_answered=True)
    stalls.arrived("a", 4.0)
    stalls.expect("a", 4.0)
    assert stalls.overdue(4.0 + SHORTEST_STALL_LIMIT_S) == ["a"]
    assert not stalls.must_replace(4.0 + SHORTEST_STALL_LIMIT_S, leader_answered=True)


def test_no_client_is_replaced_while_no_probe_is_answered() -> None:
    """While a broker is down its clients are probed once in each stall limit, and kept."""
    stalls: StallDetector[str] = StallDetector()
    stalls.expect("a", 0.0)
    assert replaced_at(stalls, 0.0, 60.0, leader_answers=False) == []
    assert replaced_at(stalls, 60.0, 70.0) != []


def test_the_stall_limit_doubles_with_each_replacement_and_halves_with_arrivals() -> None:
    """Over a slow link what is expected arrives late; new clients must not keep starting over."""
    stalls: StallDetector[str] = StallDetector()
    stalls.expect("a", 0.0)
    gaps_s = [after - before for before, after in pairwise(replaced_at(stalls, 0.0, 200.0))]
    assert gaps_s == sorted(gaps_s)
    assert gaps_s[0] < gaps_s[-1] <= LONGEST_STALL_LIMIT_S + SECOND_PROBE_AFTER_S + 0.2
    for later_s in range(201, 204):
        stalls.expect("a", later_s)
        stalls.arrived("a", later_s)
    assert stalls.stall_limit_s == SHORTEST_STALL_LIMIT_S


def test_arrivals_at_one_time_halve_the_stall_limit_once() -> None:
    """One batch does not show that a client is fast, and an arrival that was not expected shows nothing."""
    stalls: StallDetector[str] = StallDetector()
    for now_s in range(3):
        stalls.expect("a", now_s)
        stalls.expect("b", now_s)
        stalls.replaced(now_s)
    limit_s = stalls.stall_limit_s
    stalls.arrived("a", 3.0)
    stalls.arrived("b", 3.0)
    stalls.arrived("c", 4.0)
    assert stalls.stall_limit_s == limit_s / 2


def test_a_client_that_receives_anything_has_the_longest_limit() -> None:
    """After an outage very much is sent at once, and the acknowledgements come one after the other."""
    stalls: StallDetector[str] = StallDetector()
    stalls.expect("late", 0.0)
    for now_s in range(1, round(LONGEST_STALL_LIMIT_S)):
        stalls.expect("busy", float(now_s))
        stalls.arrived("busy", float(now_s))
        assert stalls.overdue(now_s + 0.5) == []
    assert stalls.overdue(LONGEST_STALL_LIMIT_S) == ["late"]


def test_a_client_is_replaced_for_one_stalled_place_among_others() -> None:
    """A partition can stay without a broker in a client whose other partitions are served."""
    stalls: StallDetector[str] = StallDetector()
    stalls.expect("stuck", 0.0)
    times_s = []
    for step in range(400):
        now_s = step / 10
        stalls.expect("busy", now_s)
        stalls.arrived("busy", now_s)
        if stalls.overdue(now_s) and stalls.must_replace(now_s, leader_answered=True):
            times_s.append(now_s)
            stalls.replaced(now_s)
    assert times_s == [LONGEST_STALL_LIMIT_S + SECOND_PROBE_AFTER_S]


def test_an_arrival_from_one_place_clears_a_client_that_received_nothing() -> None:
    """The broker was the cause, and the other places will follow."""
    stalls: StallDetector[str] = StallDetector()
    stalls.expect("a", 0.0)
    stalls.expect("b", 0.0)
    assert stalls.overdue(SHORTEST_STALL_LIMIT_S) == ["a", "b"]
    assert not stalls.must_replace(SHORTEST_STALL_LIMIT_S, leader_answered=True)
    second_s = SHORTEST_STALL_LIMIT_S + SECOND_PROBE_AFTER_S
    assert stalls.overdue(second_s) == ["a", "b"]
    stalls.arrived("b", second_s + 0.5)
    assert not stalls.must_replace(second_s + 1.0, leader_answered=True)
    assert stalls.overdue(second_s + 1.0 + SECOND_PROBE_AFTER_S) == []


def test_an_arrival_during_a_probe_clears_the_client() -> None:
    """The answer that the probe gets does not count any more."""
    stalls: StallDetector[str] = StallDetector()
    stalls.expect("a", 0.0)
    assert stalls.overdue(SHORTEST_STALL_LIMIT_S) == ["a"]
    stalls.arrived("a", 3.5)
    assert not stalls.must_replace(4.0, leader_answered=True)
    stalls.expect("a", 4.0)
    assert stalls.overdue(4.0 + SHORTEST_STALL_LIMIT_S) == ["a"]
    assert not stalls.must_replace(4.0 + SHORTEST_STALL_LIMIT_S, leader_answered=True)


def test_the_second_probe_waits_from_the_end_of_the_first() -> None:
    """A probe can take seconds; the client is given time to receive something after it."""
    stalls: StallDetector[str] = StallDetector()
    stalls.expect("a", 0.0)
    assert stalls.overdue(SHORTEST_STALL_LIMIT_S) == ["a"]
    answered_s = SHORTEST_STALL_LIMIT_S + 5.0
    assert not stalls.must_replace(answered_s, leader_answered=True)
    assert stalls.overdue(answered_s + SECOND_PROBE_AFTER_S - 0.1) == []
    assert stalls.overdue(answered_s + SECOND_PROBE_AFTER_S) == ["a"]


def test_a_client_that_is_answered_itself_has_the_longest_limit() -> None:
    """A leader that waits for a follower that has just died acknowledges nothing to any client."""
    stalls: StallDetector[str] = StallDetector()
    stalls.expect("a", 0.0)
    replaced_at_s = [
        now_s
        for now_s in range(60)
        if stalls.overdue(now_s) and stalls.must_replace(now_s, leader_answered=True, client_answered=True)
    ]
    assert replaced_at_s[0] >= LONGEST_STALL_LIMIT_S + SECOND_PROBE_AFTER_S
    assert replaced_at_s[0] <= LONGEST_STALL_LIMIT_S + SHORTEST_STALL_LIMIT_S + SECOND_PROBE_AFTER_S


def test_one_stalled_place_among_others_is_probed_seldom() -> None:
    """A partition can stay without a leader for hours, and each probe costs a connection."""
    stalls: StallDetector[str] = StallDetector()
    stalls.expect("silent", 0.0)
    probes = 0
    for now_s in range(240):
        stalls.expect("busy", now_s)
        stalls.arrived("busy", now_s)
        if stalls.overdue(now_s):
            probes += 1
            assert not stalls.must_replace(now_s, leader_answered=False)
    assert probes <= 240 / LONGEST_STALL_LIMIT_S


def test_expecting_the_same_again_does_not_begin_anew() -> None:
    """A reader that is assigned again to where it was has waited all the same; elsewhere it has not."""
    stalls: StallDetector[str] = StallDetector()
    for now_s in range(4):
        stalls.expect("a", float(now_s))
        stalls.expect_only(["a"])
    assert stalls.overdue(SHORTEST_STALL_LIMIT_S) == ["a"]
    stalls.expect_only(["b"])
    assert stalls.overdue(SHORTEST_STALL_LIMIT_S * 9) == []
    assert not stalls.is_expected("a")


def test_a_place_that_is_left_takes_its_answered_probe_with_it() -> None:
    """A client that is used for other places needs two answered probes for those."""
    stalls: StallDetector[str] = StallDetector()
    stalls.expect("a", 0.0)
    assert stalls.overdue(SHORTEST_STALL_LIMIT_S) == ["a"]
    assert not stalls.must_replace(SHORTEST_STALL_LIMIT_S, leader_answered=True)
    stalls.expect_only(["b"])
    stalls.expect("b", 10.0)
    assert stalls.overdue(10.0 + SHORTEST_STALL_LIMIT_S) == ["b"]
    assert not stalls.must_replace(10.0 + SHORTEST_STALL_LIMIT_S, leader_answered=True)
    assert stalls.overdue(10.0 + SHORTEST_STALL_LIMIT_S + SECOND_PROBE_AFTER_S) == ["b"]
    assert stalls.must_replace(10.0 + SHORTEST_STALL_LIMIT_S + SECOND_PROBE_AFTER_S, leader_answered=True)


@given(gaps_s=st.lists(st.floats(0.01, SHORTEST_STALL_LIMIT_S - 0.01), max_size=50))
def test_a_client_that_receives_something_in_time_is_never_suspected(gaps_s: list[float]) -> None:
    """However often it is checked."""
    stalls: StallDetector[str] = StallDetector()
    now_s = 0.0
    stalls.expect("a", now_s)
    for gap_s in gaps_s:
        now_s += gap_s
        assert stalls.overdue(now_s) == []
        stalls.arrived("a", now_s)
        stalls.expect("a", now_s)
