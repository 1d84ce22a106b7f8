"""The log as the tables have it, for whatever reads a log: the decisions, and the inputs from which they were taken.

It serves the audit when Kafka no longer has the records. Each row becomes the record again that it was made of: its
offset, its append time, and a value that decodes to the same. An input that was refused is in ``dead_letters`` alone,
and becomes a record that is refused again.
"""

import copy
import functools
import json
import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pa_dataset
from deltalake import DeltaTable

from controlplane.codec.decisions import encode_decision
from controlplane.codec.input_checks import key_of
from controlplane.codec.inputs import encode_input
from controlplane.config import DECISIONS, HEARTBEATS, INTENTS, MEMBERSHIP
from controlplane.core.intents.intent import Intent
from controlplane.core.log.decision import Decision
from controlplane.core.log.inputs import InputPayload
from controlplane.core.membership.inputs import Heartbeat, NodeJoined, NodeLeaving, NodeLeft
from controlplane.core.values.canonical import from_canonical
from controlplane.core.values.identifiers import TopicPartition
from controlplane.core.values.positions import DECISIONS_PARTITION, place_of
from controlplane.errors import InvalidInputError, LogContinuityError
from controlplane.ports import PartitionEnd, PolledBatch, RawRecord
from streaming.contracts.columns import KIND_COLUMN
from streaming.contracts.gaps import GAPS_TABLE
from streaming.contracts.records import DEAD_LETTERS_TABLE, DECISIONS_TABLE, TABLE_OF_TOPIC, TICKS_TABLE
from streaming.contracts.table import TableContract
from streaming.records.held_offsets import PLACES, Extent, Held, held_by_partition, newest_run
from streaming.records.tick_rows import MINUTE_MS, ticks_of
from streaming.storage import StoragePath

_KINDS: Final[Mapping[str, Mapping[str, type]]] = {
    HEARTBEATS: {"": Heartbeat},
    MEMBERSHIP: {"joined": NodeJoined, "leaving": NodeLeaving, "left": NodeLeft},
    INTENTS: {"": Intent},
}
"""The records of each topic that decisions are taken from, by the column that tells them apart; ticks are apart."""
_STEP_OFFSETS: Final = 2_000
"""How many offsets of each partition are read at once."""
_LOOK_BACK_DECISIONS: Final = 1_000
"""How many decisions are looked at at once for the last one whose inputs are all there."""
_WHOLE_BYTES: Final = 1 << 30
"""No decision is taken apart again: a row is one record."""


class HeldDecisions(NamedTuple):
    """The decisions in the table.

    Attributes:
        decision_count: how many there are.
        first_seq: the seq of the first one; 0 if there is none.
        newest_seq: that of the newest one; 0 if there is none.
        unread_count: how many are behind the end of the log, because their inputs are not all in the tables.
    """

    decision_count: int = 0
    first_seq: int = 0
    newest_seq: int = 0
    unread_count: int = 0


