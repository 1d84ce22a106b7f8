"""The snapshots of a cluster, and whether a controller could start from each."""

from dataclasses import dataclass

from controlplane.core.log.snapshots.catalog import StoredSnapshot
from controlplane.errors import InvalidInputError, StopError
from controlplane.inspection.records import Record, empty_record, when
from controlplane.inspection.source import LogSource
from controlplane.topic_reading.start_point import point_of, read_catalog

SNAPSHOT_FIELDS = ("snapshot", "seq", "epoch", "term", "decided_at", "parts", "size_bytes", "code_version", "problem")


@dataclass(frozen=True, slots=True)
class CheckedSnapshot:
    """A snapshot, and why no controller would start from it; empty if one would."""

    stored: StoredSnapshot
    problem: str


def read_snapshots(source: LogSource) -> list[CheckedSnapshot]:
    """All snapshots of the topic, newest first, each compared with the log as a controller would do.

    Raises:
        LogUnavailableError: the log did not answer.
    """
    catalog = read_catalog(source.reader, source.clock)
    return [CheckedSnapshot(each, _problem(source, each)) for each in catalog.newest_first()]


def snapshot_row(checked: CheckedSnapshot) -> Record:
    """The fields of its header, and its problem."""
    stored = checked.stored
    row = empty_record(SNAPSHOT_FIELDS)
    row |= {"snapshot": stored.snapshot_id, "parts": len(stored.keys), "problem": checked.problem}
    header = stored.header
    if header is not None:
        row |= {
            "seq": header.seq,
            "epoch": header.epoch,
            "term": header.term,
            "decided_at": when(header.decided_at_ms),
            "size_bytes": sum(len(part.body) for part in stored.parts),
            "code_version": header.code_version,
        }
    return row


def _problem(source: LogSource, stored: StoredSnapshot) -> str:
    try:
        point_of(source.reader, source.clock, stored)
    except InvalidInputError as error:
        return error.detail
    except StopError as error:
        return str(error)
    return ""
