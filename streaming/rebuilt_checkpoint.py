"""Making a lost or damaged checkpoint anew, from what its stream has written."""

from typing import NamedTuple

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from controlplane.config import ClusterConfig
from controlplane.errors import PrerequisiteError
from streaming.checkpoints import HOW_TO_MEND, Offsets, make_checkpoint, stored_query_id
from streaming.contracts.records import tables_of
from streaming.gaps import GapsTable, KeptOffsets
from streaming.storage import StoragePath
from streaming.stored_offsets import joined_extents, stored_offsets


class RebuiltCheckpoint(NamedTuple):
    """What was made.

    Attributes:
        begin: the offset of each partition from which the stream goes on.
        former: where the former checkpoint is now; None: there was none.
    """

    begin: Offsets
    former: StoragePath | None


def rebuild_checkpoint(
    warehouse_dir: StoragePath, folder: StoragePath, cluster: ClusterConfig, topic: str, kept: KeptOffsets
) -> RebuiltCheckpoint:
    """Make a checkpoint with which the stream of a topic goes on behind the newest row of each partition.

    A stream writes its tables one after the other, and may have been killed between two of them. So its newest batch
    is taken back first, if the former checkpoint still has the id by which the tables know the stream: it is read
    again. The batch before it is in every table, because batches follow one another. Records behind the newest row that
    were refused are read, and refused, a second time. Of a partition without rows everything that Kafka has is read.

    Args:
        warehouse_dir: the folder of the tables; no pipeline writes them meanwhile.
        folder: that of the checkpoint.
        cluster: determines the topic's whole name.
        topic: without the cluster's prefix.
        kept: asks Kafka what it has.

    Raises:
        PrerequisiteError: the newest batch cannot be taken back, or the former checkpoint cannot be moved aside.
    """
    query_id = stored_query_id(folder)
    if query_id is not None:
        _take_back_newest_batch(warehouse_dir, topic, query_id)
    stored = joined_extents(stored_offsets(warehouse_dir, table).extents(topic) for table in tables_of(topic))
    begin = {partition: offsets.start for partition, offsets in kept(topic).items()}
    begin.update({partition: offsets.stop for partition, offsets in stored.items()})
    for gap in GapsTable(warehouse_dir).recorded(topic):
        begin[gap.partition] = max(begin.get(gap.partition, 0), gap.offsets.stop)
    return RebuiltCheckpoint(begin, make_checkpoint(folder, cluster.topic(topic), begin))


def _take_back_newest_batch(warehouse_dir: StoragePath, topic: str, query_id: str) -> None:
    """Give each table of a topic the version before the stream's newest batch, as a new version."""
    places = [str(warehouse_dir / table.name) for table in tables_of(topic)]
    batches = {place: DeltaTable(place).transaction_version(query_id) for place in places}
    newest = max((batch for batch in batches.values() if batch is not None), default=None)
    for place, batch in batches.items():
        if batch is not None and batch == newest:
            try:
                _take_back(place, query_id, batch)
            except DeltaError as error:
                message = f"the newest batch of {place} cannot be taken back, because an older version is gone: {error}"
                raise PrerequisiteError(f"{message}; {HOW_TO_MEND}") from error


def _take_back(place: str, query_id: str, batch: int) -> None:
    table = DeltaTable(place)
    version = table.version()
    while table.transaction_version(query_id) == batch:
        version -= 1
        table = DeltaTable(place, version=version)
    DeltaTable(place).restore(version)