class TableLogReader:
    """A :class:`controlplane.ports.LogReader` of a cluster's log over the tables of a folder, as they are now.

    The log ends before the first decision whose inputs are not all in the tables yet.

    Args:
        tables_dir: the folder of the tables.

    Attributes:
        held: the decisions in the table, also those behind the end of the log.
    """

    def __init__(self, tables_dir: StoragePath) -> None:
        """Open the tables, and see which partitions there are."""
        topics = (DECISIONS, *_KINDS)
        self._tables = {topic: _opened(tables_dir, TABLE_OF_TOPIC[topic]) for topic in topics}
        self._ticks = _opened(tables_dir, TICKS_TABLE)
        letters = _opened(tables_dir, DEAD_LETTERS_TABLE)
        columns = [f"source_{name}" for name in ("topic", "partition", "offset", "append_time_ms")]
        self._refused = letters.to_table(columns=columns).group_by(columns).aggregate([])
        held = {topic: self._held_of(topic) for topic in topics}
        self._extents = _extents(held, _recorded_gaps(tables_dir))
        self.held = HeldDecisions()
        decided = self._tables[DECISIONS].to_table(columns=["seq", "offset"])
        if decided.num_rows:
            first_seq, newest_seq = pc.min_max(decided["seq"]).as_py().values()
            self._take_in_named_partitions(newest_seq, held)
            end = self._end_before_missing_inputs(newest_seq)
            unread_count = pc.sum(pc.greater_equal(decided["offset"], end)).as_py()
            self.held = HeldDecisions(decided.num_rows, first_seq, newest_seq, unread_count)
        else:
            self._extents[DECISIONS] = {DECISIONS_PARTITION.partition: Extent(0, 0)}
        self._next: dict[TopicPartition, int] = {}

    def partition_count(self, topic: str) -> int:
        """See the protocol."""
        return len(self._extents_for(topic))

    def start_offsets(  # every partition answers
        self,
        topic: str,
        *,
        only_answering: bool = False,  # noqa: ARG002
    ) -> dict[TopicPartition, int]:
        """See the protocol."""
        return {TopicPartition(topic, partition): each.first for partition, each in self._extents_for(topic).items()}

    def end_offsets(  # every partition answers
        self,
        topic: str,
        *,
        only_answering: bool = False,  # noqa: ARG002
    ) -> dict[TopicPartition, int]:
        """See the protocol."""
        return {TopicPartition(topic, partition): each.end for partition, each in self._extents_for(topic).items()}

    def offsets_at_time(  # every partition answers
        self,
        topic: str,
        time_ms: int,
        *,
        only_answering: bool = False,  # noqa: ARG002
    ) -> dict[TopicPartition, int]:
        """See the protocol."""
        later = pc.field("append_time_ms") >= time_ms
        found = self._tables[topic].to_table(columns=PLACES.names, filter=later).cast(PLACES)
        if topic == HEARTBEATS:
            of_ticks = self._tick_places(pc.field("minute_ms") > time_ms - MINUTE_MS).filter(later)
            found = pa.concat_tables([found, of_ticks])
        grouped = found.group_by("partition").aggregate([("offset", "min")])
        first = dict(zip(grouped["partition"].to_pylist(), grouped["offset_min"].to_pylist(), strict=True))
        begins = self.start_offsets(topic)
        return {
            place: min(max(first.get(place.partition, end), begins[place]), end)
            for place, end in self.end_offsets(topic).items()
        }

    def beside(self) -> "TableLogReader":
        """Another reader of the same versions of the tables, whose log ends at the same offsets."""
        other = copy.copy(self)
        other._next = {}  # noqa: SLF001 - it is one of these
        return other

    def assign(self, positions: Mapping[TopicPartition, int]) -> None:
        """See the protocol."""
        self._next = dict(positions)

    def poll(self, max_records: int, timeout_ms: int) -> PolledBatch:  # noqa: ARG002 - everything is there at once
        """See the protocol; there may be more records than asked for, of each partition as many."""
        records = [record for topic in sorted({place.topic for place in self._next}) for record in self._read_on(topic)]
        ends = {place: self._extents_for(place.topic)[place.partition].end for place in self._next}
        ended = {place: PartitionEnd(end, end) for place, end in ends.items() if self._next[place] >= end}
        return PolledBatch(records, ended)

    def close(self) -> None:
        """See the protocol."""

    def _extents_for(self, topic: str) -> Mapping[int, Extent]:
        return self._extents.get(topic, {})

    def _held_of(self, topic: str) -> "_HeldRecords":
        """What the tables hold of a topic, by partition."""
        recorded = [held_by_partition(self._tables[topic].to_table(columns=PLACES.names).cast(PLACES))]
        if topic == HEARTBEATS:
            recorded.append(held_by_partition(self._tick_places()))
        sources = self._refused.filter(pc.field("source_topic") == topic)
        sources = sources.select([f"source_{name}" for name in PLACES.names]).rename_columns(PLACES.names)
        return _HeldRecords(recorded, held_by_partition(sources.cast(PLACES)))

    def _tick_places(self, rows: pc.Expression | None = None) -> pa.Table:
        """Partition, offset and append time of each tick."""
        ticks = self._ticks.to_table(columns=["partition", "tick_count", "offsets", "append_times_ms"], filter=rows)
        partitions = np.repeat(ticks["partition"].to_numpy(), ticks["tick_count"].to_numpy())
        offsets, times_ms = (pc.list_flatten(ticks[name]) for name in ("offsets", "append_times_ms"))
        places = {"partition": pa.array(partitions, pa.int64()), "offset": offsets, "append_time_ms": times_ms}
        return pa.table(places)

    def _take_in_named_partitions(self, seq: int, held: Mapping[str, "_HeldRecords"]) -> None:
        """Partitions without rows are known by the newest decision's positions; what is before these was forgotten.

        Of such a partition there may still be dead letters, which are forgotten by another number of days.
        """
        table = self._tables[DECISIONS].to_table(columns=["positions"], filter=pc.field("seq") == seq)
        for key, offset in table.to_pylist(maps_as_pydicts="strict")[0]["positions"].items():
            topic, partition = place_of(key)
            if topic in self._extents and not held[topic].has_rows(partition):
                extent = self._extents[topic].get(partition)
                if extent is None or extent.end < offset:
                    self._extents[topic][partition] = Extent(offset, offset)

    def _read_on(self, topic: str) -> Iterator[RawRecord]:
        """The next records of a topic's partitions, in order of each."""
        spans = {}
        for place, offset in self._next.items():
            if place.topic == topic:
                extent = self._extents_for(topic)[place.partition]
                if offset < extent.first:
                    raise LogContinuityError(f"{topic}[{place.partition}]@{offset} is not in the tables any more")
                spans[place.partition] = range(offset, min(offset + _STEP_OFFSETS, extent.end))
        wanted = [span for span in spans.items() if span[1]]
        if not wanted:
            return
        if topic == DECISIONS:
            yield from self._decisions(wanted)
            return
        rows = self._tables[topic].to_table(filter=_within(wanted, "partition", "offset"))
        refused = self._refused.filter(
            _within(wanted, "source_partition", "source_offset") & (pc.field("source_topic") == topic)
        )
        records = [_record(topic, row) for row in rows.to_pylist(maps_as_pydicts="strict")]
        if topic == HEARTBEATS:
            records += self._tick_records(wanted)
        kept = {(record.partition, record.offset) for record in records}
        for row in refused.to_pylist():
            _, partition, offset, append_time_ms = row.values()
            if (partition, offset) not in kept:
                records.append(RawRecord(topic, partition, offset, append_time_ms, None, b""))
        for partition, span in wanted:
            self._next[TopicPartition(topic, partition)] = span.stop
        yield from sorted(records, key=lambda record: (record.partition, record.offset))

    def _tick_records(self, wanted: Sequence[tuple[int, range]]) -> Iterator[RawRecord]:
        spans = dict(wanted)
        rows = self._ticks.to_table(filter=_overlapping(wanted)).to_pylist()
        for partition, offset, append_time_ms, tick in (each for row in rows for each in ticks_of(row)):
            if offset in spans[partition]:
                yield RawRecord(HEARTBEATS, partition, offset, append_time_ms, b"", encode_input(tick))

    def _decisions(self, wanted: Sequence[tuple[int, range]]) -> Iterator[RawRecord]:
        ((partition, span),) = wanted
        place = TopicPartition(DECISIONS, partition)
        rows = self._tables[DECISIONS].to_table(filter=_within(wanted, "partition", "offset")).sort_by("offset")
        for number, row in enumerate(rows.to_pylist(maps_as_pydicts="strict")):
            try:
                (value,) = encode_decision(decision_of(row), _WHOLE_BYTES)
            except LogContinuityError:
                if not number:
                    raise
                self._next[place] = row["offset"]  # those before it first
                return
            yield RawRecord(DECISIONS, partition, row["offset"], row["append_time_ms"], None, value)
        self._next[place] = span.stop

    def _end_before_missing_inputs(self, newest_seq: int) -> int:
        """Let the log end behind the last decision whose inputs are all here; returns the end. Positions never fall."""
        decisions, upto = self._tables[DECISIONS], newest_seq
        covered: list[dict[str, Any]] = []
        while upto > 0:
            span = (pc.field("seq") <= upto) & (pc.field("seq") > upto - _LOOK_BACK_DECISIONS)
            rows = decisions.to_table(columns=["seq", "partition", "offset", "positions"], filter=span)
            covered = [row for row in rows.to_pylist(maps_as_pydicts="strict") if self._covers(row["positions"])]
            if covered or not rows.num_rows:
                break
            upto -= _LOOK_BACK_DECISIONS
        end = max((row["offset"] + 1 for row in covered), default=0)
        for partition, extent in self._extents[DECISIONS].items():
            self._extents[DECISIONS][partition] = Extent(min(extent.first, end), end)
        return end

    def _covers(self, positions: Mapping[str, int]) -> bool:
        return all(offset <= self._end_of(place_of(key)) for key, offset in positions.items())

    def _end_of(self, place: TopicPartition) -> int:
        extent = self._extents_for(place.topic).get(place.partition)
        return 0 if extent is None else extent.end


