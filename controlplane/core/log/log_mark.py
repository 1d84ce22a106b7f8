"""A mark of how far a decision log was known to reach, kept outside of Kafka; and what it proves.

Kafka may lose the end of a log: all brokers are restored from an older copy, or more disks are lost than the topic has
copies for. A log that lost its end reads like one that never had it. What stands elsewhere shows the difference: the
last snapshot, and a mark that the leader keeps in the lease store.
"""

from collections.abc import Sequence
from typing import NamedTuple

from controlplane.config import DECISIONS
from controlplane.core.log.state import State
from controlplane.core.values.identifiers import Seq, Term
from controlplane.errors import RESTORE_OR_BEGIN_ANEW, LogContinuityError


class LogMark(NamedTuple):
    """A decision that was committed.

    Attributes:
        log_id: the log.
        term: the term of the decision.
        seq: the seq of the decision.
    """

    log_id: str
    term: Term
    seq: Seq


def check_known_end(state: State, known: Sequence[tuple[str, LogMark]]) -> None:
    """Check that the log reaches as far as it was known to.

    Args:
        state: the state after the last decision of the log, which was read past a barrier.
        known: where a mark stands, in words, and the mark. Marks of other logs prove nothing about this one.

    Raises:
        LogContinuityError: decisions were lost.
    """
    for where, mark in known:
        if mark.log_id == state.log_id and mark.seq > state.seq:
            message = (
                f"{where} knows decision {mark.seq} of term {mark.term}, but topic {DECISIONS} ends with decision "
                f"{state.seq} of term {state.term}: the log has lost its end; {RESTORE_OR_BEGIN_ANEW}"
            )
            raise LogContinuityError(message)
