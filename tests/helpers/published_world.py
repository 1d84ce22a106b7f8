"""A :class:`World` whose inputs, decisions and table rows are also in an in-memory Kafka, for readers."""

from collections.abc import Sequence

from controlplane.codec.input_checks import key_of
from controlplane.codec.inputs import encode_input
from controlplane.config import (
    CANDIDATES,
    DEAD_LETTERS,
    DECISIONS,
    HEARTBEATS,
    INTENTS,
    LOAD_REPORTS,
    MEMBERSHIP,
    ROUTING_TABLE,
    SNAPSHOTS,
    ClusterConfig,
)
from controlplane.core.cluster.policy import FEATURE_LEVEL, ClusterPolicy
from controlplane.core.log.draft import SealedDecision
from controlplane.core.log.inputs import InputPayload
from controlplane.core.slots.policies import BUILT_IN_POLICIES
from controlplane.core.slots.policy_contract import SlotPolicies
from controlplane.core.values.inputs import InputRecord
from controlplane.ports import CommitOutcome, OutgoingRecord
from controlplane.service.publisher import TablePublisher
from controlplane.testing import MemoryBroker, MemoryEventWriter, MemoryLogReader, MemoryTransactionalWriter
from controlplane.testing.virtual_clock import VirtualClock
from tests.helpers.world import PARTITIONS, START_MS, World

SINGLE_PARTITION_TOPICS = (MEMBERSHIP, INTENTS, CANDIDATES, DECISIONS, ROUTING_TABLE, SNAPSHOTS, DEAD_LETTERS)


class PublishedWorld(World):
    """The same leader, with a broker behind it."""

    def __init__(
        self,
        cluster: ClusterConfig,
        policy: ClusterPolicy | None = None,
        slot_policies: SlotPolicies = BUILT_IN_POLICIES,
        first_feature_level: int = FEATURE_LEVEL,
    ) -> None:
        """A cluster with all topics, whose first term is open and published."""
        self.cluster, self.cluster_name = cluster, cluster.name
        self.clock = VirtualClock(wall_ms=START_MS)
        self.broker = MemoryBroker(self.clock)
        for topic in SINGLE_PARTITION_TOPICS:
            self.broker.create_topic(cluster.topic(topic))
        for topic in (HEARTBEATS, LOAD_REPORTS):
            self.broker.create_topic(cluster.topic(topic), PARTITIONS)
        self._events = MemoryEventWriter(cluster, self.broker)
        self._writer = MemoryTransactionalWriter(cluster, self.broker)
        self._writer.open()
        self._publisher = TablePublisher({})
        self.foreign: Sequence[str] = ()
        super().__init__(policy, slot_policies, first_feature_level)

    def append(self, topic: str, partition: int, payload: InputPayload) -> InputRecord:
        """Append an input at the present time, in the broker too."""
        self.clock.advance(self.now_ms - self.clock.wall_ms())
        self._events.send(OutgoingRecord(topic, key_of(payload), encode_input(payload), partition))
        self._events.flush(0)
        return super().append(topic, partition, payload)

    def commit(self, sealed: SealedDecision) -> None:
        """Commit a decision with its rows, in the broker too."""
        super().commit(sealed)
        rows = self._publisher.whole_table(sealed.state, self.foreign) if sealed.republish else sealed.rows
        publication = self._publisher.publication(sealed, rows)
        assert self._writer.commit(publication.records) is CommitOutcome.COMMITTED
        self._publisher.committed(publication)

    def reader(self) -> MemoryLogReader:
        """A reader of its own."""
        return MemoryLogReader(self.cluster, self.broker)
