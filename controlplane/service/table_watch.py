"""Lets a leader compare the topic ``routing-table`` with what it has committed, and find out when a repair is needed.

Anything that can write to the topic can overwrite a row. Readers then keep their last table, and the leader writes the
whole table again under a new epoch (:func:`controlplane.core.deciding.decide.repair_table`), at the pace of
:class:`controlplane.core.routing.repair.RepairPace`. One transaction removes a bounded number of foreign rows. If there
are more, the next repair follows after 1 s, as long as each repair finds fewer than the one before. Each record that is
read costs one hash.
"""

from collections.abc import Callable, Mapping
from typing import Final

import structlog

from controlplane.codec.table import decode_row
from controlplane.config import ROUTING_TABLE
from controlplane.core.log.identity import check_marker
from controlplane.core.log.state import State
from controlplane.core.routing.repair import OwnEpoch, OwnEpochWatch, RepairPace, TableDamage
from controlplane.core.routing.rows import MARKER_KEY, EpochMarker
from controlplane.core.routing.topic_image import TopicImage
from controlplane.core.values.identifiers import Epoch, TopicPartition
from controlplane.errors import InvalidInputError, LogContinuityError, LogUnavailableError, PrerequisiteError
from controlplane.ports import Clock, LogReader, RawRecord
from controlplane.service.publisher import TablePublisher, can_be_removed_at_once
from controlplane.topic_reading.deadlines import READ_LIMIT_MS, STALL_LIMIT_MS, ReadDeadline
from controlplane.topic_reading.unread import NO_BARRIER, Unread

_MAX_RECORDS: Final = 5_000
_INTERVAL_MS: Final = 200

_log = structlog.get_logger(__name__)


def fold_into_image(image: TopicImage, record: RawRecord) -> None:
    """Fold the next record of the topic into an image.

    Raises:
        LogContinuityError: a marker of the followed log cannot follow the one before it; the message names the place.
    """
    key = record.key
    if key is None:
        return
    if key != MARKER_KEY.encode():
        image.put(key, record.value)
        return
    marker = _marker(record.value)
    if marker is None:
        image.overwrite_marker()
        return
    try:
        image.mark(marker)
    except LogContinuityError as error:
        raise LogContinuityError(f"{ROUTING_TABLE}[{record.partition}]@{record.offset}: {error}") from error


