"""Making a lost or damaged checkpoint anew, from what its stream has written."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import structlog
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from controlplane.config import ClusterConfig
from controlplane.errors import PrerequisiteError
from streaming.continuity.checkpoints import Offsets, make_checkpoint, move_aside, stored_query_id
from streaming.continuity.gaps import GapsTable, KeptOffsets
from streaming.continuity.stored_offsets import StoredOffsets, joined_extents, stored_offsets
from streaming.contracts.catalog import LAST_TABLE
from streaming.contracts.records import TABLE_OF_TOPIC, tables_of
from streaming.storage import StoragePath
from streaming.tables.driver_tables import DriverTable
from streaming.tables.warehouse import HOW_TO_MEND

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
    warehouse_dir: StoragePath, folder: StoragePath, cluster: ClusterConfig, topic: str, kept: KeptOffsets
) -> RebuiltCheckpoint:
    """Make a checkpoint with which the stream of a topic goes on behind the newest row of each partition.

    A stream that writes several tables may have been killed between two of them. Then its newest batch is taken out of
    the topic's table, to be read again, if Kafka still has it and the former checkpoint has the id by which the tables
    know the stream. The batch before it is in every table, because batches follow one another. Records behind the
    newest row that were refused are read, and refused, a second time. Of a partition without rows everything that Kafka
    has is read.

    The former checkpoint is moved aside before any row is taken out: a crash afterwards leaves tables without a
    checkpoint, with which no pipeline starts, and which this function mends.

    Args:
        warehouse_dir: the folder of the tables; no pipeline writes them meanwhile.
        folder: that of the checkpoint.
        cluster: determines the topic's whole name.
        topic: without the cluster's prefix.
        kept: asks Kafka what it has.

    Raises:
        PrerequisiteError: the newest batch cannot be taken back, or the former checkpoint cannot be moved aside.
        RetryableError: Kafka or the checkpoint's storage does not answer.
    """
    there = kept(topic)
    query_id = stored_query_id(folder)
    former = move_aside(folder)
    if query_id is not None and topic in LAST_TABLE:
        _take_back_partial_batch(warehouse_dir, topic, query_id, there)
    stored = joined_extents(stored_offsets(warehouse_dir, table).extents(topic) for table in tables_of(topic))
    begin = {partition: offsets.start for partition, offsets in there.items()}
    begin.update({partition: offsets.stop for partition, offsets in stored.items()})
    for gap in GapsTable(warehouse_dir).recorded(topic):
        begin[gap.partition] = max(begin.get(gap.partition, 0), gap.offsets.stop)
    made = make_checkpoint(folder, cluster.topic(topic), begin)
    for table in tables_of(topic):
        DriverTable(warehouse_dir, table, made).append_files((), 0)
    return RebuiltCheckpoint(begin, former)


def _take_back_partial_batch(warehouse_dir: StoragePath, topic: str, query_id: str, kept: Mapping[int, range]) -> None:
    """Give the topic's table the version before a batch that the stream's last table does not have."""
    contract = TABLE_OF_TOPIC[topic]
    first, last = (DriverTable(warehouse_dir, each, query_id) for each in (contract, LAST_TABLE[topic]))
    batch = first.written_version
    if batch is None or last.has(batch):
        return
    place = str(warehouse_dir / contract.name)
    try:
        before = _version_before(place, query_id, batch)
        with_batch, without = (StoredOffsets(warehouse_dir, contract, version=each) for each in (None, before))
        if _is_lost(topic, with_batch, without, kept):
            _log.warning("Kafka no longer has the newest batch: it is in a part of the tables only", topic=topic)
        else:
            DeltaTable(place).restore(before)
    except DeltaError as error:
        message = f"the newest batch of {place} cannot be taken back, because an older version is gone: {error}"
        raise PrerequisiteError(f"{message}; {HOW_TO_MEND}") from error


def _is_lost(topic: str, with_batch: StoredOffsets, without: StoredOffsets, kept: Mapping[int, range]) -> bool:
    """Whether Kafka no longer has all rows of a batch; of a partition in which the batch has none, nothing is asked."""
    ends = {partition: offsets.stop for partition, offsets in without.extents(topic).items()}
    for partition, offsets in with_batch.extents(topic).items():
        own = with_batch.within(topic, partition, range(ends.get(partition, 0), offsets.stop)).tolist()
        there = kept.get(partition, range(0))
        if own and (own[0] not in there or own[-1] not in there):
            return True
    return False


def _version_before(place: str, query_id: str, batch: int) -> int:
    table = DeltaTable(place)
    version = table.version()
    while table.transaction_version(query_id) == batch:
        version -= 1
        table = DeltaTable(place, version=version)
    return version
