"""Records to columns with ``controlplane.codec``, so that the pipeline and the leader refuse the same records.

Spark's Python workers decode each record: framings, schema versions and checks are the same code. (Spark's own
``from_avro`` is faster, but has none of the checks, and handles one framing and one schema at a time. The codec takes a
few hundred microseconds for a report of 20 bundles, which is fast enough.)
"""

import functools
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeAlias

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the usual name
from pyspark.sql.types import BinaryType, StringType, StructField, StructType

from controlplane.codec.framing import Framing, framing_with
from controlplane.codec.inputs import decode_input
from controlplane.codec.outputs import decode_dead_letter, encode_dead_letter
from controlplane.config import DEAD_LETTERS, HEARTBEATS, INTENTS, LOAD_REPORTS, MEMBERSHIP
from controlplane.core.values.dead_letter import RAW_KEPT_BYTES, DeadLetter
from controlplane.core.values.identifiers import Coordinates
from controlplane.errors import InvalidInputError
from streaming.columns import RecordColumns
from streaming.contracts.records import (
    DEAD_LETTERS_TABLE,
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
KEY_VALUE_TYPE: Final = StructType([StructField("key", BinaryType()), StructField("value", BinaryType())])
_DEAD_LETTER_FIELDS: Final = DEAD_LETTERS_TABLE.fields[5:]

_Row: TypeAlias = tuple[object, ...]


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


def decode_row(topic: str, raw: RawRow, framing: Framing) -> tuple[tuple[str, str] | None, _Row | None]:
    """A record as (refusal, columns), exactly one of which is not None; see :func:`decode_payload`."""
    refusal, payload = decode_payload(topic, raw, framing)
    return refusal, None if payload is None else INPUT_COLUMNS[topic].row(payload)


def _as_bytes(value: bytes | bytearray | None) -> bytes | None:
    """The value as bytes: Spark passes binary columns as bytearrays, which cannot be dictionary keys."""
    return None if value is None else bytes(value)


def decoded(records: DataFrame, topic: str, schema_ids: Mapping[int, str]) -> DataFrame:
    """The records of an input topic with two more columns: ``refusal`` (null if usable) and ``payload`` (its columns).

    Args:
        records: as :func:`streaming.sources.read_stream` returns them.
        topic: the topic without the cluster's prefix.
        schema_ids: as :class:`controlplane.config.KafkaConfig` has them.
    """
    both = _decoder(topic, tuple(schema_ids.items()))(
        "partition", "offset", "append_time_ms", "key", "value", "is_append_time"
    )
    return (
        records.withColumn("both", both)
        .withColumn("refusal", F.col("both.refusal"))
        .withColumn("payload", F.col("both.payload"))
        .drop("both")
    )


def _decoder(topic: str, schema_ids: tuple[tuple[int, str], ...]) -> Callable[..., Column]:
    result = StructType([StructField("refusal", REFUSAL_TYPE), StructField("payload", INPUT_COLUMNS[topic].struct)])

    def decode(
        partition: int,
        offset: int,
        append_time_ms: int,
        key: bytearray | None,
        value: bytearray | None,
        is_append_time: bool,  # noqa: FBT001 - as Spark passes columns
    ) -> tuple[tuple[str, str] | None, _Row | None]:
        raw = RawRow(partition, offset, append_time_ms, _as_bytes(key), _as_bytes(value), is_append_time)
        return decode_row(topic, raw, framing_of(schema_ids))

    # Nondeterministic, so that Spark does not run it twice for its two columns.
    return F.udf(decode, result, useArrow=False).asNondeterministic()


@functools.cache
def framing_of(schema_ids: tuple[tuple[int, str], ...]) -> Framing:
    """One for each worker process."""
    return framing_with(dict(schema_ids))


def dead_letter_records(refused: DataFrame, topic: str) -> DataFrame:
    """The dead letters of refused records of a topic, as ``key`` and ``value`` for the topic ``dead-letters``."""

    def encode(
        partition: int, offset: int, append_time_ms: int, value: bytearray | None, reason: str, detail: str
    ) -> tuple[bytes, bytes]:
        raw = _as_bytes(value) or b""
        letter = DeadLetter(
            reason, detail, topic, partition, offset, append_time_ms, WRITER, raw[:RAW_KEPT_BYTES], len(raw)
        )
        key = str(Coordinates(topic, partition, offset, append_time_ms)).encode()
        return key, encode_dead_letter(letter)

    both = F.udf(encode, KEY_VALUE_TYPE, useArrow=False)(
        "partition", "offset", "append_time_ms", "value", "refusal.reason", "refusal.detail"
    )
    return refused.select(both.alias("both")).select("both.*")


def decoded_dead_letters(records: DataFrame) -> DataFrame:
    """The records of ``dead-letters`` with the column ``payload``. Foreign records are kept with their bytes."""
    fields = [StructField(each.name, each.dataType) for each in _DEAD_LETTER_FIELDS]
    payload = F.udf(dead_letter_row, StructType(fields), useArrow=False)(
        "partition", "offset", "append_time_ms", "value"
    )
    return records.withColumn("payload", payload)


def dead_letter_row(partition: int, offset: int, append_time_ms: int, value: bytes | bytearray | None) -> _Row:
    """A dead letter's columns. A record that is no dead letter becomes one about itself, so that none is lost."""
    raw = _as_bytes(value) or b""
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