class TableWatch:
    """Follows the topic from its start through a reader of its own. Not thread-safe.

    Attributes:
        image: what the topic holds, as far as it was read.
        damaged_epoch: the leader's epoch when the topic was last found not to hold the leader's table; 0 for never.
    """

    def __init__(self, open_reader: Callable[[], LogReader], clock: Clock, log_id: str) -> None:
        """Set up without reading: :meth:`read_to_end` begins.

        Args:
            open_reader: makes a reader of the cluster's topics.
            clock: for deadlines and for the pace of repairs.
            log_id: of the decision log that is led; empty if the log is still to be created.
        """
        self.image = TopicImage(log_id)
        self.damaged_epoch = Epoch(0)
        self._open_reader = open_reader
        self._reader = open_reader()
        self._clock = clock
        self._log_id = log_id
        self._has_position = False
        self._unread = Unread({}, {})
        self._barrier = NO_BARRIER
        self._has_more = True
        self._looked_at_ms = clock.monotonic_ms()
        self._own_epochs = OwnEpochWatch(self._looked_at_ms, STALL_LIMIT_MS)
        self._pace = RepairPace()

    def read_to_end(self, barrier: Mapping[TopicPartition, int], stall_limit_ms: int) -> None:
        """Read the topic from its start to the end that it has when the reading begins.

        Args:
            barrier: everything before these offsets is read as well, whatever end the broker answers.
            stall_limit_ms: limit of the time without a record.

        Raises:
            LogUnavailableError: Kafka did not answer in time.
            LogContinuityError: see :func:`fold_into_image`.
        """
        self._barrier = barrier
        deadline = ReadDeadline(
            self._clock,
            lambda: f"the end of topic {ROUTING_TABLE}{self._unread.shortfall}",
            READ_LIMIT_MS,
            stall_limit_ms,
        )
        while not self._is_at_end:
            deadline.check(progress=self._read(50) > 0)
        # A topic that is made again later has other offsets.
        self._barrier = NO_BARRIER

    def damage(self, led: State, publisher: TablePublisher) -> TableDamage | None:
        """Read on, once every 200 ms at the end of the topic, and look for damage that has to be repaired now.

        Args:
            led: the leader's state; the outcome of each of its commits is known.
            publisher: knows the rows that the leader has committed.

        Returns:
            The damage; None if there is none, or if the repair has to wait.

        Raises:
            LogContinuityError: a marker of the cluster's own log was forged.
        """
        now_ms = self._clock.monotonic_ms()
        # While records arrive, every call reads on: once per interval would be too slow for a long topic.
        if not self._has_more and now_ms - self._looked_at_ms < _INTERVAL_MS:
            return None
        self._looked_at_ms, self._log_id = now_ms, led.log_id
        try:
            self._has_more = self._read_what_has_arrived()
        except (LogUnavailableError, PrerequisiteError) as error:
            # The topic was there when the term began. While it is deleted and made again, it is only away.
            _log.warning("routing table cannot be read", error=str(error))
            return None
        marker = self.image.last_marker
        check_marker(marker, led)
        is_shown = marker is not None and marker.epoch == led.epoch
        own = self._own_epochs.look(
            now_ms,
            led.epoch,
            is_shown=is_shown,
            has_moved=self._has_more,
            is_at_end=self._is_at_end and not self._awaits_marker,
        )
        match own:
            case OwnEpoch.AWAITED:
                return None
            case OwnEpoch.OVERDUE:
                # If a topic was deleted and recreated, a client that knows the former topic may wait without an error.
                _log.warning("own epochs cannot be read, reopening the routing table", committed=led.epoch)
                self._reader.close()
                self._reader, self._has_position = self._open_reader(), False
                return None
            case OwnEpoch.SHOWN if publisher.wrote_all_of(self.image) and not self.image.marker_is_overwritten:
                return None
            case OwnEpoch.SHOWN | OwnEpoch.MISSING:
                pass
        self.damaged_epoch = led.epoch
        if not self._pace.allows(now_ms):
            return None
        damage = TableDamage(publisher.differing_keys(self.image), self.image)
        foreign = publisher.foreign_keys(self.image)
        if not can_be_removed_at_once(foreign):
            self._pace.continues(len(foreign))
        _log.error("routing table is damaged, writing it again", problem=damage.evidence, epoch=led.epoch)
        return damage

    def close(self) -> None:
        """Close the reader."""
        self._reader.close()

    @property
    def _awaits_marker(self) -> bool:
        """Whether the topic ends at a transaction that has not ended, or whose end is not marked yet."""
        return any(end.awaits_marker for end in self._unread.last_ends.values())

    @property
    def _is_at_end(self) -> bool:
        """Whether the topic is read to the end that it had when this reader was assigned."""
        return self._has_position and not self._unread.places

    def _read_what_has_arrived(self) -> bool:
        """Fold the batches that have arrived, up to a number of records; return whether there was one.

        Batches may be small, and the leader has other things to do between two calls.
        """
        read = 0
        while read < _MAX_RECORDS and (count := self._read(0)):
            read += count
        return read > 0

    def _read(self, timeout_ms: int) -> int:
        """Fold one batch, from the start of the topic if there is no position yet; return its number of records."""
        if not self._has_position:
            begin = self._reader.start_offsets(ROUTING_TABLE)
            self._unread = Unread(begin, self._reader.end_offsets(ROUTING_TABLE), self._barrier)
            self._reader.assign(begin)
            self._has_position = True
            self.image = TopicImage(self._log_id)
        try:
            batch = self._reader.poll(_MAX_RECORDS, timeout_ms)
        except LogContinuityError as error:
            _log.warning("reading the routing table from its start again", error=str(error))
            self._has_position = False
            return 0
        for record in batch.records:
            fold_into_image(self.image, record)
        self._unread.take(batch)
        return len(batch.records)


def _marker(value: bytes | None) -> EpochMarker | None:
    """The marker that a value of the marker's key holds; None if it holds something else."""
    try:
        row = None if value is None else decode_row(MARKER_KEY.encode(), value)
    except InvalidInputError:
        return None
    return row if isinstance(row, EpochMarker) else None
