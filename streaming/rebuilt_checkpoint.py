"""Making a lost or damaged checkpoint anew, from what its stream has written."""

from typing import NamedTuple

from controlplane.config import ClusterConfig
from streaming.checkpoints import Offsets, make_checkpoint
from streaming.contracts.records import TABLE_OF_TOPIC
from streaming.gaps import GapsTable, KeptOffsets
from streaming.storage import StoragePath
from streaming.stored_offsets import StoredOffsets


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

    A batch is added to its table whole, and batches follow one another; so nothing before that row is missing, and
    nothing behind it is there. Records behind it that were refused are read, and refused, a second time. Of a partition
    without rows everything that Kafka has is read.

    Args:
        warehouse_dir: the folder of the tables; no pipeline writes them meanwhile.
        folder: that of the checkpoint.
        cluster: determines the topic's whole name.
        topic: without the cluster's prefix.
        kept: asks Kafka what it has.
    """
    stored = StoredOffsets(warehouse_dir, TABLE_OF_TOPIC[topic]).extents(topic)
    begin = {partition: offsets.start for partition, offsets in kept(topic).items()}
    begin.update({partition: offsets.stop for partition, offsets in stored.items()})
    for gap in GapsTable(warehouse_dir).recorded(topic):
        begin[gap.partition] = max(begin.get(gap.partition, 0), gap.offsets.stop)
    return RebuiltCheckpoint(begin, make_checkpoint(folder, cluster.topic(topic), begin))
