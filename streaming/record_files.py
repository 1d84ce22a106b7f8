"""Executors decode the records of a topic and write their rows into files."""

from collections.abc import Iterable, Iterator, Mapping
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame

from streaming.contracts.records import TABLE_OF_TOPIC
from streaming.decode import RawRow, framing_of
from streaming.history_files import TOLD_TYPE, BatchFiles, HistoryFiles, batch_files, told_by_task
from streaming.storage import StoragePath
from streaming.transforms.record_rows import raw_records, record_rows


def write_record_files(
    records: DataFrame, topic: str, schema_ids: Mapping[int, str], folder: StoragePath
) -> BatchFiles:
    """Write the usable records of a batch; refused ones are passed over.

    Args:
        records: as :func:`streaming.sources.read_stream` returns them; each part becomes a file for each day.
        topic: an input topic or ``dead-letters``, without the cluster's prefix.
        schema_ids: as :class:`controlplane.config.KafkaConfig` has them.
        folder: of the topic's table.
    """
    write = partial(_write, topic=topic, schema_ids=tuple(schema_ids.items()), folder=folder)
    return batch_files(records.select(*RawRow._fields).mapInArrow(write, TOLD_TYPE))


def _write(
    batches: Iterable[pa.RecordBatch], topic: str, schema_ids: tuple[tuple[int, str], ...], folder: StoragePath
) -> Iterator[pa.RecordBatch]:
    contract = TABLE_OF_TOPIC[topic]
    framing = framing_of(schema_ids)
    files, refused = HistoryFiles(folder, contract), 0
    for batch in batches:
        decoded = record_rows(topic, raw_records(batch), framing)
        files.write(decoded.rows)
        refused += decoded.refused
    yield told_by_task({contract.name: files.close()}, refused)
