"""Follows the topic ``routing-table`` through a log reader: the driver of a table replica, for agents and clients.

Reading begins at the start of the topic, and begins again when the replica can be made whole in no other way. Foreign
records are skipped; only a forged marker of the cluster's own log ends a reader. There is no thread and no clock here:
the owner calls :meth:`TableFollower.step` in a loop.
"""

from typing import Final, NamedTuple

from controlplane.codec.table import decode_row
from controlplane.config import ROUTING_TABLE
from controlplane.core.routing.replica import ReplicaStanding, RoutingTable, TableReplica
from controlplane.core.routing.rows import KINDS, MARKER_KEY, EpochMarker, TableRow, UnreadableRow, key_text, split_key
from controlplane.core.values.positions import TABLE_PLACE
from controlplane.errors import InvalidInputError, LogContinuityError, LogUnavailableError, PrerequisiteError
from controlplane.ports import LogReader, PolledBatch, RawRecord
from controlplane.topic_reading.foreign_records import ForeignRecords
from controlplane.topic_reading.fresh_reading import FreshReading
from controlplane.topic_reading.unread import Unread

_MAX_RECORDS: Final = 2_000
_AT_ONCE: Final = 3
"""The number of rebuilds in a row that may follow each other without a wait."""
_FIRST_WAIT_MS: Final = 1_000
_LONGEST_WAIT_MS: Final = 60_000
_MOST_COUNTED: Final = 20
"""Rebuilds in a row are counted up to this number; the wait has reached its maximum before."""


class Progress(NamedTuple):
    """The result of one step.

    Attributes:
        tables: the new epochs in order, each a whole table.
        ended: whether the step reached an end of the topic, asked for before or reported by Kafka, at which the last
            table shown (if any) is the newest one. Set once for each end.
        confirms: whether the tables shown hold every epoch that was committed before the last
            :meth:`TableFollower.fetch_anew`. An end does not, if it lies below the high watermark that the new fetch
            told of: behind it may stand a committed epoch whose transaction's marker is not written yet.
    """

    tables: tuple[RoutingTable, ...]
    ended: bool
    confirms: bool = False


def fold_record(replica: TableReplica, record: RawRecord, foreign: ForeignRecords) -> RoutingTable | None:
    """Fold the next record of the topic into a replica; return the new table if the record closes an epoch that fits.

    Raises:
        LogContinuityError: the record is a marker of this cluster's log that no leader can have written; the message
            names its place.
    """
    if record.key is None:
        foreign.note(record, "it has no key")
        return None
    row, problem = _decoded(record.key, record.value)
    if isinstance(row, EpochMarker) and replica.log_id not in {"", row.log_id}:
        problem = f"an epoch marker of log {row.log_id!r}, but this is log {replica.log_id!r}"
    if problem:
        foreign.note(record, problem)
    try:
        return replica.fold(record.key, record.value, row)
    except LogContinuityError as error:
        raise LogContinuityError(f"{ROUTING_TABLE}[{record.partition}]@{record.offset}: {error}") from error


def _decoded(key: bytes, value: bytes | None) -> tuple[TableRow | EpochMarker | UnreadableRow | None, str]:
    """The row that a record holds, and the problem with it; a row of an unknown kind is no problem."""
    if value is None:
        return None, ""
    try:
        return decode_row(key, value), ""
    except InvalidInputError as error:
        kind, _ = split_key(key_text(key))
        is_newer = error.reason == "unknown_fingerprint"
        problem = f"{error}: a newer version may have written it, upgrade this one" if is_newer else str(error)
        passes = is_newer and kind not in KINDS and key_text(key) != MARKER_KEY
        return UnreadableRow(problem), "" if passes else problem


