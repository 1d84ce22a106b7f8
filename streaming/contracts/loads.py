"""Tables of loads: what nodes and bundles carry, and the candidates that rules choose by it."""

from typing import Final

from pyspark.sql.types import (
    ArrayType,
    DateType,
    DoubleType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
)

from controlplane.core.bundles.load.averages import LONG_TERM_SAMPLES, SHORT_TERM_SAMPLES, MessageLoad
from controlplane.core.bundles.reports import BundleLoad, ResourceUsage
from streaming.contracts.columns import column, spark_type
from streaming.contracts.table import BUCKET_COLUMN, CURRENT_PROPERTIES, TableContract

_EVALUATED: Final = column(
    "evaluated_ms",
    LongType(),
    "Log time at which the rule was evaluated, in milliseconds since 1970, rounded down: the time of the newest report "
    "that is not dated ahead of the pipeline's clock by more than a minute, or that clock's time if all of them are.",
)
_DAY_OF_EVALUATION: Final = column("day", DateType(), "The day of `evaluated_ms` in UTC.")

MESSAGE_LOAD_TYPE: Final = spark_type(MessageLoad)
TIME_AVERAGE_TYPE: Final = StructType(
    [StructField("sample_count", LongType()), *(StructField(name, DoubleType()) for name in MessageLoad._fields)]
)
_AVERAGE_FIELDS: Final = "`sample_count`, and for each direction bytes and messages per second"
_LATEST_SAMPLE: Final = tuple(
    column(name, spark_type(hint), f"Of the newest report: {words}.")
    for (name, hint), words in zip(
        list(BundleLoad.__annotations__.items())[1:],
        (
            "messages received per second",
            "messages sent per second",
            "bytes received per second",
            "bytes sent per second",
            "topics",
            "producers",
            "consumers",
            "bytes in the cache",
        ),
        strict=True,
    )
)

BUNDLE_LOAD_TABLE: Final = TableContract(
    name="bundle_load",
    row="A bundle that was reported at least once, with its newest figures and its averages.",
    written="The buckets of a batch of load reports are replaced, in one version; each report counts as one sample, "
    "once. Samples that cannot be true do not count. A bundle that has ended is forgotten, ten minutes after its last "
    "report.",
    key=("bundle_id",),
    fields=(
        column("bundle_id", StringType(), "Namespace and bounds, for example `kv/0x00000000_0x40000000`."),
        column(BUCKET_COLUMN, IntegerType(), "The number of its bucket, by the hash of its id."),
        column("namespace", StringType(), "The namespace of the bundle."),
        column("node_id", StringType(), "The node that reported it last."),
        column("report_time_ms", LongType(), "Append time of the newest report, in milliseconds since 1970."),
        column("report_partition", IntegerType(), "Partition of the newest report."),
        column("report_offset", LongType(), "Offset of the newest report."),
        column("first_report_time_ms", LongType(), "Append time of the first report that counted."),
        column(
            "moved_at_ms",
            LongType(),
            "Append time of the present node's first report; null: it never moved.",
            nullable=True,
        ),
        *_LATEST_SAMPLE,
        column("short_term", TIME_AVERAGE_TYPE, f"Average over {SHORT_TERM_SAMPLES} samples: {_AVERAGE_FIELDS}."),
        column("long_term", TIME_AVERAGE_TYPE, f"Average over {LONG_TERM_SAMPLES} samples: {_AVERAGE_FIELDS}."),
        column(
            "folded_offsets",
            MapType(IntegerType(), LongType()),
            "The offset up to which each partition's reports are in the averages, so that none counts twice.",
        ),
    ),
    partitioned_by=(BUCKET_COLUMN,),
    properties=CURRENT_PROPERTIES,
)
BROKER_LOAD_TABLE: Final = TableContract(
    name="broker_load",
    row="A node that reported its load at least once, with its newest figures and the sums of its bundles' averages.",
    written="Replaced once for each batch of load reports. Sums of averages and smoothed usages are those of the last "
    "evaluation of the rules. Reports with resources that cannot be true do not count.",
    key=("node_id",),
    fields=(
        column("node_id", StringType(), "The node (Pulsar's broker)."),
        column("incarnation", LongType(), "The run of the node's process that reported."),
        column("report_time_ms", LongType(), "Append time of the newest report, in milliseconds since 1970."),
        column("report_partition", IntegerType(), "Partition of the newest report."),
        column("report_offset", LongType(), "Offset of the newest report."),
        column("weighted_usage", DoubleType(), "The greatest weighted usage of a resource, 1.0 for 100 percent."),
        *(
            column(name, spark_type(ResourceUsage), f"Usage and limit, {unit}.")
            for name, unit in (
                ("cpu", "in percent of one core"),
                ("memory", "in MiB; it is not part of `weighted_usage`"),
                ("direct_memory", "in MiB"),
                ("bandwidth_in", "in Kbit/s"),
                ("bandwidth_out", "in Kbit/s"),
            )
        ),
        column("version", StringType(), "The node software's version."),
        column("bundle_count", LongType(), "Bundles in the newest report."),
        column("reported", MESSAGE_LOAD_TYPE, "The newest report's figures, summed over its bundles."),
        column(
            "owned_bundle_count",
            LongType(),
            "Bundles that it was the last to report, in its newest report; null: not evaluated yet.",
            nullable=True,
        ),
        column("short_term", MESSAGE_LOAD_TYPE, "The sum of those bundles' short-term averages.", nullable=True),
        column("long_term", MESSAGE_LOAD_TYPE, "The sum of those bundles' long-term averages.", nullable=True),
        column(
            "smoothed_usage", DoubleType(), "Usage smoothed over evaluations; null before the first.", nullable=True
        ),
        column("smoothed_at_ms", LongType(), "Log time of the last evaluation that smoothed it.", nullable=True),
    ),
    partitioned_by=(),
    properties=CURRENT_PROPERTIES,
)

