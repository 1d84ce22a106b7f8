"""The terms of a decision log, newest first, found without reading the log: terms only grow along it."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Final

from controlplane.codec.decisions import DecisionAssembler, term_of_record
from controlplane.config import DECISIONS
from controlplane.core.cluster.events import TermOpened
from controlplane.core.values.identifiers import Term, TopicPartition
from controlplane.errors import LogContinuityError
from controlplane.inspection.readers import LoggedDecision, decisions_backwards
from controlplane.inspection.source import LogSource
from controlplane.log_reading.drain import drain
from controlplane.ports import RawRecord

_PLACE: Final = TopicPartition(DECISIONS, 0)
_FIRST_STEP: Final = 64


@dataclass(frozen=True, slots=True)
class LoggedTerm:
    """One leadership.

    Attributes:
        event: who opened it, with which version.
        opened: its first decision.
        last: its last decision; of the present term, the newest one.
    """

    event: TermOpened
    opened: LoggedDecision
    last: LoggedDecision


def terms_backwards(source: LogSource) -> Iterator[LoggedTerm]:
    """The terms from the present one to the first; each costs some thirty small reads, however long it was.

    Raises:
        LogUnavailableError: the log did not answer.
        LogContinuityError: a term does not begin with its opening.
    """
    last = next(decisions_backwards(source), None)
    while last is not None:
        first = _Search(source, last.decision.term).first_offset(last.offset)
        opened = _decision_at(source, first, last.offset)
        event = next((event for event in opened.decision.events if isinstance(event, TermOpened)), None)
        if event is None:
            raise LogContinuityError(
                f"{DECISIONS}[0]@{opened.offset}: the first decision of term {opened.decision.term} does not open it"
            )
        yield LoggedTerm(event, opened, last)
        last = next(decisions_backwards(source, first), None)


class _Search:
    """Looks for the first record of a term by halving; offsets have gaps, since transactions end with markers."""

    def __init__(self, source: LogSource, term: Term) -> None:
        self._source = source
        self._term = term

    def first_offset(self, known: int) -> int:
        """The offset of the term's first record, of which the one at ``known`` is another."""
        oldest = self._source.reader.start_offsets(DECISIONS)[_PLACE]
        step = _FIRST_STEP
        lower, upper, found = oldest, known, known
        # Short terms first: look further and further back until the term before is met.
        while upper > oldest:
            place = max(oldest, upper - step)
            record = _record_at(self._source, place, known)
            if not self._belongs(record):
                lower = record.offset + 1
                break
            upper, found, step = place, record.offset, step * 4
        while lower < upper:
            middle = (lower + upper) // 2
            record = _record_at(self._source, middle, known)
            if self._belongs(record):
                upper, found = middle, record.offset
            else:
                lower = record.offset + 1
        return found

    def _belongs(self, record: RawRecord) -> bool:
        return record.value is not None and term_of_record(record.value) >= self._term


def _record_at(source: LogSource, offset: int, known: int) -> RawRecord:
    """The first record at this offset or behind it; there is one at ``known``."""
    record = next(_records(source, offset, known), None)
    if record is None:
        raise LogContinuityError(f"{DECISIONS}[0]@{known}: the record that stood there is gone")
    return record


def _decision_at(source: LogSource, offset: int, known: int) -> LoggedDecision:
    """The decision that begins at this offset; its parts follow each other, none behind ``known``."""
    assembler = DecisionAssembler()
    for record in _records(source, offset, known):
        decision = assembler.add(record.value or b"")
        if decision is not None:
            return LoggedDecision(decision, record.offset, record.append_time_ms)
    raise LogContinuityError(f"{DECISIONS}[0]@{offset}: the log ends within a decision, whose last part is missing")


def _records(source: LogSource, offset: int, known: int) -> Iterator[RawRecord]:
    """The records from an offset to a known one, asked for one by one, because few are looked at."""
    batches = drain(source.reader, {_PLACE: offset}, source.limits, {_PLACE: known + 1}, max_records=1)
    return chain.from_iterable(batches)
