"""How many bundle samples a second does the pipeline fold, and what does that cost?

    python -m benchmarks.pipeline [--bundles 10000 20000 100000] [--samples 600000] [--per-report 100]
        [--cores 2] [--warm-rounds 2] [--standalone] [--baseline CHECKOUT] [--bootstrap-servers HOST:PORT] [--smallest]

The pipeline runs as its command starts it, with all of its streams. First it is warmed up with a report of each node,
so that every bundle has a row, and with ``--warm-rounds`` times the number of samples, so that Spark's code is
compiled. Then the samples are appended as fast as Kafka takes them, and the time runs from there until all reports are
in their history and the nodes' rows are written, which a batch does last. Processor seconds are those of the JVM, of
Python in the driver, and of Spark's Python workers. Baseline: the pipeline of another checkout, one after the other in
the same run, for example of the commit before. With ``--standalone`` executors are processes of a cluster of their own,
so that the driver's cost is seen by itself.
Target: 60,000 samples/s on two cores, at least 1.5 times the baseline's at 100,000 bundles; on the cluster the driver's
processor seconds and memory with ten times the bundles at most 1.2 times as many.
"""

import argparse
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from benchmarks.broker import kafka_servers
from benchmarks.command_line import parsed
from benchmarks.measured_pipeline import Progress, running_pipeline
from benchmarks.reporting_fleet import ReportingFleet
from controlplane.adapters.kafka_admin import apply_topics
from controlplane.bootstrap.topics import topic_specs
from controlplane.config import ClusterConfig
from tests.helpers.standalone_spark import StandaloneSpark

ROOT: Final = Path(__file__).parents[1]
SMALLEST: Final = {"bundles": [20], "samples": 40, "per_report": 10}


class Measured(NamedTuple):
    """One run.

    Attributes:
        seconds: until every sample was folded.
        processor_s: by the kind of process.
        greatest_mib: the greatest memory of each kind, in MiB.
    """

    seconds: float
    processor_s: dict[str, float]
    greatest_mib: dict[str, float]

    def cost(self) -> str:
        """In words."""
        kinds = sorted(self.processor_s)
        return ", ".join(f"{kind} {self.processor_s[kind]:.1f} s {self.greatest_mib[kind]:,.0f} MiB" for kind in kinds)

    def cost_of_driver(self) -> tuple[float, float]:
        """Processor seconds and MiB of the driver: its Python and its JVM."""
        processor_s, mib = (
            sum(figures.get(kind, 0.0) for kind in ("driver", "jvm"))
            for figures in (self.processor_s, self.greatest_mib)
        )
        return processor_s, mib


def main() -> None:
    """Print throughput and cost for each number of bundles, of this checkout and of the baseline."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--bundles", type=int, nargs="+", default=[10_000, 20_000, 100_000])
    parser.add_argument("--samples", type=int, default=600_000)
    parser.add_argument("--per-report", type=int, default=100)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--warm-rounds", type=int, default=2)
    parser.add_argument("--baseline", type=Path, metavar="CHECKOUT", help="another checkout to be measured beside")
    parser.add_argument("--standalone", action="store_true", help="on a standalone cluster of as many workers as cores")
    parser.add_argument("--bootstrap-servers")
    options = parsed(parser, SMALLEST)
    checkouts = {"this": ROOT} | ({"baseline": options.baseline.resolve()} if options.baseline else {})
    with kafka_servers(options.bootstrap_servers) as servers, _spark(options) as spark:
        print(f"{'bundles':>9} {'checkout':10} {'samples/s':>10}   processor seconds and greatest memory")
        of_driver = []
        for bundle_count in options.bundles:
            rates = {}
            for name, checkout in checkouts.items():
                made = _measure(servers, checkout, bundle_count, options, spark)
                rates[name] = options.samples / made.seconds
                print(f"{bundle_count:>9,} {name:10} {rates[name]:>10,.0f}   {made.cost()}", flush=True)
                of_driver += [made.cost_of_driver()] if name == "this" else []
            if len(rates) > 1:
                print(f"{bundle_count:>9,} ratio this / baseline: {rates['this'] / rates['baseline']:.2f}", flush=True)
    if len(of_driver) > 1:
        processor, memory = (last / first for last, first in zip(of_driver[-1], of_driver[0], strict=True))
        print(f"ratio last / first, driver's processor seconds: {processor:.2f}, its memory: {memory:.2f}")


@contextmanager
def _spark(options: argparse.Namespace) -> Iterator[StandaloneSpark | None]:
    if not options.standalone:
        yield None
        return
    with tempfile.TemporaryDirectory() as folder, StandaloneSpark(Path(folder), options.cores) as spark:
        yield spark


def _measure(
    servers: str, checkout: Path, bundle_count: int, options: argparse.Namespace, spark: StandaloneSpark | None
) -> Measured:
    cluster = ClusterConfig(f"pipeline-{time.time_ns():x}")
    apply_topics(servers, cluster.name, topic_specs(), {}, least_copies=1)
    fleet = ReportingFleet(servers, cluster, bundle_count, options.per_report)
    report_count = options.samples // options.per_report
    with (
        tempfile.TemporaryDirectory() as folder,
        running_pipeline(servers, cluster, checkout, Path(folder), options.cores, spark=spark) as tree,
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
