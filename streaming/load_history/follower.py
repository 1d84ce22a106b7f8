"""Follows the table ``load_reports``: each report counts in ``bundle_load_history`` once, whatever is killed.

How far it is stands in the table's own commits, as Delta's application transactions, beside the rows: of each
partition the next offset, and of each node the latest incarnation. So there is no checkpoint, and nothing to repeat.

A report of a window that has not ended is waited for, unless it is dated ahead of the driver's clock by more than an
allowance: a broker's clock is wrong, maybe by years, and what stands behind the report would wait as long. Such a
report goes into a row of its window at once, and those that come later go into further rows. A step that is killed, and
taken again when the clock says something else, may so end at another offset. That changes which rows a window has, and
not their sum: each report is of one window, which its own time names, and counts once by its offset.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from pyspark.sql import SparkSession

from controlplane.core.bundles.load.offset_cutoffs import NodeIncarnation, NodePlace, offset_cutoffs
from streaming.broker_clocks import CLOCK_ALLOWANCE_MS
from streaming.contracts.loads import BUNDLE_LOAD_HISTORY_TABLE
from streaming.contracts.records import LOAD_REPORTS_TABLE
from streaming.load_history.report_heads import FilePart, read_heads, read_held
from streaming.load_history.unread_files import FILE_FACTS, end_of_step_ms, unread_files
from streaming.load_history.window_sums import Chosen, write_sums
from streaming.storage import StoragePath
from streaming.tables.stored_table import StoredTable
from streaming.tables.table_writer import TableWriter

APP_ID: Final = "controlplane.bundle_load_history"
"""The name of this writer in the commits of its table; under it stands the number of partitions."""

_STEP_BYTES: Final = 4_000_000_000
"""About how much of ``load_reports`` a step reads: some four million reports of 20 bundles, within two minutes."""


class LoadHistoryFollower:
    """One run of it; the only writer of its table.

    Args:
        session: has the executors.
        tables_dir: the folder of the tables, which are there.
        window_ms: the length of windows.
    """

    def __init__(self, session: SparkSession, tables_dir: StoragePath, window_ms: int) -> None:
        """Open the tables, and see how far the history is."""
        self._session = session
        self._window_ms = window_ms
        self._reports = StoredTable(tables_dir, LOAD_REPORTS_TABLE)
        self._history = TableWriter(tables_dir, BUNDLE_LOAD_HISTORY_TABLE, APP_ID)
        names = {position_name(partition): partition for partition in range(self._known_count())}
        self._positions = {names[name]: offset for name, offset in self._history.positions(names).items()}
        self.has_more = False
        """Whether the last step left windows that had ended."""
        self._ended_ms = 0
        """The end of the windows that the last step was to write."""
        self._read: frozenset[str] = frozenset()
        """Present files of which every report is written."""
        self._later: dict[str, list[FilePart]] = {}
        """What there is in files that were left to later steps."""

    def step(self, until_ms: int) -> int:
        """Write windows that end until a time, the first ones if there is much; returns the number of reports.

        It is 0 if there are none; :attr:`has_more` says whether there are more. In each partition reading ends before
        the first report of a later window, also where that stands in a file which is left to later steps. So a window
        is written as a whole, as long as no report comes late, and none is dated ahead.

        Args:
            until_ms: a time by the driver's clock; a report that is dated later by more than
                :data:`streaming.broker_clocks.CLOCK_ALLOWANCE_MS` is dated ahead.
        """
        ahead_ms = until_ms + CLOCK_ALLOWANCE_MS
        until_ms -= until_ms % self._window_ms
        report_count = self._step(until_ms, ahead_ms)
        # Nothing is written where each partition goes on with a report of a later window: a broker's clock was ahead.
        while not report_count and self._ended_ms < until_ms:
            report_count = self._step(until_ms, ahead_ms)
        self.has_more = self._ended_ms < until_ms
        return report_count

    def _step(self, until_ms: int, ahead_ms: int) -> int:
        present = self._reports.files(FILE_FACTS)
        self._read &= frozenset(file["path"] for file in present)
        files = unread_files(present, self._read, self._positions)
        self._ended_ms = end_of_step_ms(files, self._window_ms, self._ended_ms, until_ms, _STEP_BYTES)
        held_ms = range(self._ended_ms, ahead_ms)
        paths = [file.path for file in files if file.begins_ms not in held_ms]
        if not paths:
            return 0
        later = [file.path for file in files if file.begins_ms in held_ms]
        heads = read_heads(self._session, self._reports.folder, paths, self._positions, held_ms)
        parts = [*heads.parts, *self._held(later)]
        ends = _ends(parts)
        report_count = self._write(parts, ends, heads.first_offsets)
        unread = {part.path for part in parts if part.last_offset >= ends[part.partition]}
        self._read |= frozenset([*paths, *later]) - unread
        return report_count

    def _held(self, later: Sequence[str]) -> list[FilePart]:
        """What there is in files of later windows. Each of them is looked into once: no step passes what it holds."""
        new = [path for path in later if path not in self._later]
        found = read_held(self._session, self._reports.folder, new, self._positions)
        self._later = {path: self._later.get(path, []) for path in later}
        for part in found:
            self._later[part.path].append(part)
        return [part for parts in self._later.values() for part in parts]

    def _write(
        self, parts: Sequence[FilePart], ends: Mapping[int, int], first_offsets: Mapping[NodeIncarnation, int | None]
    ) -> int:
        written_parts = [part for part in parts if part.first_offset < ends[part.partition]]
        further = {part.partition: ends[part.partition] for part in written_parts}
        if not further:
            return 0
        known = self._known_incarnations(each.place for each in first_offsets)
        within = {
            each: first if first is not None and first < ends[each.place.partition] else None
            for each, first in first_offsets.items()
        }
        found = offset_cutoffs(within, known)
        written = write_sums(
            self._session,
            self._reports.folder,
            list(dict.fromkeys(part.path for part in written_parts)),
            Chosen(self._positions, further, found.ends),
            self._history.folder,
            self._window_ms,
        )
        newest = {place: number for place, number in found.newest.items() if known.get(place) != number}
        positions = {
            APP_ID: max(self._known_count(), *(partition + 1 for partition in further)),
            **{position_name(partition): end for partition, end in further.items()},
            **{_incarnation_name(place): incarnation for place, incarnation in newest.items()},
        }
        self._history.append_files_at(written.files, positions)
        self._positions.update(further)
        return written.report_count

    def _known_count(self) -> int:
        return self._history.written_version or 0

    def _known_incarnations(self, places: Iterable[NodePlace]) -> dict[NodePlace, int]:
        names = {_incarnation_name(place): place for place in places}
        return {names[name]: number for name, number in self._history.positions(names).items()}


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


def _incarnation_name(place: NodePlace) -> str:
    return f"{APP_ID}[{place.partition}][{place.node_id}]"
