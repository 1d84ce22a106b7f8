"""Making a lost or damaged checkpoint anew, from what its stream has written."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import structlog
from deltalake import CommitProperties, DeltaTable
from deltalake.exceptions import DeltaError

from controlplane.config import ClusterConfig
from controlplane.errors import PrerequisiteError
from streaming.continuity.checkpoints import Offsets, make_checkpoint, move_aside, stored_query_id, stored_topic_id
from streaming.continuity.gaps import GapsTable, KeptOffsets, TopicIds, refuse_another
from streaming.continuity.stored_offsets import StoredOffsets, joined_extents, stored_offsets
from streaming.contracts.catalog import LAST_TABLE
from streaming.contracts.records import TABLE_OF_TOPIC, tables_of
from streaming.error_texts import HOW_TO_MEND
from streaming.storage import StoragePath
from streaming.tables.stored_table import MENDED, StoredTable
from streaming.tables.table_writer import TableWriter

_log = structlog.get_logger(__name__)


class RebuiltCheckpoint(NamedTuple):
    """What was made.

    Attributes:
        begin: the offset of each partition from which the stream goes on.
        former: where the former checkpoint is now; None: there was none.
    """

    begin: Offsets
    former: Path | None


def rebuild_checkpoint(
    tables_dir: StoragePath,
    folder: StoragePath,
    cluster: ClusterConfig,
    topic: str,
    kept: KeptOffsets,
    topic_ids: TopicIds,
) -> RebuiltCheckpoint:
    """Make a checkpoint with which the stream of a topic goes on behind the newest row of each partition.

    A stream that writes several tables may have been killed between two of them. Then its newest batch is taken out of
    the topic's table, to be read again, if Kafka still has it and the former checkpoint has the id by which the tables
    know the stream. The batch before it is in every table, because batches follow one another. Where one of two tables
    of records was restored from an older copy, the other one is taken back as far. Records behind the newest row that
    were refused are read, and refused, a second time. Of a partition without rows everything that Kafka has is read.

    The former checkpoint is moved aside before any row is taken out: a crash afterwards leaves tables without a
    checkpoint, with which no pipeline starts, and which this function mends.

    Args:
        tables_dir: the folder of the tables; no pipeline writes them meanwhile.
        folder: that of the checkpoint.
        cluster: determines the topic's whole name.
        topic: without the cluster's prefix.
        kept: asks Kafka what it has.
        topic_ids: asks Kafka for the ids of topics.

    Raises:
        LogContinuityError: the topic is another one than the one that was read.
        PrerequisiteError: the newest batch cannot be taken back, another program has taken back one of two tables of
            records, or the former checkpoint cannot be moved aside.
        RetryableError: Kafka or the checkpoint's storage does not answer.
    """
    _refuse_taken_back(tables_dir, topic)
    there = kept(topic)
    query_id, topic_id = stored_query_id(folder), stored_topic_id(folder)
    refuse_another(topic, topic_id, topic_ids(topic))
    former = move_aside(folder)
    if query_id is not None and topic in LAST_TABLE:
        _take_back_partial_batches(tables_dir, topic, query_id, there)
    stored = joined_extents(stored_offsets(tables_dir, table).extents(topic) for table in tables_of(topic))
    begin = {partition: offsets.start for partition, offsets in there.items()}
    begin.update({partition: offsets.stop for partition, offsets in stored.items()})
    for gap in GapsTable(tables_dir).recorded(topic):
        begin[gap.partition] = max(begin.get(gap.partition, 0), gap.offsets.stop)
    made = make_checkpoint(folder, cluster.topic(topic), begin, topic_id)
    for table in tables_of(topic):
        TableWriter(tables_dir, table, made).append_files((), 0)
    return RebuiltCheckpoint(begin, former)


def _refuse_taken_back(tables_dir: StoragePath, topic: str) -> None:
    """Refuse tables that have to fit together, if one of them does not tell any more which batches it has."""
    tables = tables_of(topic)
    if len(tables) == 1:
        return
    for table in tables:
        if StoredTable(tables_dir, table).was_taken_back:
            names = " and ".join(each.name for each in tables)
            raise PrerequisiteError(
                f"the table {table.name} in {tables_dir} was taken back to an older version, and does not tell "
                f"which batches it has: restore the folders of {names} from copies, or move both away with their "
                f"checkpoint; {HOW_TO_MEND}"
            )


def _take_back_partial_batches(tables_dir: StoragePath, topic: str, query_id: str, kept: Mapping[int, range]) -> None:
    """Give the table that is ahead of the stream's others the version at the newest batch that all of them have."""
    first, last = (TableWriter(tables_dir, each, query_id) for each in (TABLE_OF_TOPIC[topic], LAST_TABLE[topic]))
    if first.was_written_by_another and last.was_written_by_another:
        return  # under this id, which is that of an earlier checkpoint, none of the newest batches was written
    ahead, batch = _ahead(first, last, is_of_records=LAST_TABLE[topic] in tables_of(topic))
    if ahead is None:
        return
    place = str(ahead.folder)
    try:
        version = _version_at(place, query_id, batch)
        now, before = (stored_offsets(tables_dir, ahead.contract, each) for each in (None, version))
        if _is_lost(topic, now, before, kept):
            _log.warning("Kafka no longer has the newest batch: it is in a part of the tables only", topic=topic)
        else:
            DeltaTable(place).restore(version, commit_properties=CommitProperties(custom_metadata={MENDED: topic}))
    except DeltaError as error:
        message = f"the newest batch of {place} cannot be taken back, because an older version is gone: {error}"
        raise PrerequisiteError(f"{message}; {HOW_TO_MEND}") from error


def _ahead(first: TableWriter, last: TableWriter, *, is_of_records: bool) -> tuple[TableWriter | None, int]:
    """The table that has batches which the other one has not, and the newest batch that both have.

    A kill leaves one batch more in the first table. The tables differ by more if they were restored from copies of
    different times. What the averages have of a batch that is read again does not count in them twice. A table that
    never had a batch came with an upgrade.
    """
    of_first, of_last = first.written_version, last.written_version
    if of_first is not None and not last.has(of_first):
        return first, of_first - 1 if of_last is None else of_last
    if is_of_records and of_last is not None and not first.has(of_last):
        return last, -1 if of_first is None else of_first
    return None, -1


def _is_lost(topic: str, now: StoredOffsets, before: StoredOffsets, kept: Mapping[int, range]) -> bool:
    """Whether Kafka no longer has all rows that a table had not before; other partitions are not asked for."""
    ends = {partition: offsets.stop for partition, offsets in before.extents(topic).items()}
    for partition, offsets in now.extents(topic).items():
        own = now.within(topic, partition, range(ends.get(partition, 0), offsets.stop)).tolist()
        there = kept.get(partition, range(0))
        if own and (own[0] not in there or own[-1] not in there):
            return True
    return False


def _version_at(place: str, query_id: str, batch: int) -> int:
    """The newest version that has no batch behind this one."""
    table = DeltaTable(place)
    version = table.version()
    while (written := table.transaction_version(query_id)) is not None and written > batch:
        version -= 1
        table = DeltaTable(place, version=version)
    return version
