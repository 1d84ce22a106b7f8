"""Tables against the broker: each record that Kafka still has and a stream has passed is in its table, and once.

Compared are offsets, piece by piece: what is in memory does not grow with the log. What is twice in a table is found
over the whole table. Decisions are compared by the record that completes them, and by their seq.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import dropwhile
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from controlplane.codec.decisions import DecisionAssembler
from controlplane.codec.framing import Framing, framing_with
from controlplane.config import DEAD_LETTERS, DECISIONS
from controlplane.core.membership.inputs import Tick
from controlplane.errors import InvalidInputError, LogContinuityError, LogUnavailableError
from streaming.config import PipelineConfig
from streaming.continuity.checkpoints import Checkpoint, Offsets, read_checkpoint
from streaming.continuity.gaps import (
    GapsTable,
    KeptOffsets,
    TopicIds,
    gaps_between,
    refuse_another,
    refuse_recreated,
    written_up_to,
)
from streaming.continuity.stored_offsets import StoredOffsets, joined_extents, stored_offsets
from streaming.contracts.records import DEAD_LETTERS_TABLE, DECISIONS_TABLE, TABLE_OF_TOPIC, TICKS_TABLE, tables_of
from streaming.contracts.table import TableContract
from streaming.records.decision_rows import part_of
from streaming.records.decode import RawRow, decode_payload
from streaming.tables.maintenance import kept_from_ms
from streaming.tables.newest_decision import newest_decision

CommittedRecords: TypeAlias = Callable[[str, int, range], Iterable[RawRow]]
"""The committed records of a topic's partition in a span of offsets, in order."""

_PIECE_OFFSETS: Final = 500_000
"""How many offsets of a partition are compared at once."""
_SETTLED_MS: Final = 60_000
"""A record that was refused has its dead letter after this time."""
_MOST_NAMED: Final = 3
"""How many offsets a problem names."""

_Numbers: TypeAlias = npt.NDArray[np.int64]


@dataclass(slots=True)
class TopicReport:
    """What was found of one topic.

    Attributes:
        topic: without the cluster's prefix.
        record_count: how many of Kafka's records were compared; of decisions, how many decisions.
        refused_count: how many of them are unusable, and so in no table but ``dead_letters``.
        problems: what is missing, twice, or not in Kafka, as sentences.
        notes: what else there is to know, as sentences.
    """

    topic: str
    record_count: int = 0
    refused_count: int = 0
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


