"""How fast does the pipeline work off what was reported while it was away, and in how much memory?

    python -m benchmarks.backlog [--bundles 100000] [--per-report 20] [--reports-per-s 1000] [--seconds 3600]
        [--cores 2] [--bootstrap-servers HOST:PORT] [--smallest]

The reports of so many seconds are appended before the pipeline starts. Then it runs as its command starts it, with all
of its streams, until all of them are in its tables. Printed are the multiple of real time, Spark's start included, and
each minute how far it is and the memory of its processes: a pipeline whose memory grows with its backlog shows it.
Baseline: real time, in which the reports were made.
"""

import argparse
import tempfile
import time
from pathlib import Path
from typing import Final

from benchmarks.broker import kafka_servers
from benchmarks.command_line import parsed
from benchmarks.measured_pipeline import Progress, running_pipeline
from benchmarks.reporting_fleet import ReportingFleet
from controlplane.adapters.kafka_admin import apply_topics
from controlplane.bootstrap.topics import topic_specs
from controlplane.config import ClusterConfig

ROOT: Final = Path(__file__).parents[1]
SMALLEST: Final = {"bundles": 20, "per_report": 10, "reports_per_s": 2, "seconds": 4}
_DEADLINE_S: Final = 7_200.0


def main() -> None:
    """Print the multiple of real time."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--bundles", type=int, default=100_000)
    parser.add_argument("--per-report", type=int, default=20)
    parser.add_argument("--reports-per-s", type=int, default=1_000)
    parser.add_argument("--seconds", type=int, default=3_600)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--bootstrap-servers")
    options = parsed(parser, SMALLEST)
    with kafka_servers(options.bootstrap_servers) as servers, tempfile.TemporaryDirectory() as folder:
        cluster = ClusterConfig(f"backlog-{time.time_ns():x}")
        apply_topics(servers, cluster.name, topic_specs(), {}, least_copies=1)
        fleet = ReportingFleet(servers, cluster, options.bundles, options.per_report)
        print(f"appending {options.reports_per_s * options.seconds:,} reports ...", flush=True)
        fleet.report(options.reports_per_s * options.seconds)
        fleet.flush()
        began_s = time.monotonic()
        with running_pipeline(servers, cluster, ROOT, Path(folder), options.cores) as tree:
            Progress(Path(folder) / "delta", tree).wait_for(fleet.sent, _DEADLINE_S, print_progress=True)
            seconds = time.monotonic() - began_s
            greatest = ", ".join(f"{kind} {mib:,.0f}" for kind, mib in sorted(tree.greatest_mib.items()))
    print(f"{fleet.sent:,} reports in {seconds:,.0f} s, {fleet.sent * options.per_report / seconds:,.0f} samples/s")
    print(f"ratio to real time: {options.seconds / seconds:.2f}; greatest MiB: {greatest}")


if __name__ == "__main__":
    main()
