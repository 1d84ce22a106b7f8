"""The snapshots of a cluster, and which of them a controller would begin from."""

from dataclasses import dataclass

from controlplane.core.log.snapshots.catalog import ShelvedSnapshot
from controlplane.errors import InvalidInputError, StopError
from controlplane.inspection.rows import Row, empty_row, when
from controlplane.inspection.source import LogSource
from controlplane.log_reading.recovery import point_of, read_shelf

SNAPSHOT_FIELDS = ("snapshot", "seq", "epoch", "term", "decided_at", "parts", "size_bytes", "code_version", "problem")


@dataclass(frozen=True, slots=True)
class JudgedSnapshot:
    """A snapshot, and why no controller would begin from it; empty if one would."""

    shelved: ShelvedSnapshot
    problem: str


def read_snapshots(source: LogSource) -> list[JudgedSnapshot]:
    """All that the topic holds, newest first, each compared with the log as a controller would do it.

    Raises:
        LogUnavailableError: the log did not answer.
    """
    shelf = read_shelf(source.reader, source.clock)
    return [JudgedSnapshot(each, _problem(source, each)) for each in shelf.newest_first()]


def snapshot_row(judged: JudgedSnapshot) -> Row:
    """What its header says, and its problem."""
    shelved = judged.shelved
    row = empty_row(SNAPSHOT_FIELDS)
    row |= {"snapshot": shelved.snapshot_id, "parts": len(shelved.keys), "problem": judged.problem}
    header = shelved.header
    if header is not None:
        row |= {
            "seq": header.seq,
            "epoch": header.epoch,
            "term": header.term,
            "decided_at": when(header.decided_at_ms),
            "size_bytes": sum(len(part.body) for part in shelved.parts),
            "code_version": header.code_version,
        }
    return row


def _problem(source: LogSource, shelved: ShelvedSnapshot) -> str:
    try:
        point_of(source.reader, source.clock, shelved)
    except InvalidInputError as error:
        return error.detail
    except StopError as error:
        return str(error)
    return ""
