"""Follows the table ``load_reports``: each report counts in ``bundle_load_history`` once, whatever is killed.

How far it is stands in the table's own commits, as Delta's application transactions, beside the rows: of each
partition the next offset, and of each node the latest process. So there is no checkpoint, and nothing to repeat.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from pyspark.sql import SparkSession

from streaming.contracts.loads import BUNDLE_LOAD_HISTORY_TABLE
from streaming.contracts.records import LOAD_REPORTS_TABLE
from streaming.load_history.processes import NodePlace, Process, verdicts
from streaming.load_history.report_heads import FilePart, read_heads
from streaming.load_history.window_sums import Chosen, write_sums
from streaming.storage import StoragePath
from streaming.tables.driver_tables import DriverTable

APP_ID: Final = "controlplane.bundle_load_history"
"""The name of this writer in the commits of its table; under it stands the number of partitions."""

_KNOWN: Final = ("path", "min.partition", "max.partition", "max.offset")
_IN_ORDER: Final = ("partition.day", "modification_time")


class LoadHistoryFollower:
    """One run of it; the only writer of its table.

    Args:
        session: has the executors.
        warehouse_dir: the folder of the tables, which are there.
        window_ms: the length of windows.
    """

    def __init__(self, session: SparkSession, warehouse_dir: StoragePath, window_ms: int) -> None:
        """Open the tables, and see how far the history is."""
        self._session = session
        self._window_ms = window_ms
        self._reports = DriverTable(warehouse_dir, LOAD_REPORTS_TABLE, "")
        self._history = DriverTable(warehouse_dir, BUNDLE_LOAD_HISTORY_TABLE, APP_ID)
        found = (
            (partition, self._history.position(position_name(partition))) for partition in range(self._known_count())
        )
        self._positions = {partition: offset for partition, offset in found if offset is not None}
        self._read: set[str] = set()
        """Present files of which every report is written."""

    def step(self, until_ms: int) -> int:
        """Write the windows that end until a time; returns the number of reports, 0 if there are none.

        In each partition reading ends before the first report of a later window. So a window is written as a whole,
        as long as no report comes late.
        """
        until_ms -= until_ms % self._window_ms
        paths = self._unread_paths()
        if not paths:
            return 0
        heads = read_heads(self._session, self._reports.folder, paths, self._positions, until_ms)
        ends = _ends(heads.parts)
        report_count = self._write(heads.parts, ends, heads.first_offsets)
        unread = {part.path for part in heads.parts if part.last_offset >= ends[part.partition]}
        self._read.update(set(paths) - unread)
        return report_count

    def _write(
        self, parts: Sequence[FilePart], ends: Mapping[int, int], first_offsets: Mapping[Process, int | None]
    ) -> int:
        further = {partition: end for partition, end in ends.items() if end > self._positions.get(partition, 0)}
        if not further:
            return 0
        known = self._known_processes(process.place for process in first_offsets)
        within = {
            process: first if first is not None and first < ends[process.place.partition] else None
            for process, first in first_offsets.items()
        }
        found = verdicts(within, known)
        written = write_sums(
            self._session,
            self._reports.folder,
            list(dict.fromkeys(part.path for part in parts if part.partition in further)),
            Chosen(self._positions, further, found.ends),
            self._history.folder,
            self._window_ms,
        )
        newest = {place: number for place, number in found.newest.items() if known.get(place) != number}
        positions = {
            APP_ID: max(self._known_count(), *(partition + 1 for partition in further)),
            **{position_name(partition): end for partition, end in further.items()},
            **{_process(place): incarnation for place, incarnation in newest.items()},
        }
        self._history.append_files_at(written.files, positions)
        self._positions.update(further)
        return written.report_count

    def _known_count(self) -> int:
        return self._history.written_version or 0

    def _known_processes(self, places: Iterable[NodePlace]) -> dict[NodePlace, int]:
        found = ((place, self._history.position(_process(place))) for place in places)
        return {place: number for place, number in found if number is not None}

    def _unread_paths(self) -> list[str]:
        """The files that may have reports which are not written, in the order of their days and then of their ages."""
        files = self._reports.files()
        present = files["path"].to_pylist()
        self._read &= set(present)
        names = [name for name in _KNOWN if name in files.schema.names]
        rows = files.sort_by([(name, "ascending") for name in _IN_ORDER]).select(names).to_pylist()
        return [row["path"] for row in rows if row["path"] not in self._read and self._may_be_unread(row)]

    def _may_be_unread(self, file: Mapping[str, Any]) -> bool:
        """False if statistics show that every report of the file stands before the position of its partition."""
        first, last, offset = (file.get(name) for name in ("min.partition", "max.partition", "max.offset"))
        if first is None or last is None or offset is None:
            return True
        return any(offset >= self._positions.get(partition, 0) for partition in range(first, last + 1))


def _ends(parts: Iterable[FilePart]) -> dict[int, int]:
    """Of each partition the offset behind the last report that is written: all before the first one that is held."""
    held: dict[int, int] = {}
    last: dict[int, int] = {}
    for part in parts:
        last[part.partition] = max(part.last_offset, last.get(part.partition, part.last_offset))
        if part.held_offset is not None:
            held[part.partition] = min(part.held_offset, held.get(part.partition, part.held_offset))
    return {partition: held.get(partition, offset + 1) for partition, offset in last.items()}


def position_name(partition: int) -> str:
    """The name under which the next offset of a partition stands in the commits of the table."""
    return f"{APP_ID}[{partition}]"


def _process(place: NodePlace) -> str:
    return f"{APP_ID}[{place.partition}][{place.node_id}]"
