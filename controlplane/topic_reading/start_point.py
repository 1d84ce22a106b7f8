"""Finds the place where following the decision log begins: after the newest usable snapshot, or at the log's start.

An unusable snapshot is skipped in favour of the one before it, with a log line that gives the reason. No snapshot is
trusted by itself: its last decision is read from the log at the offset that it names, and has to be the same.
"""

from collections.abc import Callable
from typing import Final

import structlog

from controlplane.codec.decisions import DecisionAssembler
from controlplane.codec.outputs import decode_snapshot_part
from controlplane.config import DECISIONS, SNAPSHOTS
from controlplane.core.log.decision import Decision
from controlplane.core.log.snapshots.body import DAMAGED, restored
from controlplane.core.log.snapshots.catalog import SnapshotCatalog, StoredSnapshot
from controlplane.core.log.snapshots.log_point import LogPoint
from controlplane.core.log.snapshots.snapshot_part import SnapshotPart
from controlplane.core.log.state import State
from controlplane.core.values.identifiers import Seq
from controlplane.core.values.positions import DECISIONS_PARTITION
from controlplane.errors import (
    RESTORE_OR_BEGIN_ANEW,
    InvalidInputError,
    LogContinuityError,
    UnsupportedFeatureLevelError,
)
from controlplane.ports import Clock, LogReader, RawRecord
from controlplane.topic_reading.deadlines import READ_LIMIT_MS, STALL_LIMIT_MS
from controlplane.topic_reading.drain import ReadLimits, drain

_MAX_PARTS: Final = 16
_MAX_RECORDS: Final = 32

_log = structlog.get_logger(__name__)


def find_start_point(
    reader: LogReader,
    clock: Clock,
    allowed: Callable[[SnapshotPart], bool] = lambda _: True,
    catalog: SnapshotCatalog | None = None,
) -> LogPoint:
    """The place in the log at which to begin, with the state there: after the latest usable snapshot, or the start.

    Args:
        reader: reads the cluster's topics; its former assignment is replaced.
        clock: for deadlines.
        allowed: whether a snapshot with the given header is early enough for the caller.
        catalog: the snapshots, if they were read before.

    Raises:
        LogUnavailableError: Kafka did not answer in time.
        LogContinuityError: there are snapshots, but the log is empty: it was deleted or recreated.
    """
    snapshots = (catalog or read_catalog(reader, clock)).newest_first()
    log_id = _first_log_id(reader, clock) if snapshots else ""
    for snapshot in snapshots:
        header = snapshot.header
        if header is not None and not allowed(header):
            continue
        try:
            _require_log(header, log_id)
            point = point_of(reader, clock, snapshot)
        except InvalidInputError as error:
            _log.warning("snapshot skipped", snapshot=snapshot.snapshot_id, reason=error.detail)
        else:
            _log.info("beginning from a snapshot", snapshot=snapshot.snapshot_id, seq=point.state.seq)
            return point
    return LogPoint(State())


def _require_log(header: SnapshotPart | None, log_id: str) -> None:
    if header is not None and log_id not in {"", header.log_id}:
        detail = f"it is of log {header.log_id!r:.80}, and topic {DECISIONS} begins with log {log_id!r:.80}"
        raise InvalidInputError(DAMAGED, detail)


def _first_log_id(reader: LogReader, clock: Clock) -> str:
    """The log that is read from the topic's start; empty if the topic cannot tell.

    The first decision names the log, and decisions of another log behind it are foreign. This holds only where nothing
    was deleted: without its beginning, the topic may begin with a decision that was foreign.

    Raises:
        LogUnavailableError: Kafka did not answer in time.
    """
    first, end = _kept_range(reader)
    if first > 0:
        return ""
    assembler = DecisionAssembler(next_seq=Seq(1))
    limits = ReadLimits(clock, STALL_LIMIT_MS, READ_LIMIT_MS)
    for records in drain(reader, {DECISIONS_PARTITION: first}, limits, {DECISIONS_PARTITION: end}, max_records=1):
        for record in records:
            try:
                assembler.read(record.value, record.key)
            except InvalidInputError:
                continue
            except UnsupportedFeatureLevelError:
                return ""
            return assembler.log_id
    return ""


def read_catalog(reader: LogReader, clock: Clock) -> SnapshotCatalog:
    """Read the snapshots that the topic holds now.

    Raises:
        LogUnavailableError: Kafka did not answer in time.
    """
    catalog = SnapshotCatalog()
    begin, limits = reader.start_offsets(SNAPSHOTS), ReadLimits(clock, STALL_LIMIT_MS, READ_LIMIT_MS)
    for records in drain(reader, begin, limits, max_records=_MAX_PARTS):
        for record in records:
            catalog.fold(record.key or b"", _part(record))
    return catalog


def require_kept(reader: LogReader, offset: int) -> None:
    """Check that the decisions from an offset on are still kept.

    Raises:
        LogUnavailableError: Kafka did not answer in time.
        LogContinuityError: the log begins later.
    """
    first = reader.start_offsets(DECISIONS)[DECISIONS_PARTITION]
    if first > offset:
        message = f"topic {DECISIONS} begins at offset {first}, but {offset} is needed: decisions were deleted"
        raise LogContinuityError(message)


