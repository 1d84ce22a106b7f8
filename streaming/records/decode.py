"""Records decoded with ``controlplane.codec``, so that the pipeline and the leader refuse the same records.

Spark's Python workers decode each record: framings, schema versions and checks are the same code. (Spark's own
``from_avro`` is faster, but has none of the checks, and handles one framing and one schema at a time. The codec takes
some 7 µs for each bundle of a report, which is fast enough.)
"""

import functools
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the usual name
from pyspark.sql.types import BinaryType, StringType, StructField, StructType

from controlplane.codec.framing import Framing, framing_with
from controlplane.codec.inputs import decode_input
from controlplane.codec.outputs import decode_dead_letter, encode_dead_letter
from controlplane.config import DEAD_LETTERS, HEARTBEATS, INTENTS, LOAD_REPORTS, MEMBERSHIP
from controlplane.core.values.dead_letter import RAW_KEPT_BYTES, DeadLetter
from controlplane.core.values.identifiers import Coordinates
from controlplane.errors import InvalidInputError
from streaming.contracts.columns import RecordColumns
from streaming.contracts.records import (
    HEARTBEAT_COLUMNS,
    INTENT_COLUMNS,
    LOAD_REPORT_COLUMNS,
    MEMBERSHIP_COLUMNS,
)

WRITER: Final = "pipeline"
"""The writer in the pipeline's dead letters."""

INPUT_COLUMNS: Final[Mapping[str, RecordColumns]] = MappingProxyType(
    {
        HEARTBEATS: HEARTBEAT_COLUMNS,
        LOAD_REPORTS: LOAD_REPORT_COLUMNS,
        MEMBERSHIP: MEMBERSHIP_COLUMNS,
        INTENTS: INTENT_COLUMNS,
    }
)

REFUSAL_TYPE: Final = StructType([StructField("reason", StringType()), StructField("detail", StringType())])
_KEY_VALUE_TYPE: Final = StructType([StructField("key", BinaryType()), StructField("value", BinaryType())])


class RawRow(NamedTuple):
    """The fields of a record that the codec needs."""

    partition: int
    offset: int
    append_time_ms: int
    key: bytes | None
    value: bytes | None
    is_append_time: bool = True


def decode_payload(topic: str, raw: RawRow, framing: Framing) -> tuple[tuple[str, str] | None, Any]:
    """A record as (reason and detail of its refusal, the core's value), exactly one of which is not None.

    Args:
        topic: an input topic without the cluster's prefix.
        raw: the record.
        framing: how the cluster's records are framed.
    """
    try:
        return None, decode_input(topic, raw, framing).payload
    except InvalidInputError as refused:
        return (refused.reason, refused.detail), None


def as_bytes(value: bytes | bytearray | None) -> bytes | None:
    """The value as bytes: Spark passes binary columns as bytearrays, which cannot be dictionary keys."""
    return None if value is None else bytes(value)


@functools.cache
def framing_of(schema_ids: tuple[tuple[int, str], ...]) -> Framing:
    """One for each worker process."""
    return framing_with(dict(schema_ids))


def dead_letter_records(refused: DataFrame, topic: str) -> DataFrame:
    """The dead letters of refused records of a topic, as ``key`` and ``value`` for the topic ``dead-letters``."""

    def encode(
        partition: int, offset: int, append_time_ms: int, value: bytearray | None, reason: str, detail: str
    ) -> tuple[bytes, bytes]:
        raw = as_bytes(value) or b""
        letter = DeadLetter(
            reason, detail, topic, partition, offset, append_time_ms, WRITER, raw[:RAW_KEPT_BYTES], len(raw)
        )
        key = str(Coordinates(topic, partition, offset, append_time_ms)).encode()
        return key, encode_dead_letter(letter)

    both = F.udf(encode, _KEY_VALUE_TYPE, useArrow=False)(
        "partition", "offset", "append_time_ms", "value", "refusal.reason", "refusal.detail"
    )
    return refused.select(both.alias("both")).select("both.*")


def dead_letter_row(partition: int, offset: int, append_time_ms: int, value: bytes | None) -> tuple[object, ...]:
    """A dead letter's columns. A record that is no dead letter becomes one about itself, so that none is lost."""
    raw = value or b""
    try:
        letter = decode_dead_letter(raw)
    except InvalidInputError as refused:
        kept = raw[:RAW_KEPT_BYTES]
        detail = f"the record is no dead letter: {refused.detail}"
        letter = DeadLetter(
            refused.reason, detail, DEAD_LETTERS, partition, offset, append_time_ms, WRITER, kept, len(raw)
        )
    return (
        letter.reason,
        letter.detail,
        letter.topic,
        letter.partition,
        letter.offset,
        letter.append_time_ms,
        letter.writer,
        letter.raw,
        letter.raw_length_bytes,
    )
