"""A follower of the table over a topic in memory, and records that no leader wrote."""

from controlplane.config import ROUTING_TABLE, ClusterConfig
from controlplane.ports import OutgoingRecord
from controlplane.testing import (
    MemoryBroker,
    MemoryEventWriter,
    MemoryLogReader,
    MemoryTransactionalWriter,
    VirtualClock,
)
from controlplane.topic_reading.table_follower import Progress, TableFollower
from tests.helpers.table_feed import TableFeed

CLUSTER = ClusterConfig("test")
TOPIC = CLUSTER.topic(ROUTING_TABLE)


class FollowedTable:
    """A broker, a hand-written table in it, and a follower of it."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.broker = MemoryBroker(self.clock)
        self.broker.create_topic(TOPIC)
        self.feed = self.new_feed()
        self.events = MemoryEventWriter(CLUSTER, self.broker)
        self.follower = TableFollower(MemoryLogReader(CLUSTER, self.broker))

    def new_feed(self, log_id: str = "log-1") -> TableFeed:
        """A writer of the table."""
        return TableFeed(MemoryTransactionalWriter(CLUSTER, self.broker), log_id=log_id)

    def steps(self, count: int) -> None:
        """Several steps, whatever they show."""
        for _ in range(count):
            self.follower.step(0)

    def read(self) -> Progress:
        """What a few steps bring: the reader reports an end only where a poll finds nothing more."""
        steps = [self.follower.step(0) for _ in range(3)]
        return Progress(tuple(table for step in steps for table in step.tables), any(step.ended for step in steps))

    def epochs(self) -> list[int]:
        """The epochs that one step shows."""
        return [int(table.epoch) for table in self.follower.step(0).tables]


def garbage(value: bytes) -> OutgoingRecord:
    """A record under a key that no leader writes."""
    return OutgoingRecord(ROUTING_TABLE, b"nonsense", value)


def damaged() -> FollowedTable:
    """A follower of epoch 1, and an epoch 2 that does not know of the foreign record before it."""
    setting = FollowedTable()
    setting.feed.node("a").slot(0, "a").commit()
    setting.follower.step(0)
    setting.feed.write(garbage(b"first"))
    setting.feed.slot(1, "a").commit()
    return setting