class TableCheck:
    """Compares the tables of a folder with a cluster's topics. The pipeline may run meanwhile.

    Args:
        config: names the cluster, the folder and how inputs are framed.
        kept: asks Kafka what it has.
        topic_ids: asks Kafka for the ids of topics.
        records: reads Kafka.
        now_ms: the time, in milliseconds since 1970.
    """

    def __init__(
        self, config: PipelineConfig, kept: KeptOffsets, topic_ids: TopicIds, records: CommittedRecords, now_ms: int
    ) -> None:
        """Open the dead letters and the gaps."""
        self._config = config
        self._kept = kept
        self._topic_ids = topic_ids
        self._records = records
        self._settled_ms = now_ms - _SETTLED_MS
        self._framing: Framing = framing_with(config.kafka.schema_ids)
        self._gaps = GapsTable(config.tables_dir)
        passed = self._passed(DEAD_LETTERS, self._checkpoint(DEAD_LETTERS))
        ends = {partition: offsets.stop for partition, offsets in kept(DEAD_LETTERS).items()}
        self._letters_are_behind = any(passed.get(partition, 0) < end for partition, end in ends.items())

    def reports(self) -> Iterator[TopicReport]:
        """Check one topic after the other.

        Raises:
            LogContinuityError: Kafka forgot records while they were read, or its decisions are broken.
            LogUnavailableError: Kafka does not answer.
            PrerequisiteError: a checkpoint is damaged.
        """
        for topic in TABLE_OF_TOPIC:
            report = TopicReport(topic)
            checkpoint = self._checkpoint(topic)
            passed = self._passed(topic, checkpoint)
            # Opened when it is known how far the stream is: what is committed later is not asked for.
            stored = [stored_offsets(self._config.tables_dir, table) for table in tables_of(topic)]
            if checkpoint is None or checkpoint.batch is None:
                self._tell_without_batch(report, stored)
            if checkpoint is not None and passed:
                self._compare(report, checkpoint, passed, stored)
            for partition, extent in sorted(joined_extents(each.extents(topic) for each in stored).items()):
                for piece in _pieces(extent):
                    self._find_doubles(report, partition, _within(stored, topic, partition, piece))
            if topic == DECISIONS:
                self._check_seqs(report)
            report.notes += [f"recorded gap: {gap}" for gap in self._gaps.recorded(topic)]
            yield report

    def _checkpoint(self, topic: str) -> Checkpoint | None:
        folder = self._config.checkpoint_dir(TABLE_OF_TOPIC[topic].name)
        return read_checkpoint(folder, self._config.cluster.topic(topic))

    def _topic_id(self, report: TopicReport) -> str | None:
        """Kafka's id of the topic; where only this question is not answered, the rest is compared."""
        try:
            return self._topic_ids(report.topic)
        except LogUnavailableError as error:
            report.notes.append(f"whether the topic was made again is unknown: {error}")
            return None

    def _passed(self, topic: str, checkpoint: Checkpoint | None) -> Offsets:
        """The next offset of each partition; empty if the stream never ran."""
        return {} if checkpoint is None else written_up_to(self._config, topic, checkpoint)

    def _compare(
        self, report: TopicReport, checkpoint: Checkpoint, passed: Offsets, stored: Sequence[StoredOffsets]
    ) -> None:
        topic = report.topic
        kept = self._kept(topic)
        try:
            if any(passed.values()):
                refuse_another(topic, checkpoint.topic_id, self._topic_id(report))
            refuse_recreated(topic, passed, kept)
        except LogContinuityError as error:
            report.problems.append(str(error))
            return
        unread = gaps_between(topic, passed, kept)
        report.problems += [f"{gap} was not read, and Kafka does not have it" for gap in unread]
        folder = self._config.tables_dir
        letters = StoredOffsets(folder, DEAD_LETTERS_TABLE, _SOURCES)
        # Asked when the tables are open: what is forgotten later is in them.
        kept_from = {table.name: kept_from_ms(folder, table) for table in (*tables_of(topic), DEAD_LETTERS_TABLE)}
        for partition, offset in sorted(passed.items()):
            span = range(kept[partition].start, offset)
            for piece, found in self._found(topic, partition, span):
                there = _within(stored, topic, partition, piece)
                refused = self._sort_out(report, found, partition, there, kept_from)
                unanswered = np.setdiff1d(refused, letters.within(topic, partition, piece))
                lines = report.notes if self._letters_are_behind else report.problems
                _tell(lines, topic, partition, "refused and without a dead letter", unanswered)

    def _tell_without_batch(self, report: TopicReport, stored: Sequence[StoredOffsets]) -> None:
        if any(each.extents(report.topic) for each in stored):
            folder = self._config.checkpoint_dir(TABLE_OF_TOPIC[report.topic].name)
            report.problems.append(
                f"{report.topic} has rows, and no batch is in the checkpoint {folder}: nothing was compared"
            )
        else:
            report.notes.append("the stream has not read anything yet")

    def _found(self, topic: str, partition: int, span: range) -> Iterator[tuple[range, "_Found"]]:
        """What Kafka has of a partition, piece by piece."""
        records = self._records(topic, partition, span) if span else ()
        found = _decided(self._config, records) if topic == DECISIONS else records
        return _by_piece(span, found)

    def _sort_out(
        self,
        report: TopicReport,
        found: "_Found",
        partition: int,
        there: _Numbers,
        kept_from: Mapping[str, int],
    ) -> _Numbers:
        """Tell what is missing in the tables, forgotten on purpose, or not in Kafka.

        Returns:
            The offsets of refused records that have to have a dead letter: older ones may have lost it, newer ones
            may be about to get it.
        """
        stored = set(there.tolist())
        offsets, missing, forgotten, refused = [], [], [], []
        for record in found:
            offsets.append(record.offset)
            if record.offset in stored:
                continue
            table = self._table_of(report.topic, record)
            if table is None:
                report.refused_count += 1
                if kept_from[DEAD_LETTERS_TABLE.name] <= record.append_time_ms <= self._settled_ms:
                    refused.append(record.offset)
            elif record.append_time_ms < kept_from[table.name]:
                forgotten.append(record.offset)
            else:
                missing.append(record.offset)
        report.record_count += len(offsets)
        _tell(report.problems, report.topic, partition, "missing", _numbers(missing))
        _tell(report.notes, report.topic, partition, "of days that --keep has forgotten", _numbers(forgotten))
        _tell(report.problems, report.topic, partition, "not in Kafka", np.setdiff1d(there, _numbers(offsets)))
        return _numbers(refused)

    def _table_of(self, topic: str, record: RawRow) -> TableContract | None:
        """The table that has a record; None if it is refused."""
        if topic in (DECISIONS, DEAD_LETTERS):
            return TABLE_OF_TOPIC[topic]
        refusal, payload = decode_payload(topic, record, self._framing)
        if refusal is not None:
            return None
        return TICKS_TABLE if isinstance(payload, Tick) else TABLE_OF_TOPIC[topic]

    def _find_doubles(self, report: TopicReport, partition: int, there: _Numbers) -> None:
        _tell(report.problems, report.topic, partition, "more than once", _repeated(there))

    def _check_seqs(self, report: TopicReport) -> None:
        """Decisions are numbered without gaps, whatever Kafka has."""
        decisions = StoredOffsets(self._config.tables_dir, DECISIONS_TABLE, ("topic", "partition", "seq"))
        for partition, extent in decisions.extents(DECISIONS).items():
            for piece in _pieces(extent):
                there = decisions.within(DECISIONS, partition, piece)
                for word, seqs in (
                    ("missing", np.setdiff1d(np.arange(piece.start, piece.stop), there)),
                    ("more than once", _repeated(there)),
                ):
                    if seqs.size:
                        report.problems.append(f"decisions by seq: {seqs.size} {word}, {_first(seqs)}")
            if extent.start > 1:
                report.notes.append(f"the table begins with decision {extent.start}")


