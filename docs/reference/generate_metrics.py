"""Draw ``metrics.md`` from the metrics themselves: ``python docs/reference/generate_metrics.py``.

A test compares the page with what this script would write.
"""

import sys
from collections.abc import Iterable
from pathlib import Path

from prometheus_client import CollectorRegistry
from prometheus_client.metrics import MetricWrapperBase

ROOT = Path(__file__).resolve().parents[2]
PAGE = Path(__file__).with_name("metrics.md")
sys.path.insert(0, str(ROOT))

from controlplane.adapters import kafka_metrics  # noqa: E402 - the checkout is on the path only now
from controlplane.node.metrics import NodeCollectors  # noqa: E402 - as above
from controlplane.routing.metrics import RoutingCollectors  # noqa: E402 - as above
from controlplane.service.metrics import ControllerMetrics  # noqa: E402 - as above
from streaming.contracts.records import LOAD_REPORTS_TABLE, TABLE_OF_TOPIC  # noqa: E402 - as above
from streaming.jobs.changes import CHANGES  # noqa: E402 - as above
from streaming.jobs.load_history import LOAD_HISTORY  # noqa: E402 - as above
from streaming.metrics import PipelineMetrics  # noqa: E402 - as above

_HEAD = """\
# Metrics

<!-- Drawn by docs/reference/generate_metrics.py from the metrics themselves: change those, not this page. -->

Long-running commands serve Prometheus metrics with `--metrics-port`. The metrics of an agent or a routing client that
is embedded in a program are in Prometheus' default registry, or in the one that the program passes as `registry`.

A program may hold several agents and clients, of one cluster or of several. The labels `cluster` and `node` tell agents
apart. The labels `cluster` and `client` tell clients apart; `client` is a number: 1 for a cluster's only client, 2 for
a second one that is open at the same time. Closing a client or stopping an agent removes its labels.

A counter's samples end in `_total`, a histogram's in `_bucket`, `_sum` and `_count`.
"""


def page() -> str:
    """The whole page."""
    sections = [
        ("Controller", _of(ControllerMetrics(CollectorRegistry()))),
        ("Node agent", _of(NodeCollectors(CollectorRegistry()))),
        ("Routing client", _of(RoutingCollectors(CollectorRegistry()))),
        ("Pipeline", _of(PipelineMetrics(CollectorRegistry()))),
        ("Every Kafka client", _of(kafka_metrics)),
    ]
    texts = {"Pipeline": _streams()}
    return _HEAD + "".join(_section(title, metrics) + texts.get(title, "") for title, metrics in sections)


def _streams() -> str:
    """The values of the pipeline's labels."""
    of_topics = [table.name for table in TABLE_OF_TOPIC.values()]
    passed = [name for name in of_topics if name != LOAD_REPORTS_TABLE.name]
    return f"""
`stream` is one of
{_listed([*of_topics, CHANGES, LOAD_HISTORY])}:
the name of the table that the stream writes, with underscores also where the topic has a hyphen, and `{CHANGES}` for
the tables of changes. Log lines have the same names. {_listed([CHANGES, LOAD_HISTORY])} read tables and not Kafka, so
they have neither `controlplane_pipeline_offsets_behind` nor `controlplane_pipeline_missing_offsets`.
`controlplane_pipeline_passed_over_records` has {_listed(passed)};
load reports that are refused are counted by `controlplane_pipeline_dead_letters`.
`controlplane_pipeline_clock_ahead_ms` has `{LOAD_REPORTS_TABLE.name}` alone. `action` is `split` or `shed`,
`reason` the code in the dead letter, `figure` the name of the figure. The metrics have no label for the cluster: a
process writes the tables of one.

A stream that stands still makes no batches. `controlplane_pipeline_offsets_behind` then keeps its value, and before the
first batch after a start the series is not there: `controlplane_pipeline_last_batch_timestamp_seconds` and
`controlplane_pipeline_stream_restarts` tell ([expressions](../how-to/run-the-pipeline-on-spark.md#watch-it)).
"""


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _of(holder: object) -> list[MetricWrapperBase]:
    """The metrics that an object or a module holds."""
    return [value for value in vars(holder).values() if isinstance(value, MetricWrapperBase)]


def _section(title: str, metrics: Iterable[MetricWrapperBase]) -> str:
    lines = [f"\n## {title}\n", "| metric | type | labels | meaning |", "|---|---|---|---|"]
    pairs = [(family, metric) for metric in metrics for family in metric.describe()]
    for family, metric in sorted(pairs, key=lambda pair: pair[0].name):
        labels = ", ".join(f"`{name}`" for name in metric._labelnames)  # noqa: SLF001 - there is no public way
        lines.append(f"| `{family.name}` | {family.type} | {labels} | {family.documentation} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
