"""Where following the decision log begins: behind the newest snapshot that is whole and the log's own, or at its start.

A snapshot that cannot be used is passed over for the one before it, and the log says which and why. None is trusted by
itself: the last decision in it is read back from where it says that it stands, and has to be the same.
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
from controlplane.core.values.positions import DECISIONS_PLACE
from controlplane.errors import RESTORE_OR_BEGIN_ANEW, InvalidInputError, LogContinuityError
from controlplane.ports import Clock, LogReader, RawRecord
from controlplane.topic_reading.deadlines import READ_LIMIT_MS, STALL_LIMIT_MS
from controlplane.topic_reading.drain import ReadLimits, drain

_LOG: Final = DECISIONS_PLACE
_MAX_PARTS: Final = 16
_MAX_RECORDS: Final = 32

_log = structlog.get_logger(__name__)


def find_start_point(
    reader: LogReader, clock: Clock, allowed: Callable[[SnapshotPart], bool] = lambda _: True
) -> LogPoint:
    """The place in the log at which to begin, with the state there: the latest that a snapshot gives, or the start.

    Args:
        reader: reads the cluster's topics; what it was assigned before is forgotten.
        clock: for deadlines.
        allowed: whether a snapshot with such a header is early enough for what is asked.

    Raises:
        LogUnavailableError: Kafka did not answer in time.
        LogContinuityError: there are snapshots of a log that is empty now: it was deleted or recreated.
        UnsupportedFeatureLevelError: a newer version wrote the last decision of a snapshot.
    """
    catalog = read_catalog(reader, clock)
    for snapshot in catalog.newest_first():
        header = snapshot.header
        if header is not None and not allowed(header):
            continue
        try:
            point = point_of(reader, clock, snapshot)
        except InvalidInputError as error:
            _log.warning("snapshot passed over", snapshot=snapshot.snapshot_id, reason=error.detail)
        else:
            _log.info("beginning from a snapshot", snapshot=snapshot.snapshot_id, seq=point.state.seq)
            return point
    return LogPoint(State())


def read_catalog(reader: LogReader, clock: Clock) -> SnapshotCatalog:
    """What the topic of snapshots holds now.

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
    """Refuse to read decisions from an offset before which some are missing.

    Raises:
        LogUnavailableError: Kafka did not answer in time.
        LogContinuityError: the log begins later.
    """
    first = reader.start_offsets(DECISIONS)[_LOG]
    if first > offset:
        message = f"topic {DECISIONS} begins at offset {first}, needed is {offset}: decisions were deleted"
        raise LogContinuityError(message)


def _part(record: RawRecord) -> SnapshotPart | str | None:
    if record.value is None:
        return None
    try:
        return decode_snapshot_part(record.value)
    except InvalidInputError as error:
        return error.detail


def point_of(reader: LogReader, clock: Clock, snapshot: StoredSnapshot) -> LogPoint:
    """The place in the log, and the state there, that a snapshot gives and the log confirms.

    Raises:
        InvalidInputError: it is not whole, not what was written, or not of this log; the detail says which.
        LogUnavailableError: Kafka did not answer in time.
        LogContinuityError: the log is empty: it was deleted or recreated.
        UnsupportedFeatureLevelError: a newer version wrote the decision in the log. What the snapshot says of its own
            level stops no reader: anything that may write to the topic can say it.
    """
    header = snapshot.header
    if snapshot.problem or header is None:
        raise InvalidInputError(DAMAGED, snapshot.problem)
    decision, last_offset = _read_back(reader, clock, header)
    state = restored(snapshot.parts)
    if (decision.digest(), decision.state_digest) != (state.last_digest, header.state_digest):
        detail = f"the log holds another decision {decision.seq} of log {decision.log_id!r} where its last one stood"
        raise InvalidInputError(DAMAGED, detail)
    return LogPoint(state, header.last_decision_offset, last_offset + 1)


def _read_back(reader: LogReader, clock: Clock, header: SnapshotPart) -> tuple[Decision, int]:
    """The decision that stands where the snapshot says that its last one does, and the offset of its last record."""
    first, end = reader.start_offsets(DECISIONS)[_LOG], reader.end_offsets(DECISIONS)[_LOG]
    if first == end:
        message = (
            f"topic {DECISIONS} is empty, but {SNAPSHOTS} holds a state of seq {header.seq} of log {header.log_id!r}: "
            f"the decision log was deleted or recreated; {RESTORE_OR_BEGIN_ANEW}"
        )
        raise LogContinuityError(message)
    return _decision_at(reader, clock, header.last_decision_offset, (header.log_id, header.seq), (first, end))


def require_stands(reader: LogReader, clock: Clock, point: LogPoint) -> None:
    """Refuse a topic that does not hold the last decision of a place any more, unless that was deleted with age.

    Raises:
        LogUnavailableError: Kafka did not answer in time.
        LogContinuityError: the topic holds something else there: it was recreated.
    """
    first, end = reader.start_offsets(DECISIONS)[_LOG], reader.end_offsets(DECISIONS)[_LOG]
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
        f"decision {state.seq} of log {state.log_id!r} was read at {DECISIONS}[0]@{point.last_decision_offset}, and "
        f"does not stand there any more ({problem}): the topic was recreated; {RESTORE_OR_BEGIN_ANEW}"
    )
    raise LogContinuityError(message)


def _decision_at(
    reader: LogReader, clock: Clock, offset: int, name: tuple[str, Seq], kept: tuple[int, int]
) -> tuple[Decision, int]:
    """The decision that begins at an offset, and the offset of its last record; ``name`` is its log and its seq.

    Raises:
        InvalidInputError: ``damaged_snapshot``: no decision of this log begins there.
        LogUnavailableError: Kafka did not answer in time.
        UnsupportedFeatureLevelError: a newer version wrote the decision that begins there.
    """
    place = f"{DECISIONS}[0]@{offset}"
    first, end = kept
    if not first <= offset < end:
        raise InvalidInputError(DAMAGED, f"its last decision stood at {place}, and the log keeps {first} to {end}")
    assembler = DecisionAssembler(None, *name)
    limits = ReadLimits(clock, STALL_LIMIT_MS, READ_LIMIT_MS)
    for records in drain(reader, {_LOG: offset}, limits, {_LOG: end}, _MAX_RECORDS):
        for record in records:
            try:
                decision = assembler.add(record.value, record.key)
            except (InvalidInputError, LogContinuityError) as error:
                if assembler.within_decision and isinstance(error, InvalidInputError):
                    continue  # a foreign record between two parts
                raise InvalidInputError(DAMAGED, f"no decision begins at {place}: {error}") from error
            if decision is not None:
                return decision, record.offset
    raise InvalidInputError(DAMAGED, f"no decision begins at {place}")
