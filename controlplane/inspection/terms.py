"""The terms of a decision log, newest first, found without reading the log: terms only grow along it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from controlplane.codec.decisions import DecisionAssembler, term_of_record
from controlplane.config import DECISIONS
from controlplane.core.cluster.events import TermOpened
from controlplane.core.values.identifiers import Term, TopicPartition
from controlplane.errors import LogContinuityError, LogUnavailableError
from controlplane.inspection.readers import LoggedDecision, decisions_backwards
from controlplane.inspection.source import LogSource
from controlplane.ports import RawRecord

_PLACE: Final = TopicPartition(DECISIONS, 0)
_POLL_MS: Final = 200
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
        opened = _decision_at(source, first)
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
            record = _record_at(self._source, place)
            if not self._belongs(record):
                lower = record.offset + 1
                break
            upper, found, step = place, record.offset, step * 4
        while lower < upper:
            middle = (lower + upper) // 2
            record = _record_at(self._source, middle)
            if self._belongs(record):
                upper, found = middle, record.offset
            else:
                lower = record.offset + 1
        return found

    def _belongs(self, record: RawRecord) -> bool:
        return record.value is not None and term_of_record(record.value) >= self._term


def _record_at(source: LogSource, offset: int) -> RawRecord:
    """The first record at this offset or behind it, which has to be there."""
    source.reader.assign({_PLACE: offset})
    return _next_record(source, offset)


def _next_record(source: LogSource, offset: int) -> RawRecord:
    waited_ms = 0
    while not (batch := source.reader.poll(1, _POLL_MS)).records:
        waited_ms += _POLL_MS
        if batch.ended or waited_ms > source.timeout_ms:
            raise LogUnavailableError(f"{DECISIONS}[0]@{offset} was not read within {waited_ms} ms")
    return batch.records[0]


def _decision_at(source: LogSource, offset: int) -> LoggedDecision:
    """The decision that begins at this offset; its parts follow each other."""
    assembler = DecisionAssembler()
    record = _record_at(source, offset)
    while (decision := assembler.add(record.value or b"")) is None:
        record = _next_record(source, offset)
    return LoggedDecision(decision, record.offset, record.append_time_ms)
