"""Records of a topic to rows of its table of history, in batches of Arrow, with the codec that the leader uses."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import pyarrow as pa

from controlplane.codec.framing import Framing
from controlplane.config import DEAD_LETTERS
from controlplane.core.membership.inputs import Tick
from streaming.contracts.records import TABLE_OF_TOPIC
from streaming.records.decode import INPUT_COLUMNS, RawRow, dead_letter_row, decode_payload
from streaming.records.tick_rows import PlacedTick
from streaming.tables.day_files import without_day


class RecordRows(NamedTuple):
    """A batch of records.

    Attributes:
        rows: the usable ones, with the columns of their table but the day.
        ticks: those among them, which are no rows.
        refused: the number of the others.
    """

    rows: pa.Table
    ticks: Sequence[PlacedTick]
    refused: int


def raw_records(batch: pa.RecordBatch) -> list[RawRow]:
    """The records of a batch, which has the columns of :class:`streaming.records.decode.RawRow`."""
    columns = (batch.column(name).to_pylist() for name in RawRow._fields)
    return [RawRow(*values) for values in zip(*columns, strict=True)]


def record_rows(topic: str, records: Iterable[RawRow], framing: Framing) -> RecordRows:
    """The rows of records.

    Args:
        topic: an input topic or ``dead-letters``, without the cluster's prefix.
        records: of the topic.
        framing: how the cluster's records are framed.
    """
    rows, ticks, refused = [], list[PlacedTick](), 0
    for record in records:
        place = (topic, record.partition, record.offset, record.append_time_ms)
        if topic == DEAD_LETTERS:
            rows.append((*place, *dead_letter_row(*place[1:], record.value)))
            continue
        refusal, payload = decode_payload(topic, record, framing)
        if refusal is not None:
            refused += 1
        elif isinstance(payload, Tick):
            ticks.append(PlacedTick(*place[1:], payload))
        else:
            rows.append((*place, *INPUT_COLUMNS[topic].row(payload)))
    return RecordRows(table_of(rows, without_day(TABLE_OF_TOPIC[topic])), ticks, refused)


def table_of(rows: Sequence[tuple[object, ...]], schema: pa.Schema) -> pa.Table:
    """Rows that have these columns, in their order."""
    columns: Iterable[Sequence[object]] = zip(*rows, strict=True) if rows else [()] * len(schema)
    arrays = [pa.array(values, field.type) for values, field in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)
