"""Whether a log reaches as far as snapshots and the lease store say."""

import pytest

from controlplane.core.log.log_mark import LogMark, check_known_end
from controlplane.core.log.state import State
from controlplane.core.values.identifiers import Seq, Term
from controlplane.errors import LogContinuityError

STATE = State(log_id="ours", seq=Seq(9), term=Term(3))


@pytest.mark.parametrize(
    "mark",
    [
        LogMark("ours", Term(3), Seq(9)),
        LogMark("ours", Term(1), Seq(2)),
        LogMark("another log", Term(9), Seq(99)),
    ],
)
def test_a_log_that_reaches_as_far_may_be_led(mark: LogMark) -> None:
    """A mark is behind as a rule; one of another log says nothing."""
    check_known_end(STATE, [("the lease store", mark)])


def test_a_log_that_ends_before_a_mark_has_lost_its_end() -> None:
    """The message names both and what to do."""
    known = [("a snapshot", LogMark("ours", Term(1), Seq(2))), ("the lease store", LogMark("ours", Term(4), Seq(10)))]
    told = r"the lease store knows decision 10 of term 4, but .* ends with decision 9 of term 3: .*restore the decision"
    with pytest.raises(LogContinuityError, match=told):
        check_known_end(STATE, known)
