"""How many bundle samples a second does the pipeline fold, and what does that cost?

    python -m benchmarks.pipeline [--bundles 10000 20000 100000] [--samples 600000] [--per-report 100]
        [--cores 2] [--baseline CHECKOUT] [--bootstrap-servers HOST:PORT] [--smallest]

The pipeline runs as its command starts it, with all of its streams. First every bundle is reported twice, so that
Spark's code is compiled and every bundle has a row. Then the samples are appended at once, and the time runs from there
until all reports are in their history and the nodes' rows are written, which a batch does last. Processor seconds are
those of the JVM, of Python in the driver, and of Spark's Python workers.
Baseline: the pipeline of another checkout, one after the other in the same run, for example of the commit before.
Target: 60,000 samples/s on two cores, at least 1.5 times the baseline's at 100,000 bundles.
"""

import argparse
import itertools
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

import psutil
from confluent_kafka import Producer

from benchmarks.broker import kafka_servers
from benchmarks.command_line import parsed
from controlplane.adapters.kafka_admin import apply_topics
from controlplane.bootstrap.topics import topic_specs
from controlplane.codec.inputs import encode_input
from controlplane.config import LOAD_REPORTS, ClusterConfig
from controlplane.core.bundles.reports import BundleLoad, LoadReport, ResourceUsage

ROOT: Final = Path(__file__).parents[1]
SMALLEST: Final = {"bundles": [20], "samples": 40, "per_report": 10}
_DEADLINE_S: Final = 1_800.0
_UNKNOWN: Final = ResourceUsage(-1.0, -1.0)


class Measured(NamedTuple):
    """One run.

    Attributes:
        seconds: until every sample was folded.
        processor_s: by the kind of process.
        resident_mib: the greatest memory of all of them together, in MiB.
    """

    seconds: float
    processor_s: dict[str, float]
    resident_mib: float

    def cost(self) -> str:
        """In words."""
        spent = ", ".join(f"{kind} {seconds:.1f}" for kind, seconds in sorted(self.processor_s.items()))
        return f"{spent}; {self.resident_mib:,.0f} MiB"


class Fleet:
    """Nodes that each report the same bundles, in turns.

    Args:
        servers: of Kafka.
        cluster: whose topics.
        bundle_count: of all nodes.
        per_report: bundles of one node.
    """

    def __init__(self, servers: str, cluster: ClusterConfig, bundle_count: int, per_report: int) -> None:
        self._topic = cluster.topic(LOAD_REPORTS)
        self._producer = Producer({"bootstrap.servers": servers, "linger.ms": 50, "compression.type": "lz4"})
        ids = [f"shop/orders-{number // 100}/{number:08x}" for number in range(bundle_count)]
        self._nodes = [ids[start : start + per_report] for start in range(0, bundle_count, per_report)]
        self._turns = itertools.cycle(enumerate(self._nodes))
        self._source = random.Random(1)
        self.sent = 0

    @property
    def node_count(self) -> int:
        """How many reports are one of each node."""
        return len(self._nodes)

    def report(self, count: int) -> None:
        """Append so many reports."""
        for number, bundle_ids in itertools.islice(self._turns, count):
            value = encode_input(self._report(f"node-{number}", bundle_ids))
            self._producer.produce(self._topic, value=value, key=f"node-{number}".encode())
            self._producer.poll(0)
        self._producer.flush()
        self.sent += count

    def _report(self, node_id: str, bundle_ids: Iterable[str]) -> LoadReport:
        draw = self._source.random
        bundles = tuple(
            BundleLoad(each, 400 * draw(), 400 * draw(), 2e6 * draw(), 2e6 * draw(), 5, 10, 10, 0)
            for each in bundle_ids
        )
        usage = ResourceUsage(100 * draw(), 100.0)
        return LoadReport(node_id, 1, 1, usage, *(_UNKNOWN,) * 2, usage, usage, (), "1", 0, bundles, ())


