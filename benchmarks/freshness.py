"""How long after its record was appended can a row be queried?

    python -m benchmarks.freshness [--bundles 100000] [--per-report 20] [--reports-per-s 1000] [--seconds 1800]
        [--cores 2] [--bootstrap-servers HOST:PORT] [--smallest]

The pipeline runs as its command starts it, with all of its streams, and is warmed up with one report of each node. Then
the nodes report at a steady rate. A report can be queried in a table once the version is committed that has its batch:
the checkpoint says at which offsets a batch ends. Printed are the delays of all reports for each table, of the first
and of the second half of the time, since a pipeline that falls behind shows in their difference, and each minute the
memory of its processes and the files of its tables, which are maintained every five minutes.
Target: 99 of 100 reports within 10 s in bundle_load and broker_load, within 60 s in load_reports.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np
from confluent_kafka import Message

from benchmarks.broker import kafka_servers
from benchmarks.command_line import parsed
from benchmarks.measured_pipeline import ProcessTree, Progress, TableLog, running_pipeline
from benchmarks.reporting_fleet import ReportingFleet
from controlplane.adapters.kafka_admin import apply_topics
from controlplane.bootstrap.topics import topic_specs
from controlplane.config import ClusterConfig

ROOT: Final = Path(__file__).parents[1]
SMALLEST: Final = {"bundles": 20, "per_report": 10, "reports_per_s": 2, "seconds": 4}
TABLES: Final = ("load_reports", "bundle_load", "broker_load")
_TURN_S: Final = 0.25
_MAINTENANCE: Final = ("--maintenance-interval-ms", "300000")
_PRINT_EVERY_S: Final = 60.0


class TableDelays:
    """The delays of the reports in one table.

    Args:
        tables: the folder of the tables.
        name: of the table.
    """

    def __init__(self, tables: Path, name: str) -> None:
        self._log = TableLog(tables / name)
        self._offsets = tables / "_checkpoints" / "load_reports" / "offsets"
        self._waiting: dict[int, list[tuple[int, int]]] = {}
        self._arrivals: list[tuple[int, float]] = []
        self._ends: dict[int, tuple[float, int]] = {}

    def appended(self, partition: int, offset: int, append_time_ms: int) -> None:
        """A report is in Kafka from now on."""
        self._waiting.setdefault(partition, []).append((offset, append_time_ms))

    def look(self) -> None:
        """Note which reports can be queried by now."""
        for commit in self._log.new_commits():
            if commit.batch_id < 0:
                continue
            lines = (self._offsets / str(commit.batch_id)).read_text(encoding="utf-8").splitlines()
            (ends,) = json.loads(lines[2]).values()
            for partition, end in ends.items():
                waiting = self._waiting.get(int(partition), [])
                there = [each for each in waiting if each[0] < end]
                self._arrivals += [(time_ms, commit.committed_s - time_ms / 1_000) for _, time_ms in there]
                self._waiting[int(partition)] = [each for each in waiting if each[0] >= end]

    @property
    def waiting_count(self) -> int:
        """How many reports cannot be queried yet."""
        return sum(map(len, self._waiting.values()))

    def halves(self) -> Sequence[np.ndarray]:
        """The delays, in seconds, of the reports of the first and of the second half of the time."""
        times, delays = (np.array(column) for column in zip(*self._arrivals, strict=True))
        middle = (times.min() + times.max()) / 2
        return delays[times <= middle], delays[times > middle]


def main() -> None:
    """Print the delays."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--bundles", type=int, default=100_000)
    parser.add_argument("--per-report", type=int, default=20)
    parser.add_argument("--reports-per-s", type=int, default=1_000)
    parser.add_argument("--seconds", type=int, default=1_800)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--bootstrap-servers")
    options = parsed(parser, SMALLEST)
    with kafka_servers(options.bootstrap_servers) as servers:
        cluster = ClusterConfig(f"freshness-{time.time_ns():x}")
        apply_topics(servers, cluster.name, topic_specs(), {}, least_copies=1)
        fleet = ReportingFleet(servers, cluster, options.bundles, options.per_report)
        with (
            tempfile.TemporaryDirectory() as folder,
            running_pipeline(servers, cluster, ROOT, Path(folder), options.cores, words=_MAINTENANCE) as tree,
        ):
            tables = Path(folder) / "delta"
            print("warming up ...", flush=True)
            fleet.report(fleet.node_count)
            fleet.flush()
            Progress(tables, tree).wait_for(fleet.sent)
            delays = {name: TableDelays(tables, name) for name in TABLES}
            for each in delays.values():
                each.look()
            _report_steadily(fleet, list(delays.values()), tree, tables, options)
    print(f"{'table':12} {'half':7} {'reports':>10} {'p50 s':>7} {'p99 s':>7} {'max s':>7}")
    for name, table_delays in delays.items():
        for half, seconds in zip(("first", "second"), table_delays.halves(), strict=True):
            figures = " ".join(f"{np.quantile(seconds, share):7.1f}" for share in (0.5, 0.99, 1.0))
            print(f"{name:12} {half:7} {len(seconds):>10,} {figures}")


def _report_steadily(
    fleet: ReportingFleet, delays: Sequence[TableDelays], tree: ProcessTree, tables: Path, options: argparse.Namespace
) -> None:
    def on_append(message: Message) -> None:
        partition, offset = message.partition(), message.offset()
        if partition is None or offset is None:
            raise RuntimeError("the broker has not said where it appended a report")
        for each in delays:
            each.appended(partition, offset, message.timestamp()[1])

    began_s = printed_s = time.monotonic()
    sent, total = 0, options.reports_per_s * options.seconds
    while sent < total or any(each.waiting_count for each in delays):
        now_s = time.monotonic()
        due = min(total, int((now_s - began_s) * options.reports_per_s))
        fleet.report(due - sent, on_append)
        sent = due
        if sent == total:
            fleet.flush()
        for each in delays:
            each.look()
        if now_s - printed_s >= _PRINT_EVERY_S:
            printed_s = now_s
            _print_state(now_s - began_s, tree, tables, delays[-1].waiting_count)
        time.sleep(_TURN_S)


def _print_state(seconds: float, tree: ProcessTree, tables: Path, waiting_count: int) -> None:
    spent = tree.spent()
    memory = ", ".join(f"{kind} {mib:,.0f}" for kind, mib in sorted(tree.resident_mib.items()))
    processor = ", ".join(f"{kind} {each:.0f}" for kind, each in sorted(spent.items()))
    files = sum(1 for _ in tables.rglob("*.parquet"))
    print(f"{seconds:6.0f} s: MiB {memory}; processor s {processor}; {files} files; {waiting_count} wait", flush=True)


if __name__ == "__main__":
    main()
