"""The snapshots of a cluster, as somebody outside finds them."""

from dataclasses import dataclass

from controlplane.adapters.system_clock import SystemClock
from controlplane.core.log.snapshots.catalog import ShelvedSnapshot
from controlplane.errors import InvalidInputError, StopError
from controlplane.log_reading.recovery import point_of, read_shelf
from controlplane.ports import LogReader


@dataclass(frozen=True, slots=True)
class JudgedSnapshot:
    """A snapshot, and why no controller would begin from it; empty if one would."""

    shelved: ShelvedSnapshot
    problem: str


def read_snapshots(reader: LogReader) -> list[JudgedSnapshot]:
    """All that the topic holds, newest first, each compared with the log as a controller would do it.

    Raises:
        LogUnavailableError: the log did not answer.
    """
    shelf = read_shelf(reader, SystemClock())
    return [JudgedSnapshot(each, _problem(reader, each)) for each in shelf.newest_first()]


def _problem(reader: LogReader, shelved: ShelvedSnapshot) -> str:
    try:
        point_of(reader, SystemClock(), shelved)
    except InvalidInputError as error:
        return error.detail
    except StopError as error:
        return str(error)
    return ""
