"""Following the topic ``routing-table`` through a log reader: the driver of a table replica, for agents and clients.

It begins at the start of the topic, folds what comes, and begins again when the replica says that only that mends it.
It has no thread and no clock: whoever owns it calls :meth:`TableFollower.step` in a loop. A new leader, which mends the
topic itself, folds it by :func:`fold_record` alone.
"""

from typing import Final, NamedTuple

from controlplane.codec.table import decode_row
from controlplane.config import ROUTING_TABLE
from controlplane.core.routing.replica import ReplicaStanding, RoutingTable, TableReplica
from controlplane.core.values.identifiers import TopicPartition
from controlplane.errors import InvalidInputError, LogContinuityError, UnsupportedFeatureLevelError
from controlplane.ports import LogReader, RawRecord

_PLACE: Final = TopicPartition(ROUTING_TABLE, 0)
_MAX_RECORDS: Final = 2_000
_MAX_REBUILDS: Final = 3


class Progress(NamedTuple):
    """What one step brought.

    Attributes:
        tables: new epochs in order, each whole.
        ended: the end of the topic was reached and the last table shown (if any) is the newest one.
    """

    tables: tuple[RoutingTable, ...]
    ended: bool


def fold_record(replica: TableReplica, record: RawRecord) -> RoutingTable | None:
    """Let a replica take the next record of the topic; the new table if it closed an epoch whose digest fits.

    Raises:
        LogContinuityError: the record is no row, or not what may follow; the message names its place.
        UnsupportedFeatureLevelError: the record was written by a newer version.
    """
    place = f"{ROUTING_TABLE}[{record.partition}]@{record.offset}"
    if record.key is None:
        raise LogContinuityError(f"{place} has no key: it was not written by a leader")
    try:
        row = None if record.value is None else decode_row(record.key, record.value)
        return replica.fold(record.key, record.value, row)
    except InvalidInputError as error:
        if error.reason == "unknown_fingerprint":
            raise UnsupportedFeatureLevelError(f"{place} was written by a newer version ({error}): upgrade") from error
        raise LogContinuityError(f"{place} is no row of a routing table: {error}") from error
    except LogContinuityError as error:
        raise LogContinuityError(f"{place}: {error}") from error


class TableFollower:
    """Not thread-safe; the reader belongs to the follower.

    Attributes:
        table: the last table shown; None before the first.
        rebuilds: how often the topic had to be read from its start again.
    """

    def __init__(self, reader: LogReader) -> None:
        """Begin at the start of the topic, at the first step."""
        self.table: RoutingTable | None = None
        self.rebuilds = 0
        self._reader = reader
        self._replica = TableReplica()
        self._next_offset: int | None = None
        self._assigned = False
        self._rebuilds_in_a_row = 0

    def step(self, timeout_ms: int) -> Progress:
        """Fold what there is; returns at once with something, or with nothing after ``timeout_ms``.

        Raises:
            LogUnavailableError: the broker does not answer where the topic begins; call again.
            LogContinuityError: the topic is not the continuation of what was read before, or does not become whole.
            UnsupportedFeatureLevelError: a row was written by a newer version.
        """
        if not self._assigned:
            if self._next_offset is None:
                self._next_offset = self._reader.start_offsets(ROUTING_TABLE)[_PLACE]
            self._reader.assign({_PLACE: self._next_offset})
            self._assigned = True
        try:
            batch = self._reader.poll(_MAX_RECORDS, timeout_ms)
        except LogContinuityError as error:
            self._begin_again(str(error))
            return Progress((), ended=False)
        shown = []
        for record in batch.records:
            table = fold_record(self._replica, record)
            self._next_offset = record.offset + 1
            if table is not None:
                self.table = table
                shown.append(table)
        ended = _PLACE in batch.ended and self._is_whole()
        return Progress(tuple(shown), ended)

    def fetch_anew(self) -> None:
        """Let the next end that is reported be one that the broker was asked for after this call."""
        self._assigned = False

    def close(self) -> None:
        """Give the reader back."""
        self._reader.close()

    def _is_whole(self) -> bool:
        if self._replica.at_end() is ReplicaStanding.MUST_REBUILD:
            self._begin_again(f"rows up to offset {self._next_offset} do not fit the last epoch marker")
            return False
        self._rebuilds_in_a_row = 0
        return True

    def _begin_again(self, reason: str) -> None:
        self._rebuilds_in_a_row += 1
        if self._rebuilds_in_a_row > _MAX_REBUILDS:
            message = (
                f"{ROUTING_TABLE} was read from its start {_MAX_REBUILDS} times and does not become whole: {reason}; "
                "somebody else wrote to the topic, or rows were deleted: let the leader write the table again"
            )
            raise LogContinuityError(message)
        self.rebuilds += 1
        self._reader.assign({})  # nobody polls it until the broker has said where the topic begins
        self._replica = TableReplica(self.table)
        self._next_offset = None
        self._assigned = False