BUNDLE_LOAD_HISTORY_TABLE: Final = TableContract(
    name="bundle_load_history",
    row="What one node reported of a bundle in a window of append time, or a part of it: the view "
    "`bundle_load_windows` adds up the parts.",
    written="Some 40 s after the end of each window, from `load_reports`; each report counts once, a late one in a "
    "further row. One that is dated ahead of the pipeline's clock is not waited for, and is in a further row, too. "
    "Samples that cannot be true do not count. Once a later process of a node has reported figures of the node that "
    "can be true, reports of its earlier processes behind that one in the partition do not count.",
    key=("bundle_id", "window_start_ms", "partition", "first_offset"),
    fields=(
        column("bundle_id", StringType(), "Namespace and bounds."),
        column("window_start_ms", LongType(), "When the window begins, in milliseconds since 1970."),
        column("day", DateType(), "The day of `window_start_ms` in UTC."),
        column("node_id", StringType(), "The node that reported it."),
        column("namespace", StringType(), "The namespace of the bundle."),
        column("window_ms", LongType(), "The length of the window."),
        column("partition", IntegerType(), "The partition of the reports."),
        column("first_offset", LongType(), "The least offset of the reports that are in this row."),
        column("sample_count", LongType(), "How many reports are in it."),
        column("sums", MESSAGE_LOAD_TYPE, "Their figures, summed: divided by `sample_count` they are means."),
        column("maxima", MESSAGE_LOAD_TYPE, "The greatest of each figure."),
        column("topic_count", LongType(), "The most topics of a report."),
        column("session_count", LongType(), "The most producers and consumers of a report."),
    ),
)

_CANDIDATE_HEAD: Final = (
    column(
        "candidate_id", StringType(), "Action, bundle and the newest report that counted; the same in `candidates`."
    ),
    column("bundle_id", StringType(), "The bundle."),
    _EVALUATED,
    _DAY_OF_EVALUATION,
    column("namespace", StringType(), "The namespace of the bundle."),
    column("node_id", StringType(), "The node that reported it."),
    column("rule", StringType(), "The rule that chose it."),
)
_CANDIDATE_TAIL: Final = (
    column(
        "evidence", MapType(StringType(), StringType()), "What was measured and what is allowed, as in `candidates`."
    ),
    column("window_start_ms", LongType(), "Append time of the first report that counted."),
    column("window_end_ms", LongType(), "Append time of the newest report that counted."),
)
_EXCEEDED: Final = StructType(
    [StructField("limit", StringType()), StructField("measured", DoubleType()), StructField("allowed", DoubleType())]
)
_CANDIDATES_WRITTEN: Final = "Added at an evaluation; the same evidence is added once. Also produced to `candidates`."

SPLIT_CANDIDATES_TABLE: Final = TableContract(
    name="split_candidates",
    row="A bundle that exceeded a limit of one node at an evaluation.",
    written=_CANDIDATES_WRITTEN,
    key=("candidate_id",),
    fields=(
        *_CANDIDATE_HEAD,
        column("exceeded", ArrayType(_EXCEEDED), "Each limit that it exceeds, with what was measured and allowed."),
        column("topic_count", LongType(), "Topics in the newest report."),
        column("session_count", LongType(), "Producers and consumers in the newest report."),
        column("message_rate_per_s", DoubleType(), "Long-term average, in plus out."),
        column("throughput_bytes_per_s", DoubleType(), "Long-term average, in plus out."),
        *_CANDIDATE_TAIL,
    ),
)
SHED_CANDIDATES_TABLE: Final = TableContract(
    name="shed_candidates",
    row="A bundle that an overloaded node should give away, by the evaluation.",
    written=_CANDIDATES_WRITTEN,
    key=("candidate_id",),
    fields=(
        *_CANDIDATE_HEAD,
        column("throughput_bytes_per_s", DoubleType(), "The bundle's short-term average, in plus out."),
        column("smoothed_usage", DoubleType(), "The node's, 1.0 for 100 percent."),
        column("mean_usage", DoubleType(), "The mean of all nodes."),
        column("target_bytes_per_s", DoubleType(), "How much the node should give away in all."),
        *_CANDIDATE_TAIL,
    ),
)
