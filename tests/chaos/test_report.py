"""What the report says of its samples, and of what was broken."""

from collections import Counter

from tests.chaos.__main__ import lines_of
from tests.chaos.faults import FaultKind
from tests.chaos.moving_bundles import Moves
from tests.chaos.order_verdicts import OrderVerdict
from tests.chaos.overlap_verdicts import OverlapVerdict
from tests.chaos.run import Report
from tests.chaos.served import Coverage


def _told(failovers_ms: list[int]) -> str:
    return "\n".join(lines_of(Report(failovers_ms={FaultKind.LEADER_KILLED: failovers_ms})))


def test_a_percentile_is_told_from_a_hundred_samples_on() -> None:
    """Below that the 99th percentile is the worst one under another name."""
    few, many = _told([*range(1, 100)]), _told([*range(100, 0, -1)])
    assert "99: p50 50, worst 99" in few
    assert "p99" not in few
    assert "100: p50 50, p99 99, worst 100" in many


def test_no_sample_is_told_as_none() -> None:
    """A kind of fault that chance left out is no figure of zero."""
    assert "none  deaths of the leader" in _told([])


def test_what_was_broken_stands_in_the_report() -> None:
    """A sentence for each broken promise."""
    assert lines_of(Report(broken=["epoch 7 is missing"]))[-1] == "epoch 7 is missing"


def test_what_became_of_orders_and_ownership_is_told() -> None:
    """By kind, how long the longest took, how closely was looked, and each overlap that a bound allows."""
    orders = OrderVerdict(done=Counter(unload=3, split=2), refused=4, answered=9, unacknowledged=1, longest_ms=700)
    overlaps = OverlapVerdict(("slot 8: allowed",), ("slot 16: wrong",))
    moves = Moves(orders, overlaps, [Coverage(100, 3), Coverage(50, 1)], servings=12)
    told = lines_of(Report(moves=moves))
    assert "orders of bundles: carried out 2 split, 3 unload; failed none" in told
    assert "  longest 700 ms of log time" in told
    assert "  intents: 9 answered, 4 refused, 1 not acknowledged" in told
    assert "looks at what 2 processes would serve: 150, 4 not close to the one before" in told
    assert "  began to serve what was watched: 12 times" in told
    assert "  by two at once: 1 times within a bound, 1 beyond" in told
    assert told[-1] == "slot 8: allowed"
