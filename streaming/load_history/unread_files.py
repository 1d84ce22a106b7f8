"""Files of ``load_reports`` with reports that are not written yet, and how many of them a step takes."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Final, NamedTuple

from streaming.contracts.days import start_of_day_ms

FILE_FACTS: Final = (
    "path",
    "size_bytes",
    "partition.day",
    "min.append_time_ms",
    "min.partition",
    "max.partition",
    "max.offset",
)
"""What is to be known of files; statistics may be missing."""


class UnreadFile(NamedTuple):
    """A file that may have reports which are not written.

    Attributes:
        begins_ms: none of its reports was appended before: statistics tell it, or at least its day does.
        path: its place below the table's folder.
        size_bytes: its size.
    """

    begins_ms: int
    path: str
    size_bytes: int


def unread_files(
    present: Iterable[Mapping[str, Any]], read: frozenset[str], positions: Mapping[int, int]
) -> Sequence[UnreadFile]:
    """The files that may have reports which are not written, in the order in which they begin.

    Args:
        present: the table's files, with :data:`FILE_FACTS`.
        read: the paths of those of which every report is known to be written.
        positions: of each partition the offset before which all reports are written.
    """
    return sorted(
        UnreadFile(_begins_ms(file), file["path"], file["size_bytes"])
        for file in present
        if file["path"] not in read and _may_be_unread(file, positions)
    )


def _begins_ms(file: Mapping[str, Any]) -> int:
    told = file.get("min.append_time_ms")
    return start_of_day_ms(file["partition.day"]) if told is None else int(told)


def _may_be_unread(file: Mapping[str, Any], positions: Mapping[int, int]) -> bool:
    """False if statistics show that every report of the file stands before the position of its partition."""
    first, last, offset = (file.get(name) for name in ("min.partition", "max.partition", "max.offset"))
    if first is None or last is None or offset is None:
        return True
    return any(offset >= positions.get(partition, 0) for partition in range(first, last + 1))


def end_of_step_ms(files: Iterable[UnreadFile], window_ms: int, ended_ms: int, until_ms: int, limit_bytes: int) -> int:
    """The end of the windows that a step writes: a time before which files of about so many bytes begin.

    Files that were joined may reach over many windows, and many of them over the same ones. They are read for the first
    of these windows in any case, so for as many more of them as cost at most as much again.

    Args:
        files: in the order in which they begin.
        window_ms: the length of windows.
        ended_ms: where the step before ended; this one ends later, if there is anything later.
        until_ms: where it ends at the latest.
        limit_bytes: how much a step reads if its first window is not half of that.
    """
    taken_bytes = 0
    for start_ms, size_bytes in _by_window(files, window_ms, ended_ms):
        if not taken_bytes:
            limit_bytes = max(limit_bytes, 2 * size_bytes)
        elif taken_bytes + size_bytes > limit_bytes:
            return min(start_ms, until_ms)
        taken_bytes += size_bytes
    return until_ms


def _by_window(files: Iterable[UnreadFile], window_ms: int, ended_ms: int) -> Iterator[tuple[int, int]]:
    """Where windows start in which files begin, or go on, and how large these files are."""
    for start_ms, of_window in groupby(files, key=lambda file: max(file.begins_ms // window_ms * window_ms, ended_ms)):
        yield start_ms, sum(file.size_bytes for file in of_window)