def _opened(tables_dir: StoragePath, table: TableContract) -> pa_dataset.Dataset:
    return DeltaTable(str(tables_dir / table.name)).to_pyarrow_dataset()


class _HeldRecords(NamedTuple):
    """What the tables hold of a topic, by partition.

    Attributes:
        recorded: by each table of its records.
        refused: by their dead letters.
    """

    recorded: Sequence[Mapping[int, Held]]
    refused: Mapping[int, Held]

    def has_rows(self, partition: int) -> bool:
        """Whether a table has a row of the partition."""
        return any(partition in part for part in self.recorded)


def _extents(
    held: Mapping[str, _HeldRecords], gaps: Mapping[str, Sequence[tuple[int, range]]]
) -> dict[str, dict[int, Extent]]:
    """Of each topic and partition the newest run of offsets: what stands before it is as good as forgotten."""
    times_ms = (each.append_times_ms for parts in held.values() for part in parts.recorded for each in part.values())
    newest_ms = max((int(each.max()) for each in times_ms), default=0)
    found: dict[str, dict[int, Extent]] = {}
    for topic, (recorded, refused) in held.items():
        if topic == DECISIONS:  # one that spans records has one row
            found[topic] = {
                number: Extent(int(each[0][0]), int(each[0][-1]) + 1) for number, each in recorded[0].items()
            }
            continue
        parts = [*recorded, refused]
        found[topic] = {
            number: newest_run(
                [part[number] for part in parts if number in part],
                [offsets for partition, offsets in gaps.get(topic, ()) if partition == number],
                newest_ms,
            )
            for number in {number for part in parts for number in part}
        }
    return found