class TableFollower:
    """Follows the table with a reader that belongs to the follower. Not thread-safe.

    Attributes:
        table: the last table shown; None before the first.
        rebuilds: how often the topic had to be read from its start again.
        awaits_repair: whether the end of the topic was reached without a whole table there. The last table stays in use
            until a leader has written the table again.
        foreign: the records that were passed by.
    """

    def __init__(self, reader: LogReader, log_id: str = "") -> None:
        """Begin at the start of the topic with the first step.

        Args:
            reader: a reader of the topic.
            log_id: the decision log whose table is wanted; if empty, the first whole table determines it.
        """
        self.table: RoutingTable | None = None
        self.rebuilds = 0
        self.awaits_repair = False
        self.foreign = ForeignRecords(ROUTING_TABLE)
        self._reader = reader
        self._log_id = log_id
        self._replica = TableReplica(log_id=log_id)
        self._next_offset: int | None = None
        self._has_begun = False
        self._assigned = False
        self._unread: Unread | None = None
        self._wants_end = True
        self._fresh = FreshReading(TABLE_PLACE)
        self._append_time_ms = 0
        self._backoff = _RebuildBackoff()

    def step(self, timeout_ms: int) -> Progress:
        """Fold the records that are available, after waiting for one for at most ``timeout_ms``.

        Raises:
            LogUnavailableError: the broker does not answer where the topic begins, or the topic that was read is away;
                call again.
            PrerequisiteError: there is no such topic, and none was read before.
            LogContinuityError: the topic is not the continuation of what was read before.
            InvariantViolationError: a leader committed rows that are not a valid table.
        """
        if self._next_offset is None:
            self._next_offset = self._first_offset()
        if self._unread is None and self._wants_end:
            self._unread = self._up_to_present_end(self._next_offset)
            self._wants_end = False
        if not self._assigned:
            self._reader.assign({TABLE_PLACE: self._next_offset})
            self._assigned = True
        try:
            batch = self._reader.poll(_MAX_RECORDS, timeout_ms)
        except LogContinuityError:
            self.foreign.begin_anew()
            self._begin_again()
            return Progress((), ended=False)
        shown = []
        confirms = False
        for record in batch.records:
            table = fold_record(self._replica, record, self.foreign)
            self._next_offset = record.offset + 1
            self._append_time_ms = record.append_time_ms
            if table is not None:
                self.table = table
                shown.append(table)
                confirms = confirms or self._fresh.holds_at(self._next_offset)
        self._fresh.take(batch)
        end = batch.ended.get(TABLE_PLACE)
        read_to = self._next_offset if end is None else max(self._next_offset, end.offset)
        ended = self._has_ended(batch, shows_table=bool(shown))
        return Progress(tuple(shown), ended, confirms or (ended and self._fresh.holds_at(read_to)))

    def fetch_anew(self) -> None:
        """Let the next reported end, and the next confirmation, be by what the broker answered after this call.

        The reader seeks, and its next fetch reports the end of a quiet topic. The broker is asked for the end only if
        records without a table come instead, because this is called for each acknowledged heartbeat of a node.
        """
        self._fresh.begin()
        self._assigned = False
        self._unread, self._wants_end = None, False

    def ask_for_end(self) -> None:
        """Let the next step ask the broker where the topic ends, and let the next reported end be at or behind that."""
        self._unread, self._wants_end = None, True

    def close(self) -> None:
        """Close the reader."""
        self._reader.close()

    def _first_offset(self) -> int:
        try:
            first = self._reader.start_offsets(ROUTING_TABLE)[TABLE_PLACE]
        except PrerequisiteError as error:
            if not self._has_begun:
                raise
            # The topic existed when reading began. It is being deleted and recreated: its absence is temporary.
            raise LogUnavailableError(str(error)) from error
        self._has_begun = True
        return first

    def _up_to_present_end(self, next_offset: int) -> Unread | None:
        """What is unread; None if the broker does not say where the topic ends, which must not hold up reading.

        The end is asked for again once further records come without a table.
        """
        try:
            return Unread({TABLE_PLACE: next_offset}, self._reader.end_offsets(ROUTING_TABLE))
        except (LogUnavailableError, PrerequisiteError):
            return None

    def _has_ended(self, batch: PolledBatch, *, shows_table: bool) -> bool:
        """Whether a batch reached an end at which the last table shown is whole.

        An end without a whole table stays pending. The epoch that makes the table whole may come while a foreign writer
        keeps appending, and then Kafka reports no further end.
        """
        if self._unread is not None:
            self._unread.take(batch)
        is_reached = TABLE_PLACE in batch.ended if self._unread is None else not self._unread.places
        if not is_reached:
            # Rows without a table may be those of a foreign writer, during which Kafka never reports an end.
            self._wants_end = self._wants_end or (bool(batch.records) and not shows_table)
            return False
        is_whole = self._is_whole()
        if is_whole:
            self._unread, self._wants_end = None, False
        return is_whole

    def _is_whole(self) -> bool:
        standing = self._replica.at_end()
        is_whole = standing in {ReplicaStanding.WHOLE, ReplicaStanding.EMPTY}
        if is_whole:
            self._backoff = _RebuildBackoff()
        elif standing is ReplicaStanding.MUST_REBUILD and self._backoff.allows(self._replica, self._append_time_ms):
            self._begin_again()
            return False
        self.awaits_repair = not is_whole
        return is_whole

    def _begin_again(self) -> None:
        self.rebuilds += 1
        self._reader.assign({})  # nothing to poll until the broker has said where the topic begins
        self._replica = TableReplica(self.table, self._log_id)
        self._next_offset = None
        self.fetch_anew()


class _RebuildBackoff:
    """Decides when reading the topic from its start again is worth a try.

    It is not if the last reading from the start ended with the same rows under the same marker. After several rebuilds
    in a row without a whole table, the next one waits, in append time of the records that come meanwhile.
    """

    def __init__(self) -> None:
        self._in_a_row = 0
        self._last_end: tuple[str, EpochMarker | None] | None = None
        self._began_at_ms = 0

    def allows(self, replica: TableReplica, append_time_ms: int) -> bool:
        """Whether to begin again now, at the end of a topic whose rows do not fit the last marker."""
        end = replica.digest, replica.last_marker
        beyond = self._in_a_row - _AT_ONCE
        wait_ms = min(_FIRST_WAIT_MS << beyond, _LONGEST_WAIT_MS) if beyond >= 0 else 0
        if end == self._last_end or abs(append_time_ms - self._began_at_ms) < wait_ms:
            return False
        self._in_a_row = min(self._in_a_row + 1, _MOST_COUNTED)
        self._last_end, self._began_at_ms = end, append_time_ms
        return True