def _part(record: RawRecord) -> SnapshotPart | str | None:
    if record.value is None:
        return None
    try:
        return decode_snapshot_part(record.value)
    except InvalidInputError as error:
        return error.detail


def point_of(reader: LogReader, clock: Clock, snapshot: StoredSnapshot) -> LogPoint:
    """The place in the log and the state there, as given by a snapshot and confirmed by the log.

    Raises:
        InvalidInputError: the snapshot is incomplete, damaged, or not of this log; the detail says which.
        LogUnavailableError: Kafka did not answer in time.
        LogContinuityError: the log is empty: it was deleted or recreated.
    """
    header = snapshot.header
    if snapshot.problem or header is None:
        raise InvalidInputError(DAMAGED, snapshot.problem)
    decision, last_offset = _read_back(reader, clock, header)
    state = restored(snapshot.parts)
    if (decision.digest(), decision.state_digest) != (state.last_digest, header.state_digest):
        detail = f"the log holds another decision {decision.seq} of log {decision.log_id!r} at the snapshot's offset"
        raise InvalidInputError(DAMAGED, detail)
    return LogPoint(state, header.last_decision_offset, last_offset + 1)


def _kept_range(reader: LogReader) -> tuple[int, int]:
    """The first offset that the decision log keeps, and its end."""
    return reader.start_offsets(DECISIONS)[DECISIONS_PARTITION], reader.end_offsets(DECISIONS)[DECISIONS_PARTITION]


def _read_back(reader: LogReader, clock: Clock, header: SnapshotPart) -> tuple[Decision, int]:
    """The decision at the offset that the snapshot names for its last decision, and the offset of its last record."""
    first, end = _kept_range(reader)
    if first == end:
        message = (
            f"topic {DECISIONS} is empty, but {SNAPSHOTS} holds a state of seq {header.seq} of log {header.log_id!r}: "
            f"the decision log was deleted or recreated; {RESTORE_OR_BEGIN_ANEW}"
        )
        raise LogContinuityError(message)
    return _decision_at(reader, clock, header.last_decision_offset, (header.log_id, header.seq), (first, end))


def require_stands(reader: LogReader, clock: Clock, point: LogPoint, barrier: int | None = None) -> None:
    """Check that the topic still holds the last decision of a place, unless retention has deleted it.

    Args:
        reader: reads the cluster's topics; its former assignment is replaced.
        clock: for deadlines.
        point: the place.
        barrier: the offset of a barrier, before which everything is to be read; None for the end that the answering
            broker knows. With a barrier, a broker that lags is waited for, and not taken for a log without its end.

    Raises:
        LogUnavailableError: Kafka did not answer in time.
        LogContinuityError: the topic holds something else there: it has lost the decision, or was recreated.
    """
    first, end = _kept_range(reader)
    end = end if barrier is None else barrier
    if point.last_decision_offset < max(first, 0):
        return
    state = point.state
    try:
        decision, _ = _decision_at(reader, clock, point.last_decision_offset, (state.log_id, state.seq), (first, end))
    except InvalidInputError as error:
        problem = error.detail
    else:
        if decision.digest() == state.last_digest:
            return
        problem = f"it holds another decision {decision.seq} there"
    message = (
        f"decision {state.seq} of log {state.log_id!r} was read at {DECISIONS}[0]@{point.last_decision_offset}, but "
        f"is no longer there ({problem}): decisions were lost, or the topic was recreated, or the "
        f"brokers were restored from an older copy; {RESTORE_OR_BEGIN_ANEW}"
    )
    raise LogContinuityError(message)


def _decision_at(
    reader: LogReader, clock: Clock, offset: int, name: tuple[str, Seq], kept: tuple[int, int]
) -> tuple[Decision, int]:
    """The decision that begins at an offset, and the offset of its last record; ``name`` is its log id and its seq.

    Raises:
        InvalidInputError: ``damaged_snapshot``: no decision of this log begins there, or a newer version wrote it. That
            stops no reader here, because anything that may write to the topics can cause it. Where it is a decision
            of this log, reading on from an earlier place stops there.
        LogUnavailableError: Kafka did not answer in time.
    """
    place = f"{DECISIONS}[0]@{offset}"
    first, end = kept
    if not first <= offset < end:
        raise InvalidInputError(DAMAGED, f"its last decision was at {place}, but the log keeps {first} to {end}")
    assembler = DecisionAssembler(None, *name)
    limits = ReadLimits(clock, STALL_LIMIT_MS, READ_LIMIT_MS)
    for records in drain(reader, {DECISIONS_PARTITION: offset}, limits, {DECISIONS_PARTITION: end}, _MAX_RECORDS):
        for record in records:
            try:
                decision = assembler.add(record.value, record.key)
            except (InvalidInputError, LogContinuityError, UnsupportedFeatureLevelError) as error:
                if assembler.within_decision and isinstance(error, InvalidInputError):
                    continue  # a foreign record between two parts
                raise InvalidInputError(DAMAGED, f"no decision begins at {place}: {error}") from error
            if decision is not None:
                return decision, record.offset
    raise InvalidInputError(DAMAGED, f"no decision begins at {place}")
