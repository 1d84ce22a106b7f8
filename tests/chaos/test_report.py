"""What the report says of its samples, and of what was broken."""

from tests.chaos.__main__ import lines_of
from tests.chaos.faults import FaultKind
from tests.chaos.run import Report


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
