"""Tables of records: a row for each record of a topic."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DateType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
)

from controlplane.config import DEAD_LETTERS, DECISIONS, HEARTBEATS, INTENTS, LOAD_REPORTS, MEMBERSHIP
from controlplane.core.bundles.reports import LoadReport
from controlplane.core.intents.intent import Intent
from controlplane.core.membership.inputs import Heartbeat, NodeJoined, NodeLeaving, NodeLeft, Tick
from streaming.contracts.columns import RecordColumns, column
from streaming.contracts.table import COORDINATES, DAY_COLUMN, TableContract

_RECORD_KEY: Final = ("topic", "partition", "offset")
_ONCE: Final = "Added once for each record"

HEARTBEAT_COLUMNS: Final = RecordColumns({Heartbeat: "heartbeat"})
LOAD_REPORT_COLUMNS: Final = RecordColumns({LoadReport: "load_report"})
MEMBERSHIP_COLUMNS: Final = RecordColumns({NodeJoined: "joined", NodeLeaving: "leaving", NodeLeft: "left"})
INTENT_COLUMNS: Final = RecordColumns({Intent: "intent"})

HEARTBEATS_TABLE: Final = TableContract(
    name="heartbeats",
    row="A usable heartbeat of a node in the topic `heartbeats`, whose ticks are in `ticks`.",
    written=f"{_ONCE}; what was refused is in `dead_letters`. The decisions show whether a heartbeat counted.",
    key=_RECORD_KEY,
    fields=(*COORDINATES, *HEARTBEAT_COLUMNS.fields),
)

TICK_ARRAYS: Final[Mapping[str, str]] = MappingProxyType(
    {"controller_id": "controller_ids", "sent_at_ms": "sent_at_ms", "seq": "seqs", "table_epoch": "table_epochs"}
)
"""The column of each field of a tick."""

TICKS_TABLE: Final = TableContract(
    name="ticks",
    row="Usable ticks of controllers in one partition of the topic `heartbeats`, of one minute of append time.",
    written="Added once for each tick, a row for each partition, minute and batch of records; `ticks_by_minute` puts "
    "these together. Lists have an entry for each tick, in the order of their offsets.",
    key=("partition", "first_offset"),
    fields=(
        column("partition", IntegerType(), "The partition of `heartbeats`."),
        column("first_offset", LongType(), "The offset of the first tick."),
        column("last_offset", LongType(), "The offset of the last tick; heartbeats may stand in between."),
        column("minute_ms", LongType(), "The beginning of the minute, in milliseconds since 1970."),
        column(DAY_COLUMN, DateType(), "The day of `minute_ms` in UTC; restrict it, and other days are not read."),
        column("tick_count", LongType(), "The number of ticks."),
        column("first_append_time_ms", LongType(), "When the broker appended the first tick."),
        column("last_append_time_ms", LongType(), "When the broker appended the last tick."),
        column(
            "longest_gap_ms", LongType(), "The longest time from one tick to the next; null: it is one.", nullable=True
        ),
        column("offsets", ArrayType(LongType()), "The offset of each tick."),
        column("append_times_ms", ArrayType(LongType()), "When the broker appended each tick."),
        *(
            column(TICK_ARRAYS[each.name], ArrayType(each.dataType), f"Of each tick: {each.metadata['comment']}")
            for each in RecordColumns({Tick: "tick"}).fields
        ),
    ),
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
INTENTS_TABLE: Final = TableContract(
    name="intents",
    row="A usable record of the topic `intents`: what an operator asked for.",
    written=f"{_ONCE}; what was refused is in `dead_letters`. What came of it is in `intent_answers`.",
    key=_RECORD_KEY,
    fields=(*COORDINATES, *INTENT_COLUMNS.fields),
)

CAUSE: Final = StructType([StructField(name, StringType()) for name in ("kind", "subject", "evidence")])

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
        column("causes", ArrayType(CAUSE), "The causes: kind, subject, and the evidence (the input's coordinates)."),
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

TABLE_OF_TOPIC: Final[Mapping[str, TableContract]] = MappingProxyType(
    {
        HEARTBEATS: HEARTBEATS_TABLE,
        LOAD_REPORTS: LOAD_REPORTS_TABLE,
        MEMBERSHIP: MEMBERSHIP_TABLE,
        INTENTS: INTENTS_TABLE,
        DECISIONS: DECISIONS_TABLE,
        DEAD_LETTERS: DEAD_LETTERS_TABLE,
    }
)
"""The table that holds a topic's records, but for ticks; the topic's stream has its name."""


def tables_of(topic: str) -> tuple[TableContract, ...]:
    """Every table that a topic's stream writes rows of records to."""
    others = (TICKS_TABLE,) if topic == HEARTBEATS else ()
    return (TABLE_OF_TOPIC[topic], *others)
