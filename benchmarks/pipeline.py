"""How many bundle samples a second does the pipeline fold, and what does that cost?

    python -m benchmarks.pipeline [--bundles 10000 20000 100000] [--samples 600000] [--per-report 100]
        [--cores 2] [--baseline CHECKOUT] [--bootstrap-servers HOST:PORT] [--smallest]

The pipeline runs as its command starts it, with all of its streams. First it is warmed up with the same number of
samples, so that Spark's code is compiled and every bundle has a row. Then the samples are appended as fast as Kafka
takes them, and the time runs from there until all reports are in their history and the nodes' rows are written, which a
batch does last. Processor seconds are those of the JVM, of Python in the driver, and of Spark's Python workers.
Baseline: the pipeline of another checkout, one after the other in the same run, for example of the commit before.
Target: 60,000 samples/s on two cores, at least 1.5 times the baseline's at 100,000 bundles.
"""

import argparse
import tempfile
import time
from pathlib import Path
from typing import Final, NamedTuple

from benchmarks.broker import kafka_servers
from benchmarks.command_line import parsed
from benchmarks.measured_pipeline import ProcessTree, TableLog, running_pipeline
from benchmarks.reporting_fleet import ReportingFleet
from controlplane.adapters.kafka_admin import apply_topics
from controlplane.bootstrap.topics import topic_specs
from controlplane.config import ClusterConfig

ROOT: Final = Path(__file__).parents[1]
SMALLEST: Final = {"bundles": [20], "samples": 40, "per_report": 10}
_DEADLINE_S: Final = 1_800.0


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


class Progress:
    """How far the tables of a pipeline are.

    Args:
        tables: their folder.
        tree: the pipeline, which is looked at while its tables are waited for.
    """

    def __init__(self, tables: Path, tree: ProcessTree) -> None:
        self._reports, self._nodes = TableLog(tables / "load_reports"), TableLog(tables / "broker_load")
        self._tree = tree
        self._report_count = 0
        self._history_batch = self._nodes_batch = -1

    def wait_for(self, report_count: int) -> None:
        """Wait until the history has so many reports, and the nodes' rows are those after the last of them."""
        end_s = time.monotonic() + _DEADLINE_S
        while self._report_count < report_count or self._nodes_batch < self._history_batch:
            if time.monotonic() > end_s:
                raise TimeoutError(f"{report_count} reports were not folded within {_DEADLINE_S:.0f} s")
            self._tree.look()
            time.sleep(0.1)
            for commit in self._reports.new_commits():
                self._report_count += commit.row_count
                self._history_batch = max(self._history_batch, commit.batch_id)
            self._nodes_batch = max([self._nodes_batch, *(commit.batch_id for commit in self._nodes.new_commits())])


def main() -> None:
    """Print throughput and cost for each number of bundles, of this checkout and of the baseline."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--bundles", type=int, nargs="+", default=[10_000, 20_000, 100_000])
    parser.add_argument("--samples", type=int, default=600_000)
    parser.add_argument("--per-report", type=int, default=100)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--warm-rounds", type=int, default=2)
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
                print(f"{bundle_count:>9,} {name:10} {rates[name]:>10,.0f}   {made.cost()}", flush=True)
            if len(rates) > 1:
                print(f"{bundle_count:>9,} ratio this / baseline: {rates['this'] / rates['baseline']:.2f}", flush=True)


def _measure(servers: str, checkout: Path, bundle_count: int, options: argparse.Namespace) -> Measured:
    cluster = ClusterConfig(f"pipeline-{time.time_ns():x}")
    apply_topics(servers, cluster.name, topic_specs(), {}, least_copies=1)
    fleet = ReportingFleet(servers, cluster, bundle_count, options.per_report)
    report_count = options.samples // options.per_report
    with (
        tempfile.TemporaryDirectory() as folder,
        running_pipeline(servers, cluster, checkout, Path(folder), options.cores) as tree,
    ):
        progress = Progress(Path(folder) / "delta", tree)
        for count in (fleet.node_count, *[report_count] * options.warm_rounds):
            fleet.report(count)
            fleet.flush()
            progress.wait_for(fleet.sent)
        spent_before = tree.spent()
        began_s = time.monotonic()
        fleet.report(report_count)
        fleet.flush()
        progress.wait_for(fleet.sent)
        seconds = time.monotonic() - began_s
        spent = tree.spent()
    return Measured(seconds, {kind: spent[kind] - spent_before.get(kind, 0.0) for kind in spent}, tree.greatest_mib)


if __name__ == "__main__":
    main()