def main() -> None:
    """Print throughput and cost for each number of bundles, of this checkout and of the baseline."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--bundles", type=int, nargs="+", default=[10_000, 20_000, 100_000])
    parser.add_argument("--samples", type=int, default=600_000)
    parser.add_argument("--per-report", type=int, default=100)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--baseline", type=Path, metavar="CHECKOUT", help="another checkout to be measured beside")
    parser.add_argument("--bootstrap-servers")
    options = parsed(parser, SMALLEST)
    checkouts = {"this": ROOT} | ({"baseline": options.baseline.resolve()} if options.baseline else {})
    with kafka_servers(options.bootstrap_servers) as servers:
        print(f"{'bundles':>9} {'checkout':10} {'samples/s':>10}   processor seconds")
        for bundle_count in options.bundles:
            rates = {}
            for name, checkout in checkouts.items():
                made = _measure(servers, checkout, bundle_count, options)
                rates[name] = options.samples / made.seconds
                spent = ", ".join(f"{kind} {seconds:.1f}" for kind, seconds in sorted(made.processor_s.items()))
                print(
                    f"{bundle_count:>9,} {name:10} {rates[name]:>10,.0f}   {spent}; {made.resident_mib:,.0f} MiB",
                    flush=True,
                )
            if len(rates) > 1:
                print(f"{bundle_count:>9,} ratio this / baseline: {rates['this'] / rates['baseline']:.2f}", flush=True)


def _measure(servers: str, checkout: Path, bundle_count: int, options: argparse.Namespace) -> Measured:
    cluster = ClusterConfig(f"pipeline-{time.time_ns():x}")
    apply_topics(servers, cluster.name, topic_specs(), {}, least_copies=1)
    fleet = Fleet(servers, cluster, bundle_count, options.per_report)
    with (
        tempfile.TemporaryDirectory() as folder,
        _pipeline(servers, cluster, checkout, Path(folder) / "delta", options.cores) as tree,
    ):
        tables = Path(folder) / "delta"
        for _ in range(2):
            fleet.report(fleet.node_count)
            _wait_until_folded(tables, fleet.sent, tree)
        spent_before = tree.spent()
        fleet.report(options.samples // options.per_report)
        began_s = time.monotonic()
        _wait_until_folded(tables, fleet.sent, tree)
        seconds = time.monotonic() - began_s
        spent = tree.spent()
    return Measured(seconds, {kind: spent[kind] - spent_before.get(kind, 0.0) for kind in spent}, tree.greatest_mib)


class ProcessTree:
    """The processes of a pipeline, with what they have spent; also of those that have ended since they were seen."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self._process = process
        self._seen: dict[int, tuple[str, float]] = {}
        self.greatest_mib = 0.0

    def look(self) -> None:
        """Note what each process has spent until now.

        Raises:
            RuntimeError: the pipeline has ended.
        """
        if self._process.poll() is not None:
            raise RuntimeError(f"the pipeline has ended with status {self._process.returncode}: its words are above")
        root = psutil.Process(self._process.pid)
        resident = 0
        for each in (root, *root.children(recursive=True)):
            try:
                words, times = each.cmdline(), each.cpu_times()
                resident += each.memory_info().rss
            except psutil.Error:
                continue
            kind = "jvm" if "java" in words[0] else "workers" if "pyspark.daemon" in words else "driver"
            self._seen[each.pid] = kind, times.user + times.system
        self.greatest_mib = max(self.greatest_mib, resident / (1 << 20))

    def spent(self) -> dict[str, float]:
        """Processor seconds until now by the kind of process."""
        self.look()
        total: dict[str, float] = {}
        for kind, seconds in self._seen.values():
            total[kind] = total.get(kind, 0.0) + seconds
        return total


@contextmanager
def _pipeline(servers: str, cluster: ClusterConfig, checkout: Path, tables: Path, cores: int) -> Iterator[ProcessTree]:
    command = [
        *(sys.executable, "-m", "controlplane.cli", "--cluster", cluster.name, "--bootstrap-servers", servers),
        *("pipeline", "run", "--tables-dir", str(tables), "--cores", str(cores), "--memory-mib", "2048"),
        *("--trigger-interval-ms", "1000"),
    ]
    environment = os.environ | {"PYTHONPATH": str(checkout)}
    process = subprocess.Popen(
        command, cwd=checkout, env=environment, stdout=subprocess.DEVNULL, start_new_session=True
    )
    try:
        yield ProcessTree(process)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _wait_until_folded(tables: Path, report_count: int, tree: ProcessTree) -> None:
    """Wait until the history has every report, and the nodes' rows were written after that."""
    end_s = time.monotonic() + _DEADLINE_S
    while _rows_added(tables / "load_reports") < report_count or not _is_newer(
        tables / "broker_load", tables / "load_reports"
    ):
        if time.monotonic() > end_s:
            raise TimeoutError(f"{report_count} reports were not folded within {_DEADLINE_S:.0f} s")
        tree.look()
        time.sleep(0.1)


def _rows_added(table: Path) -> int:
    """How many rows a history table was given, by its log."""
    lines = (line for entry in _commits(table) for line in entry.read_text(encoding="utf-8").splitlines())
    adds = (action["add"] for action in map(json.loads, lines) if "add" in action)
    return sum(json.loads(add["stats"])["numRecords"] for add in adds)


def _is_newer(table: Path, other: Path) -> bool:
    newest = [max((entry.stat().st_mtime for entry in _commits(each)), default=0.0) for each in (table, other)]
    return newest[0] > newest[1]


def _commits(table: Path) -> list[Path]:
    return list((table / "_delta_log").glob("*.json"))


if __name__ == "__main__":
    main()
