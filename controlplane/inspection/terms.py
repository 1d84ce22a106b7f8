"""The terms of a decision log, newest first, found by binary search, because terms only grow along the log."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Final, cast

from controlplane.codec.decisions import DecisionAssembler
from controlplane.config import DECISIONS
from controlplane.core.cluster.events import TermOpened
from controlplane.core.values.identifiers import Term
from controlplane.core.values.positions import DECISIONS_PARTITION
from controlplane.errors import InvalidInputError, LogContinuityError
from controlplane.inspection.readers import LoggedDecision, decisions_backwards
from controlplane.inspection.source import LogSource
from controlplane.ports import RawRecord
from controlplane.topic_reading.decision_stream import DecisionStream
from controlplane.topic_reading.drain import drain

_FIRST_STEP: Final = 64


@dataclass(frozen=True, slots=True)
class LoggedTerm:
    """One leadership.

    Attributes:
        event: its opening, with the controller and the code version.
        opened: its first decision.
        last: its last decision; of the present term, the newest one.
    """

    event: TermOpened
    opened: LoggedDecision
    last: LoggedDecision


def terms_backwards(source: LogSource) -> Iterator[LoggedTerm]:
    """The terms from the present one to the first. Each costs some thirty small reads, however long it is.

    Raises:
        LogUnavailableError: the log did not answer.
        LogContinuityError: a term does not begin with its opening.
    """
    last = next(decisions_backwards(source), None)
    while last is not None:
        log = _Log(source, last)
        first = _first_offset(log, last.decision.term, last.offset)
        opened = log.decision_at(first)
        event = next((event for event in opened.decision.events if isinstance(event, TermOpened)), None)
        if event is None:
            raise LogContinuityError(
                f"{DECISIONS}[0]@{opened.offset}: the first decision of term {opened.decision.term} does not open it"
            )
        yield LoggedTerm(event, opened, last)
        last = next(decisions_backwards(source, first), None)


class _Log:
    """Single decisions and records of one log, none after a known decision. Foreign records are skipped."""

    def __init__(self, source: LogSource, known: LoggedDecision) -> None:
        self._source = source
        self._log_id = known.decision.log_id
        self._known = known.offset

    def oldest_offset(self) -> int:
        """The first offset that is still kept."""
        return self._source.reader.start_offsets(DECISIONS)[DECISIONS_PARTITION]

    def term_at(self, offset: int) -> tuple[Term, int]:
        """The term and the offset of the first record of the log at or after this offset; there has to be one."""
        assembler = DecisionAssembler(log_id=self._log_id)
        for record in self._records(offset):
            try:
                return Term(cast("int", assembler.read(record.value)["term"])), record.offset
            except InvalidInputError:
                continue
        raise LogContinuityError(f"{DECISIONS}[0]@{self._known}: the record that stood there is gone")

    def decision_at(self, offset: int) -> LoggedDecision:
        """The decision that begins at this offset."""
        stream = DecisionStream(self._log_id)
        for record in self._records(offset):
            decision = stream.take(record)
            if decision is not None:
                return LoggedDecision(decision, record.offset, record.append_time_ms)
        raise LogContinuityError(f"{DECISIONS}[0]@{offset}: the log ends within a decision, whose last part is missing")

    def _records(self, offset: int) -> Iterator[RawRecord]:
        """The records from an offset to the known one, polled one by one, because few are needed."""
        until = {DECISIONS_PARTITION: self._known + 1}
        batches = drain(self._source.reader, {DECISIONS_PARTITION: offset}, self._source.limits, until, max_records=1)
        return chain.from_iterable(batches)


def _first_offset(log: _Log, term: Term, known: int) -> int:
    """The offset of a term's first record; the record at ``known`` is a later one of the same term.

    This is a binary search over offsets, which have gaps, because transactions end with control records.
    """
    oldest = log.oldest_offset()
    step = _FIRST_STEP
    lower, upper, found = oldest, known, known
    # Terms are often short, so the steps back grow until the previous term is found.
    while upper > oldest:
        place = max(oldest, upper - step)
        found_term, offset = log.term_at(place)
        if found_term < term:
            lower = offset + 1
            break
        upper, found, step = place, offset, step * 4
    while lower < upper:
        middle = (lower + upper) // 2
        found_term, offset = log.term_at(middle)
        if found_term >= term:
            upper, found = middle, offset
        else:
            lower = offset + 1
    return found
