"""Tables of changes: what decisions did to slots, bundles, nodes and intents, a row each, and the present rows."""

from typing import Final

from pyspark.sql.types import ArrayType, BooleanType, DataType, DateType, IntegerType, LongType, StringType, StructField

from streaming.contracts.columns import column
from streaming.contracts.records import CAUSE
from streaming.contracts.table import BUCKET_COLUMN, CURRENT_PROPERTIES, TableContract

_ADDED: Final = "Added in the order of `seq`, once, from the table `decisions`"
_REPLACED: Final = "Replaced by bucket, from the table `decisions`"
_WHEN: Final = (
    column("seq", LongType(), "Number of the decision, which `decisions` explains."),
    column("append_time_ms", LongType(), "When the broker appended the decision, in milliseconds since 1970."),
    column("epoch", LongType(), "The routing table's epoch after the decision."),
)
_DECISION: Final = (
    *_WHEN,
    column("term", LongType(), "The term of the leader that decided."),
    column("decided_at_ms", LongType(), "Log time of the decision, in milliseconds."),
    column("day", DateType(), "The day of `append_time_ms` in UTC; restrict it and other days' files are not read."),
    column("cause_kinds", ArrayType(StringType()), "The kinds of the decision's causes, in order, each once."),
    column("causes", ArrayType(CAUSE), "The decision's causes: kind, subject and evidence."),
)
_BUCKET: Final = column(BUCKET_COLUMN, IntegerType(), "The number of its bucket in this table.")
_NODES: Final = ArrayType(StringType())


def _both(name: str, data_type: DataType, words: str) -> tuple[StructField, StructField]:
    return (
        column(f"from_{name}", data_type, f"Before: {words}.", nullable=True),
        column(f"to_{name}", data_type, f"After: {words}.", nullable=True),
    )


SLOT_CHANGES_TABLE: Final = TableContract(
    name="slot_changes",
    row="A row of the slot table that a decision wrote, beside the row that it replaced.",
    written=f"{_ADDED}; a decision's last row of a slot.",
    key=("seq", "slot_id"),
    fields=(
        column("slot_id", LongType(), "The slot."),
        *_DECISION,
        *_both("leader", StringType(), "the node that serves the slot; null: none"),
        *_both("followers", _NODES, "the other replicas"),
        *_both("leader_epoch", LongType(), "the epoch of that leader, which fences the one before"),
        column("from_seq", LongType(), "The decision that wrote the row before; null: there was none.", nullable=True),
        column("from_ms", LongType(), "When the broker appended that decision.", nullable=True),
    ),
)
SLOTS_TABLE: Final = TableContract(
    name="slots",
    row="A slot that a decision gave a row, as the newest such decision left it.",
    written=f"{_REPLACED}.",
    key=("slot_id",),
    fields=(
        column("slot_id", LongType(), "The slot."),
        _BUCKET,
        *_WHEN,
        column("leader", StringType(), "The node that serves it; null: none.", nullable=True),
        column("followers", _NODES, "The other replicas.", nullable=True),
        column("leader_epoch", LongType(), "The epoch of that leader.", nullable=True),
    ),
    partitioned_by=(BUCKET_COLUMN,),
    properties=CURRENT_PROPERTIES,
)

_BUNDLE: Final = (
    column("bundle_id", StringType(), "Namespace and bounds, for example `kv/0x00000000_0x40000000`."),
    column("namespace", StringType(), "The namespace of the bundle."),
)
_STATE_WORDS: Final = "the state of its ownership; null: there is no such bundle"
_SERVING_WORDS: Final = "the node that may serve it: its owner, unless that has to release it; null: none"

BUNDLE_CHANGES_TABLE: Final = TableContract(
    name="bundle_changes",
    row="A row of the bundle table that a decision wrote or ended, beside the row that it replaced.",
    written=f"{_ADDED}; a decision's last row of a bundle.",
    key=("seq", "bundle_id"),
    fields=(
        *_BUNDLE,
        *_DECISION,
        column("ended", BooleanType(), "Whether the bundle is no more: split, or its namespace deleted."),
        *_both("state", StringType(), _STATE_WORDS),
        *_both("owner", StringType(), "the node that serves it or has to release it; null: none"),
        *_both("serving_node", StringType(), _SERVING_WORDS),
        *_both("owner_epoch", LongType(), "the epoch of that owner, which fences the one before"),
        column("next_owner", StringType(), "The node that it goes to; null: none.", nullable=True),
        column("former_owner", StringType(), "The node that released it or lost it; null: none.", nullable=True),
        column("version", LongType(), "Number of the row; null: ended.", nullable=True),
        column("is_forced", BooleanType(), "Whether the leader repaired the bundle.", nullable=True),
        column("parent", StringType(), "The name of the range that was split into it; empty: none.", nullable=True),
        column("from_seq", LongType(), "The decision that wrote the row before; null: there was none.", nullable=True),
        column("from_ms", LongType(), "When the broker appended that decision.", nullable=True),
    ),
)
BUNDLES_TABLE: Final = TableContract(
    name="bundles",
    row="A bundle that there is, as the newest decision about it left it.",
    written=f"{_REPLACED}; a bundle that ends has no row any more.",
    key=("bundle_id",),
    fields=(
        *_BUNDLE,
        _BUCKET,
        *_WHEN,
        column("state", StringType(), "The state of its ownership."),
        column("owner", StringType(), "The node that serves it or has to release it; null: none.", nullable=True),
        column("serving_node", StringType(), "The node that may serve it; null: none.", nullable=True),
        column("owner_epoch", LongType(), "The epoch of that owner."),
        column("next_owner", StringType(), "The node that it goes to; null: none.", nullable=True),
        column("former_owner", StringType(), "The node that released it or lost it; null: none.", nullable=True),
        column("version", LongType(), "Number of the row, one more each time."),
        column("is_forced", BooleanType(), "Whether the leader repaired the bundle."),
        column("parent", StringType(), "The name of the range that was split into it; empty: none."),
    ),
    partitioned_by=(BUCKET_COLUMN,),
    properties=CURRENT_PROPERTIES,
)

NODE_CHANGES_TABLE: Final = TableContract(
    name="node_changes",
    row="A change of a node's membership by a decision.",
    written=f"{_ADDED}.",
    key=("seq", "number"),
    fields=(
        column("node_id", StringType(), "The node."),
        *_DECISION,
        column("number", LongType(), "The place of the event in the decision, from 0 on."),
        column(
            "change",
            StringType(),
            "`admitted`, `draining`, `undrained`, `fenced`, `removed`; as the event of that name says it.",
        ),
        column("incarnation", LongType(), "The run of the node's process."),
        column("reason", StringType(), "Of `fenced`: `silence` or `superseded`; else empty."),
        column("silence_ms", LongType(), "Of `fenced`: log time since its last heartbeat that counted.", nullable=True),
    ),
)
INTENT_ANSWERS_TABLE: Final = TableContract(
    name="intent_answers",
    row="The answer to an intent.",
    written=f"{_ADDED}.",
    key=("intent_id",),
    fields=(
        column("intent_id", StringType(), "The intent; `intents` has its arguments."),
        *_DECISION,
        column("kind", StringType(), "What was asked for."),
        column("principal", StringType(), "The name that the operator claims."),
        column("outcome", StringType(), "`done`, `refused` or `superseded`."),
        column("detail", StringType(), "What came of it, as a sentence."),
    ),
)
