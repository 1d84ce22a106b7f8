"""What the tables hold against what the topics hold: each record once, averages to the bit, changes as made at once."""

import shutil
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Final, TypeAlias

from controlplane.adapters.kafka_reader import KafkaLogReader
from controlplane.codec.inputs import decode_input
from controlplane.codec.outputs import decode_candidate
from controlplane.config import CANDIDATES, DECISIONS, HEARTBEATS, INTENTS, LOAD_REPORTS, MEMBERSHIP
from controlplane.core.bundles.load.reported_state import Position
from controlplane.core.bundles.load.resource_usage import ResourceWeights
from controlplane.core.bundles.load.view import Resources
from controlplane.core.bundles.reports import LoadReport
from controlplane.core.membership.inputs import Tick
from controlplane.errors import InvalidInputError
from controlplane.ports.log import RawRecord
from streaming.changes.follower import ChangesFollower
from streaming.contracts.catalog import ALL_TABLES
from streaming.contracts.loads import (
    BROKER_LOAD_TABLE,
    BUNDLE_LOAD_HISTORY_TABLE,
    BUNDLE_LOAD_TABLE,
    SHED_CANDIDATES_TABLE,
    SPLIT_CANDIDATES_TABLE,
)
from streaming.contracts.records import (
    DEAD_LETTERS_TABLE,
    DECISIONS_TABLE,
    LOAD_REPORTS_TABLE,
    TABLE_OF_TOPIC,
    TICKS_TABLE,
)
from streaming.contracts.table import TableContract
from streaming.load_history.follower import APP_ID, position_name
from streaming.records.decision_rows import decision_rows
from streaming.records.decode import RawRow
from streaming.records.tick_rows import PlacedTick, ticks_of
from streaming.tables.created_tables import create_missing
from streaming.tables.stored_table import StoredTable
from streaming.tables.table_writer import TableWriter
from tests.helpers.pipeline_world import EAGER_RULES, PipelineWorld
from tests.helpers.placed_report import PlacedReport
from tests.helpers.plain_load import PlainLoad, bundle_row
from tests.helpers.plain_windows import Added, added_up, plain_windows
from tests.helpers.sources import everything_in
from tests.pipeline_chaos.evaluations import batches_of, plain_candidates, stored_candidates

Place: TypeAlias = tuple[int, int]
_INPUTS: Final = (LOAD_REPORTS, HEARTBEATS, MEMBERSHIP, INTENTS)
_TOLD: Final = 3


def each_once(what: str, wanted: Iterable[object], found: Iterable[object]) -> Iterator[str]:
    """A sentence for what is missing, what is there and should not be, and what is there more than once."""
    expected, counts = set(wanted), Counter(found)
    missing, strange = expected - counts.keys(), counts.keys() - expected
    doubled = {each for each, count in counts.items() if count > 1}
    for word, places in (("missing", missing), ("not expected", strange), ("more than once", doubled)):
        if places:
            first = ", ".join(map(str, sorted(places, key=str)[:_TOLD]))
            yield f"{what}: {len(places)} {word}, {first}"


def same_rows(
    table: TableContract, wanted: Iterable[Mapping[str, Any]], found: Iterable[Mapping[str, Any]]
) -> Iterator[str]:
    """A sentence for rows that differ, and for keys that only one side has."""

    def by_key(rows: Iterable[Mapping[str, Any]]) -> dict[tuple[Any, ...], Mapping[str, Any]]:
        return {tuple(row[name] for name in table.key): row for row in rows}

    found = list(found)
    yield from each_once(table.name, by_key(wanted), (tuple(row[name] for name in table.key) for row in found))
    expected, there = by_key(wanted), by_key(found)
    differing = [key for key in expected.keys() & there.keys() if expected[key] != there[key]]
    if differing:
        key = min(differing, key=str)
        columns = [name for name, value in expected[key].items() if there[key].get(name) != value]
        yield f"{table.name}: {len(differing)} rows differ, {key} in {', '.join(columns)}"