def _recorded_gaps(tables_dir: StoragePath) -> Mapping[str, Sequence[tuple[int, range]]]:
    """Of each topic the partitions and offsets that were passed. Their table may have been moved away to be mended."""
    found: dict[str, list[tuple[int, range]]] = {}
    if (tables_dir / GAPS_TABLE.name / "_delta_log").exists():
        for row in _opened(tables_dir, GAPS_TABLE).to_table().to_pylist():
            offsets = range(row["first_offset"], row["last_offset"] + 1)
            found.setdefault(row["topic"], []).append((row["partition"], offsets))
    return found


def decision_of(row: Mapping[str, Any]) -> Decision:
    """The decision in a row of ``decisions``.

    Raises:
        LogContinuityError: the row is not what was decided: its digest is another one.
    """
    certificate = row["certificate"]
    plain = {
        **{name: row[name] for name in Decision.__dataclass_fields__ if name in row},
        "events": json.loads(row["events"]),
        "certificate": None if certificate is None else json.loads(certificate),
    }
    decision = from_canonical(Decision, plain)
    if decision.digest() != row["digest"]:
        message = f"decision {row['seq']} in the table {DECISIONS_TABLE.name} has another digest than was written there"
        raise LogContinuityError(f"{message}: the row was changed")
    return decision


def _record(topic: str, row: Mapping[str, Any]) -> RawRecord:
    """The record of which a row of a topic's table was made."""
    kinds = _KINDS[topic]
    kind = kinds[row[KIND_COLUMN]] if len(kinds) > 1 else kinds[""]
    try:
        payload: InputPayload = from_canonical(kind, {name: row[name] for name in kind.__annotations__ if name in row})
        value = encode_input(payload)
    except InvalidInputError as error:
        place = f"{topic}[{row['partition']}]@{row['offset']}"
        raise LogContinuityError(f"{place} is no record any more in its table: {error.detail}") from error
    return RawRecord(topic, row["partition"], row["offset"], row["append_time_ms"], key_of(payload), value)


def _within(wanted: Sequence[tuple[int, range]], partition: str, offset: str) -> pc.Expression:
    """Whether a row's place is in one of the spans of offsets."""
    return _any(
        (pc.field(partition) == number) & (pc.field(offset) >= span.start) & (pc.field(offset) < span.stop)
        for number, span in wanted
    )


def _overlapping(wanted: Sequence[tuple[int, range]]) -> pc.Expression:
    """Whether a row of ticks may have one in one of the spans of offsets."""
    return _any(
        (pc.field("partition") == number)
        & (pc.field("last_offset") >= span.start)
        & (pc.field("first_offset") < span.stop)
        for number, span in wanted
    )


def _any(conditions: Iterable[pc.Expression]) -> pc.Expression:
    return functools.reduce(operator.or_, conditions)
