"""The stream of load reports while a broker's clock is ahead of the driver's: evaluations go on, for every node."""

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, Final

import pytest
from prometheus_client import CollectorRegistry
from pyspark.sql import SparkSession

from controlplane.codec.inputs import encode_input
from controlplane.core.bundles.shedding.threshold import ThresholdSettings
from controlplane.core.bundles.splitting.limits import SplitSettings
from streaming.config import LoadRuleConfig
from streaming.contracts.loads import (
    BROKER_LOAD_TABLE,
    BUNDLE_LOAD_TABLE,
    SHED_CANDIDATES_TABLE,
    SPLIT_CANDIDATES_TABLE,
)
from streaming.jobs import load
from streaming.jobs.load import LoadBatchWriter
from streaming.metrics import PipelineMetrics
from streaming.records.decode import RawRow
from streaming.tables.created_tables import create_missing
from streaming.tables.stored_table import StoredTable
from streaming.tables.table_writer import TableWriter
from tests.helpers.killed import KilledError
from tests.helpers.pipeline_world import PipelineWorld, bundle_load, load_report
from tests.helpers.raw_batches import RAW

MINUTE_MS: Final = 60_000
HOUR_MS: Final = 60 * MINUTE_MS
NOON_MS: Final = 1_700_000_000_000 // HOUR_MS * HOUR_MS
MIB: Final = 1_048_576
RULES: Final = LoadRuleConfig(
    split=SplitSettings(max_message_rate_per_s=100), shed=ThresholdSettings(min_throughput_mib_per_s=1)
)
HOT, WARM, COLD = (f"kv/0x{index}0000000_0x{index + 4}0000000" for index in (0, 4, 8))
TABLES: Final = (BUNDLE_LOAD_TABLE, SPLIT_CANDIDATES_TABLE, SHED_CANDIDATES_TABLE, BROKER_LOAD_TABLE)


class Run:
    """A stream and its driver's clock; a report of each node is in a partition of its own.

    Args:
        session: the session.
        world: a cluster.
        monkeypatch: sets the clock.
    """

    def __init__(self, session: SparkSession, world: PipelineWorld, monkeypatch: pytest.MonkeyPatch) -> None:
        self._session, self._world = session, world
        self.clock_ms = NOON_MS
        monkeypatch.setattr(load, "time", SimpleNamespace(time_ns=lambda: self.clock_ms * 1_000_000))
        self.start()

    def start(self) -> None:
        """A process begins."""
        self.registry = CollectorRegistry()
        self._stream = LoadBatchWriter(self._session, self._world.config(rules=RULES), PipelineMetrics(self.registry))

    def batch(self, number: int, *times_ms: int) -> None:
        """Reports of the busy node and of the idle one, appended at these times."""
        busy = [bundle_load(HOT, 1_000.0, 40.0 * MIB), bundle_load(WARM, 10.0, 20.0 * MIB)]
        reports = [load_report("busy", busy, 90), load_report("idle", [bundle_load(COLD)], 10)]
        rows = [
            tuple(RawRow(place, number, time_ms, report.node_id.encode(), encode_input(report)))
            for place, (report, time_ms) in enumerate(zip(reports, times_ms, strict=False))
        ]
        self._stream.write(self._session.createDataFrame(rows, RAW), "query", number)

    def evaluated(self) -> Sequence[int | None]:
        """Of each node in how many minutes from noon it took part in an evaluation last."""
        rows = StoredTable(self._world.tables_dir, BROKER_LOAD_TABLE).rows().sort_by("node_id").to_pylist()
        times_ms = [row["smoothed_at_ms"] for row in rows]
        return [None if time_ms is None else (time_ms - NOON_MS) // MINUTE_MS for time_ms in times_ms]

    def ahead_ms(self) -> float | None:
        """What the metric says."""
        return self.registry.get_sample_value("controlplane_pipeline_clock_ahead_ms", {"stream": "load_reports"})


@pytest.fixture
def make_run(spark: SparkSession, world: PipelineWorld, monkeypatch: pytest.MonkeyPatch) -> Callable[[], Run]:
    """Starts a stream."""
    return lambda: Run(spark, world, monkeypatch)


def test_evaluations_go_on_while_a_broker_is_ahead(make_run: Callable[[], Run]) -> None:
    """With every node, each minute; and at once when its clock is right again."""
    run = make_run()
    run.batch(0, NOON_MS, NOON_MS + HOUR_MS)
    assert (run.evaluated(), run.ahead_ms()) == ([0, 0], HOUR_MS)
    run.clock_ms += MINUTE_MS
    run.batch(1, NOON_MS + MINUTE_MS, NOON_MS + HOUR_MS + MINUTE_MS)
    assert run.evaluated() == [1, 1]
    run.clock_ms += MINUTE_MS
    run.batch(2, NOON_MS + 2 * MINUTE_MS, NOON_MS + 2 * MINUTE_MS)
    assert (run.evaluated(), run.ahead_ms()) == ([2, 2], 0)


def test_evaluations_go_on_where_the_only_broker_is_ahead(make_run: Callable[[], Run]) -> None:
    """By the driver's clock. What it is ahead by less than an allowance is taken for the time."""
    run = make_run()
    for number, ahead_ms in enumerate((HOUR_MS, 24 * HOUR_MS, MINUTE_MS, HOUR_MS)):
        run.clock_ms = NOON_MS + number * MINUTE_MS
        run.batch(number, run.clock_ms + ahead_ms, run.clock_ms + ahead_ms)
        assert run.evaluated() == [[0, 0], [1, 1], [3, 3], [3, 3]][number]


@pytest.mark.parametrize("commit", range(len(TABLES)), ids=[table.name for table in TABLES])
def test_a_repeated_batch_takes_the_time_that_was_recorded(
    make_run: Callable[[], Run], world: PipelineWorld, monkeypatch: pytest.MonkeyPatch, commit: int
) -> None:
    """Killed behind any commit, it evaluates as it would have done then, whatever the clock says in the meantime."""
    run = make_run()
    run.batch(0, NOON_MS + HOUR_MS, NOON_MS + HOUR_MS)
    wanted = rows_of(world)
    world.tables_dir.rename(world.tables_dir.with_name("before"))
    create_missing(world.tables_dir, bucket_count=2)
    run = make_run()

    def killed(name: str) -> None:
        write = getattr(TableWriter, name)

        def then_killed(self: TableWriter, *args: Any) -> None:  # noqa: ANN401 - passed on
            write(self, *args)
            if self.contract is TABLES[commit]:
                raise KilledError

        faults.setattr(TableWriter, name, then_killed)

    with monkeypatch.context() as faults:
        for name in ("replace_bucket_files", "append", "replace"):
            killed(name)
        with pytest.raises(KilledError):
            run.batch(0, NOON_MS + HOUR_MS, NOON_MS + HOUR_MS)
    run.clock_ms += 7 * MINUTE_MS
    run.start()
    run.batch(0, NOON_MS + HOUR_MS, NOON_MS + HOUR_MS)
    assert all(wanted.values())
    assert rows_of(world) == wanted


def rows_of(world: PipelineWorld) -> dict[str, list[dict[str, Any]]]:
    """The rows of each table in the order of its key."""
    return {
        table.name: StoredTable(world.tables_dir, table).rows().sort_by(table.key[0]).to_pylist() for table in TABLES
    }
