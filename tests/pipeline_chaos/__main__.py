"""``python -m tests.pipeline_chaos --minutes 20 --seed 1``: kills, then a report that ends with a verdict."""

import argparse
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from controlplane.embedded.jars import spark_jars
from controlplane.embedded.kafka import EmbeddedKafka
from tests.helpers.pipeline_world import PipelineWorld
from tests.helpers.standalone_spark import StandaloneSpark
from tests.pipeline_chaos.run import Report, run


def main() -> int:
    """Print a line for each kill, then the report; 1 if a table is not what the topics make of it."""
    parser = argparse.ArgumentParser(description="Kill a pipeline at random under load, and judge its tables.")
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--batch-size", type=int, default=500, help="the greatest number of records of a batch")
    parser.add_argument("--master", choices=("local", "standalone"), default="local", help="where executors run")
    parser.add_argument("--folder", type=Path, help="tables and logs, kept; a temporary one otherwise")
    options = parser.parse_args()
    with ExitStack() as stack:
        folder = options.folder or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="pipeline-chaos-")))
        folder.mkdir(parents=True, exist_ok=True)
        kafka = stack.enter_context(EmbeddedKafka(folder / "kafka"))
        world = PipelineWorld("chaos", kafka.bootstrap_servers, folder, spark_jars())
        cluster = stack.enter_context(StandaloneSpark(folder / "spark")) if options.master == "standalone" else None
        report = run(world, folder, options.minutes, options.seed, options.batch_size, tell=_tell, cluster=cluster)
    for line in lines_of(report):
        _tell(line)
    return int(bool(report.problems))


def lines_of(report: Report) -> list[str]:
    """The report as lines."""
    return [
        *(f"{count:6,} x {kind.value}" for kind, count in report.kills.items()),
        *(f"{count:10,} records in {topic}" for topic, count in report.records.items()),
        f"the last start had caught up after {report.caught_up_s:.0f} s",
        *report.problems,
        "BROKEN" if report.problems else "every record is in its table once, and what is made of them is exact",
    ]


def _tell(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
