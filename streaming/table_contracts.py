"""The contract of each Delta table: its columns, the meaning of a row, and its properties.

Tables are created from these contracts, writers select exactly these columns, and ``docs/reference/delta-tables.md`` is
generated from them. A released column is never renamed, removed or given another type.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DateType,
    DoubleType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
)

from controlplane.config import DEAD_LETTERS, DECISIONS, HEARTBEATS, LOAD_REPORTS, MEMBERSHIP
from controlplane.core.bundles.load.averages import LONG_TERM_SAMPLES, SHORT_TERM_SAMPLES, MessageLoad
from controlplane.core.bundles.reports import BundleLoad, LoadReport, ResourceUsage
from controlplane.core.membership.inputs import Heartbeat, NodeJoined, NodeLeaving, NodeLeft, Tick
from streaming.columns import RecordColumns, column, spark_type

COMMON_PROPERTIES: Final[Mapping[str, str]] = MappingProxyType(
    {
        # Files stay readable for every Delta reader, also for those that know no deletion vectors.
        "delta.enableDeletionVectors": "false",
        "delta.checkpointInterval": "50",
        "delta.logRetentionDuration": "interval 6 hours",
        # Statistics serve to skip files; the first columns are those that queries restrict.
        "delta.dataSkippingNumIndexedCols": "6",
    }
)
HISTORY_PROPERTIES: Final = MappingProxyType({"delta.deletedFileRetentionDuration": "interval 6 hours"})
CURRENT_PROPERTIES: Final = MappingProxyType(
    # Each batch replaces the files, and no query reads a file that was replaced an hour ago.
    {"delta.deletedFileRetentionDuration": "interval 1 hours"}
)


@dataclass(frozen=True, slots=True)
class TableContract:
    """One Delta table.

    Attributes:
        name: also its folder's name and its name in SQL.
        row: the meaning of one row, as a sentence.
        written: how rows are written, as a sentence.
        key: the columns that identify a row.
        fields: the columns, in order.
        partitioned_by: the columns by which its folders are divided.
        properties: Delta's, in addition to the common ones.
    """

    name: str
    row: str
    written: str
    key: tuple[str, ...]
    fields: tuple[StructField, ...]
    partitioned_by: tuple[str, ...] = ("day",)
    properties: Mapping[str, str] = field(default_factory=lambda: HISTORY_PROPERTIES)

    @property
    def schema(self) -> StructType:
        """The columns as a Spark schema."""
        return StructType(list(self.fields))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns' names, in order."""
        return tuple(each.name for each in self.fields)

    @property
    def is_history(self) -> bool:
        """Whether rows are only ever added."""
        return "day" in self.partitioned_by


COORDINATES: Final = (
    column("topic", StringType(), "The topic, without the cluster's prefix."),
    column("partition", IntegerType(), "Its partition."),
    column("offset", LongType(), "The record's offset; with topic and partition it names the record."),
    column("append_time_ms", LongType(), "When the broker appended the record, in milliseconds since 1970."),
    column("day", DateType(), "The day of `append_time_ms` in UTC; restrict it and other days' files are not read."),
)
_RECORD_KEY: Final = ("topic", "partition", "offset")
_ONCE: Final = "Added once for each record"
_TICK: Final = column(
    "evaluated_ms", LongType(), "Log time at which the rule was evaluated, in milliseconds since 1970, rounded down."
)
_DAY_OF_TICK: Final = column("day", DateType(), "The day of `evaluated_ms` in UTC.")

HEARTBEAT_COLUMNS: Final = RecordColumns({Heartbeat: "heartbeat", Tick: "tick"})
LOAD_REPORT_COLUMNS: Final = RecordColumns({LoadReport: "load_report"})
MEMBERSHIP_COLUMNS: Final = RecordColumns({NodeJoined: "joined", NodeLeaving: "leaving", NodeLeft: "left"})

HEARTBEATS_TABLE: Final = TableContract(
    name="heartbeats",
    row="A usable record of the topic `heartbeats`: a node's heartbeat or a controller's tick.",
    written=f"{_ONCE}; what was refused is in `dead_letters`. The decisions show whether a heartbeat counted.",
    key=_RECORD_KEY,
    fields=(*COORDINATES, *HEARTBEAT_COLUMNS.fields),
)
LOAD_REPORTS_TABLE: Final = TableContract(
    name="load_reports",
    row="A usable record of the topic `load-reports`.",
    written=f"{_ONCE}; what was refused is in `dead_letters`.",
    key=_RECORD_KEY,
    fields=(*COORDINATES, *LOAD_REPORT_COLUMNS.fields),
)
MEMBERSHIP_TABLE: Final = TableContract(
    name="membership",
    row="A usable record of the topic `membership`.",
    written=f"{_ONCE}; what was refused is in `dead_letters`. The decisions show whether a node was admitted.",
    key=_RECORD_KEY,
    fields=(*COORDINATES, *MEMBERSHIP_COLUMNS.fields),
)

_CAUSE: Final = StructType([StructField(name, StringType()) for name in ("kind", "subject", "evidence")])