_SOURCES: Final = ("source_topic", "source_partition", "source_offset")
_Found: TypeAlias = Iterable[RawRow]


def _decided(config: PipelineConfig, records: Iterable[RawRow]) -> Iterator[RawRow]:
    """The records that complete a decision of the log in the table. Foreign records belong to none."""
    newest = newest_decision(config.tables_dir)
    log_id = "" if newest is None else newest.log_id

    def begins_within(record: RawRow) -> bool:
        part = part_of(record, log_id)
        return part is None or part.part > 0

    assembler = DecisionAssembler(log_id=log_id)
    for record in dropwhile(begins_within, records):
        try:
            decision = assembler.add(record.value, record.key)
        except InvalidInputError:
            continue
        if decision is not None:
            yield record


def _by_piece(span: range, records: Iterable[RawRow]) -> Iterator[tuple[range, _Found]]:
    """The records by pieces of the span; those of a piece are to be taken before the next piece."""
    coming = iter(records)
    ahead = next(coming, None)
    for piece in _pieces(span):

        def of_piece(piece: range = piece) -> Iterator[RawRow]:
            nonlocal ahead
            while ahead is not None and ahead.offset < piece.stop:
                yield ahead
                ahead = next(coming, None)

        yield piece, of_piece()


def _pieces(span: range) -> Iterator[range]:
    for start in range(span.start, span.stop, _PIECE_OFFSETS):
        yield range(start, min(start + _PIECE_OFFSETS, span.stop))


def _within(stored: Sequence[StoredOffsets], topic: str, partition: int, piece: range) -> _Numbers:
    return np.sort(np.concatenate([each.within(topic, partition, piece) for each in stored]))


def _repeated(there: _Numbers) -> _Numbers:
    """The numbers that are there more than once; they are sorted."""
    return np.unique(there[1:][there[1:] == there[:-1]])


def _numbers(values: Sequence[int]) -> _Numbers:
    return np.array(values, np.int64)


def _first(numbers: _Numbers) -> str:
    return f"first {', '.join(map(str, numbers[:_MOST_NAMED].tolist()))}"


def _tell(problems: list[str], topic: str, partition: int, word: str, offsets: _Numbers) -> None:
    if offsets.size:
        problems.append(f"{topic}[{partition}]: {offsets.size} {word}, {_first(offsets)}")
