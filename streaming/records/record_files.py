"""Executors decode the records of a topic and write their rows into files."""

from collections.abc import Iterable, Iterator, Mapping
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame

from streaming.contracts.records import TABLE_OF_TOPIC, TICKS_TABLE
from streaming.records.decode import RawRow, framing_of
from streaming.records.record_rows import raw_records, record_rows, table_of
from streaming.records.tick_rows import PlacedTick, tick_rows
from streaming.storage import StoragePath
from streaming.tables.day_files import TASK_RESULT_TYPE, BatchFiles, DayFiles, batch_files, task_result, without_day
from streaming.worker_setup import set_up_worker


def write_record_files(
    records: DataFrame, topic: str, schema_ids: Mapping[int, str], folders: Mapping[str, StoragePath]
) -> BatchFiles:
    """Write the usable records of a batch; refused ones are passed over.

    Args:
        records: as :func:`streaming.sources.read_stream` returns them. Each part becomes a file for each table and day.
            A partition of Kafka is in one part, so that its ticks of a minute become one row.
        topic: an input topic or ``dead-letters``, without the cluster's prefix.
        schema_ids: as :class:`controlplane.config.KafkaConfig` has them.
        folders: of the topic's tables, by their names.
    """
    write = partial(_write, topic=topic, schema_ids=tuple(schema_ids.items()), folders=folders)
    return batch_files(records.select(*RawRow._fields).mapInArrow(write, TASK_RESULT_TYPE))


def _write(
    batches: Iterable[pa.RecordBatch],
    topic: str,
    schema_ids: tuple[tuple[int, str], ...],
    folders: Mapping[str, StoragePath],
) -> Iterator[pa.RecordBatch]:
    set_up_worker()
    contract = TABLE_OF_TOPIC[topic]
    framing = framing_of(schema_ids)
    files, ticks, refused = DayFiles(folders[contract.name], contract), list[PlacedTick](), 0
    for batch in batches:
        decoded = record_rows(topic, raw_records(batch), framing)
        files.write(decoded.rows)
        ticks += decoded.ticks
        refused += decoded.refused
    written = {contract.name: files.close()}
    if ticks:
        of_ticks = DayFiles(folders[TICKS_TABLE.name], TICKS_TABLE, dated_by="minute_ms")
        of_ticks.write(table_of(list(tick_rows(ticks)), without_day(TICKS_TABLE)))
        written[TICKS_TABLE.name] = of_ticks.close()
    yield task_result(written, refused)