class Verdict:
    """What is in the topics of a cluster, and what the tables should make of it. The topics do not change any more.

    Args:
        world: the cluster and its tables.
        sent: how many records were sent to each topic.
    """

    def __init__(self, world: PipelineWorld, sent: Mapping[str, int]) -> None:
        self._world = world
        self._sent = sent
        self._records = {topic: self._read(topic) for topic in (*_INPUTS, DECISIONS)}
        self._usable: dict[str, list[tuple[RawRecord, object]]] = {}
        self._refused: dict[str, list[RawRecord]] = {}
        for topic in _INPUTS:
            self._usable[topic], self._refused[topic] = [], []
            for record in self._records[topic]:
                try:
                    self._usable[topic].append((record, decode_input(topic, record).payload))
                except InvalidInputError:
                    self._refused[topic].append(record)

    @property
    def counts(self) -> Mapping[str, int]:
        """Records of each topic."""
        return {topic: len(records) for topic, records in self._records.items()}

    def missing_count(self) -> int:
        """How many usable records are in no table yet, by what the tables' commits say: no row is read."""
        wanted = sum(not isinstance(payload, Tick) for topic in _INPUTS for _, payload in self._usable[topic])
        tables = [TABLE_OF_TOPIC[topic] for topic in _INPUTS]
        files = (StoredTable(self._world.tables_dir, table).files(("num_records",)) for table in tables)
        there: int = sum(file["num_records"] for each in files for file in each)
        return wanted - there

    def problems(self) -> list[str]:
        """What is wrong with the tables, as sentences."""
        parts = (
            self._topics,
            self._inputs,
            self._decisions,
            self._changes,
            self._loads,
            self._load_history,
            self._candidates,
        )
        return [problem for part in parts for problem in part()]

    def _read(self, topic: str) -> Sequence[RawRecord]:
        return everything_in(KafkaLogReader(self._world.cluster, self._world.kafka), topic)

    def _rows(self, table: TableContract, columns: Sequence[str] | None = None) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = StoredTable(self._world.tables_dir, table).rows(columns=columns).to_pylist()
        return rows

    def _topics(self) -> Iterator[str]:
        for topic, count in self.counts.items():
            if count != self._sent[topic]:
                yield f"{topic}: {count} records are in the topic, and {self._sent[topic]} were sent"

    def _inputs(self) -> Iterator[str]:
        for topic in _INPUTS:
            kept = self._rows(TABLE_OF_TOPIC[topic], ("partition", "offset"))
            rows = [record for record, payload in self._usable[topic] if not isinstance(payload, Tick)]
            wanted = [(record.partition, record.offset) for record in rows]
            yield from each_once(topic, wanted, ((row["partition"], row["offset"]) for row in kept))
        ticks = [
            PlacedTick(record.partition, record.offset, record.append_time_ms, payload)
            for record, payload in self._usable[HEARTBEATS]
            if isinstance(payload, Tick)
        ]
        yield from each_once("ticks", ticks, (tick for row in self._rows(TICKS_TABLE) for tick in ticks_of(row)))
        letters = self._rows(DEAD_LETTERS_TABLE, ("source_topic", "source_partition", "source_offset"))
        told = {tuple(row.values()) for row in letters}  # a repeated batch tells again
        refused = [(LOAD_REPORTS, record.partition, record.offset) for record in self._refused[LOAD_REPORTS]]
        yield from each_once("dead letters", refused, told)

    def _decisions(self) -> Iterator[str]:
        records = (
            RawRow(each.partition, each.offset, each.append_time_ms, each.key, each.value)
            for each in self._records[DECISIONS]
        )
        rows = [dict(zip(DECISIONS_TABLE.columns, row, strict=True)) for row in decision_rows(records)]
        names = ("seq", "digest", "offset", "events", "append_time_ms")
        wanted = [tuple(row[name] for name in names) for row in rows]
        yield from each_once("decisions", wanted, (tuple(row.values()) for row in self._rows(DECISIONS_TABLE, names)))

    def _changes(self) -> Iterator[str]:
        """Made anew, in one go, from the table of decisions."""
        with tempfile.TemporaryDirectory(prefix="changes-") as temporary:
            anew = Path(temporary)
            shutil.copytree(self._world.tables_dir / DECISIONS_TABLE.name, anew / DECISIONS_TABLE.name)
            create_missing(anew, bucket_count=2)
            follower = ChangesFollower(anew)
            while follower.step():
                pass
            for table in ALL_TABLES:
                if table.name.endswith("_changes") or table.name in ("slots", "bundles", "intent_answers"):
                    wanted = StoredTable(anew, table).rows().to_pylist()
                    yield from same_rows(table, wanted, self._rows(table))

    def _loads(self) -> Iterator[str]:
        plain = PlainLoad()
        plain.fold(self._placed_reports, ResourceWeights())
        columns = [name for name in BUNDLE_LOAD_TABLE.columns if name != "bucket"]
        wanted = [
            dict(zip(BUNDLE_LOAD_TABLE.columns, bundle_row(each), strict=True)) for each in plain.bundles.values()
        ]
        kept = self._rows(BUNDLE_LOAD_TABLE, columns)
        yield from same_rows(
            BUNDLE_LOAD_TABLE,
            ({name: _plain(row[name]) for name in columns} for row in wanted),
            ({name: _plain(row[name]) for name in columns} for row in kept),
        )
        newest = {
            node.node_id: (*node.position, node.weighted_usage, node.bundle_count) for node in plain.nodes.values()
        }
        names = ("node_id", "report_time_ms", "report_partition", "report_offset", "weighted_usage", "bundle_count")
        found = {row["node_id"]: tuple(row.values())[1:] for row in self._rows(BROKER_LOAD_TABLE, names)}
        yield from each_once("broker_load", newest.items(), found.items())

    def _load_history(self) -> Iterator[str]:
        """The reports up to which it says to be written, each once."""
        table = TableWriter(self._world.tables_dir, BUNDLE_LOAD_HISTORY_TABLE, APP_ID)
        rows = table.rows().to_pylist()
        partitions = range(table.written_version or 0)
        ends = {partition: table.position(position_name(partition)) or 0 for partition in partitions}
        reports = self._placed_reports
        written = [each for each in reports if each.position.offset < ends.get(each.position.partition, 0)]
        if reports and not written:
            yield f"{BUNDLE_LOAD_HISTORY_TABLE.name}: none of {len(reports)} reports is written"
        windows = plain_windows(written, rows[0]["window_ms"] if rows else 1)
        wanted = {key: _rounded(window.row()) for key, window in windows.items()}
        found = {key: _rounded(row) for key, row in added_up(rows).items()}
        yield from each_once(BUNDLE_LOAD_HISTORY_TABLE.name, wanted.items(), found.items())

    @cached_property
    def _placed_reports(self) -> Sequence[PlacedReport]:
        return [_placed(record, report) for record, report in self._usable[LOAD_REPORTS]]

    def _candidates(self) -> Iterator[str]:
        """Those that the batches give are in the tables, each once, and in the topic, where one may be again."""
        kept = [*stored_candidates(*(self._rows(table) for table in (SPLIT_CANDIDATES_TABLE, SHED_CANDIDATES_TABLE)))]
        batches = batches_of(self._world.tables_dir / LOAD_REPORTS_TABLE.name)
        yield from each_once("candidates", plain_candidates(self._placed_reports, batches, EAGER_RULES), kept)
        produced = {decode_candidate(record.value or b"").candidate_id for record in self._read(CANDIDATES)}
        yield from each_once("candidates of the topic", (each.candidate_id for each in kept), produced)


def _placed(record: RawRecord, report: object) -> PlacedReport:
    assert isinstance(report, LoadReport)
    place = Position(record.append_time_ms, record.partition, record.offset)
    resources = Resources(*(getattr(report, name) for name in Resources._fields))
    return PlacedReport(place, report.node_id, report.incarnation, resources, report.version, report.bundles)


def _rounded(added: Added) -> tuple[object, ...]:
    """Sums depend on the order of the additions in their last digits."""
    count, sums, *others = added
    return (count, tuple(float(f"{each:.9g}") for each in sums), *others)


def _plain(value: Any) -> Any:  # noqa: ANN401 - of any column
    """A value with tuples for structs and sorted pairs for maps, as Arrow gives them or as the core does."""
    if isinstance(value, Mapping):
        is_struct = all(isinstance(key, str) for key in value)
        return tuple(value.values()) if is_struct else tuple(sorted(value.items()))
    if isinstance(value, list):
        return tuple(sorted(value))
    return value