DECISIONS_TABLE: Final = TableContract(
    name="decisions",
    row="A whole decision. One that was written in several records has the offset of the last one.",
    written="Added once for each decision, in the order of `seq`, without gaps.",
    key=("seq",),
    fields=(
        *COORDINATES,
        column("seq", LongType(), "Number of the decision: +1 each, no gaps."),
        column("term", LongType(), "The term of the leader that decided."),
        column("epoch", LongType(), "The routing table's epoch after the decision; unchanged if no row changes."),
        column("controller_id", StringType(), "The controller that decided."),
        column(
            "decided_at_ms",
            LongType(),
            "Log time of the decision, in milliseconds: below feature level 3 the append time of the newest tick, "
            "since 1970; from it on what the gaps between ticks add up to since a first append time.",
        ),
        column("cause_kinds", ArrayType(StringType()), "The kinds of the causes, in order, each once."),
        column("causes", ArrayType(_CAUSE), "The causes: kind, subject, and the evidence (the input's coordinates)."),
        column("event_types", ArrayType(StringType()), "The types of the events, in order."),
        column("events", StringType(), "The events as a JSON list; each names its type under `type`."),
        column(
            "moved",
            LongType(),
            "Replicas that this decision's plan moves, at once or in later decisions; what was moved is the sum of "
            "`moves_carried_out`; null: nothing was planned.",
            nullable=True,
        ),
        column("least_moved", LongType(), "The proven least number of them under exact balance.", nullable=True),
        column("leader_changes", LongType(), "Slots whose leader the plan changes.", nullable=True),
        column("least_leader_changes", LongType(), "The proven least number of them.", nullable=True),
        column("lost_slots", ArrayType(LongType()), "Slots of which no living replica was left.", nullable=True),
        column(
            "certificate", StringType(), "The whole certificate as JSON, with the prices that prove it.", nullable=True
        ),
        column("positions", MapType(StringType(), LongType()), "Next offset of each input, by `topic[partition]`."),
        column("part_count", LongType(), "In how many records the decision was written."),
        column("feature_level", LongType(), "The least level that a reader needs."),
        column("log_id", StringType(), "Id of the log that the decision belongs to."),
        column("policy_fingerprint", StringType(), "Fingerprint of the policy."),
        column("previous_digest", StringType(), "The digest of the decision before; empty for the first."),
        column("digest", StringType(), "The digest of this decision."),
        column("state_digest", StringType(), "The digest of the state after it."),
        column(
            "moves_carried_out",
            LongType(),
            "Replicas that this decision itself placed on nodes that did not hold them, whichever decision planned it.",
        ),
        column(
            "leader_changes_carried_out", LongType(), "Slots that have another leader after it, also to or from none."
        ),
        column("moves_left", LongType(), "Replicas that the plan in flight still has to place after it."),
    ),
)
DEAD_LETTERS_TABLE: Final = TableContract(
    name="dead_letters",
    row="A record of the topic `dead-letters`: an input that was refused.",
    written=f"{_ONCE} of `dead-letters`. A refusal is written at least once: count distinct sources.",
    key=_RECORD_KEY,
    fields=(
        *COORDINATES,
        column("reason", StringType(), "A short stable code; see the page on schemas."),
        column("detail", StringType(), "What was wrong, as a sentence."),
        column("source_topic", StringType(), "The refused record's topic, without the cluster's prefix."),
        column("source_partition", LongType(), "Its partition."),
        column("source_offset", LongType(), "Its offset."),
        column("source_append_time_ms", LongType(), "When the broker appended it, in milliseconds since 1970."),
        column("writer", StringType(), "The program that refused it: a controller's id or `pipeline`."),
        column("raw", BinaryType(), "Its bytes, cut at 64 KiB."),
        column("raw_length_bytes", LongType(), "Their whole length."),
    ),
)

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

BUCKET_COLUMN: Final = "bucket"

BUNDLE_LOAD_TABLE: Final = TableContract(
    name="bundle_load",
    row="A bundle that was reported at least once, with its newest figures and its averages.",
    written="The buckets of a batch of load reports are replaced, in one version; each report counts as one sample, "
    "once. Samples that cannot be true do not count.",
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

_CANDIDATE_HEAD: Final = (
    column(
        "candidate_id", StringType(), "Action, bundle and the newest report that counted; the same in `candidates`."
    ),
    column("bundle_id", StringType(), "The bundle."),
    _TICK,
    _DAY_OF_TICK,
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

ALL_TABLES: Final = (
    HEARTBEATS_TABLE,
    LOAD_REPORTS_TABLE,
    MEMBERSHIP_TABLE,
    DECISIONS_TABLE,
    DEAD_LETTERS_TABLE,
    BUNDLE_LOAD_TABLE,
    BROKER_LOAD_TABLE,
    SPLIT_CANDIDATES_TABLE,
    SHED_CANDIDATES_TABLE,
)
TABLE_OF_TOPIC: Final[Mapping[str, TableContract]] = MappingProxyType(
    {
        HEARTBEATS: HEARTBEATS_TABLE,
        LOAD_REPORTS: LOAD_REPORTS_TABLE,
        MEMBERSHIP: MEMBERSHIP_TABLE,
        DECISIONS: DECISIONS_TABLE,
        DEAD_LETTERS: DEAD_LETTERS_TABLE,
    }
)
"""The table that holds a topic's records."""
