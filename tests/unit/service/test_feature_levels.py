"""A controller of an older feature level beside a leader of a newer one."""

from dataclasses import replace

from controlplane.adapters.system_clock import SystemClock
from controlplane.codec.conversion import to_datum
from controlplane.codec.decisions import decision_key
from controlplane.codec.framing import default_framing
from controlplane.config import DECISIONS, ClusterConfig
from controlplane.core.cluster.policy import FEATURE_LEVEL, ClusterPolicy
from controlplane.core.log.decision import Decision
from controlplane.core.values.identifiers import Seq, Term, TopicPartition
from controlplane.errors import UnsupportedFeatureLevelError
from controlplane.inspection.past_states import table_of
from controlplane.inspection.readers import read_routing_table
from controlplane.inspection.source import LogSource
from controlplane.ports import CommitOutcome, LeaseGranted, LogReader, OutgoingRecord, PolledBatch
from controlplane.testing import MemoryLeaseStore, MemoryTransactionalWriter
from tests.helpers.memory_cluster import ObservedCluster
from tests.helpers.polling import poll_until
from tests.helpers.published_world import PublishedWorld

LEASE_MS = 60_000


class SlowReader:
    """A reader that does not get the decisions that come after it was opened."""

    def __init__(self, reader: LogReader) -> None:
        """Read through another one."""
        self._reader = reader
        self._end = reader.end_offsets(DECISIONS)[TopicPartition(DECISIONS, 0)]

    def __getattr__(self, name: str) -> object:
        """Everything else is the other one's."""
        return getattr(self._reader, name)

    def poll(self, max_records: int, timeout_ms: int) -> PolledBatch:
        """Without the newest decisions."""
        batch = self._reader.poll(max_records, timeout_ms)
        records = [each for each in batch.records if each.topic != DECISIONS or each.offset < self._end]
        return PolledBatch(records, batch.ended)


class SlowCluster(ObservedCluster):
    """A cluster whose controllers get new decisions from new readers only."""

    def reader(self) -> LogReader:
        """See :meth:`ObservedCluster.reader`."""
        return SlowReader(super().reader())  # type: ignore[return-value]


def of_the_next_level(decision: Decision) -> OutgoingRecord:
    """A decision that follows this one, as only a newer release writes it."""
    newer = replace(
        decision,
        seq=Seq(decision.seq + 1),
        feature_level=FEATURE_LEVEL + 1,
        events=(),
        previous_digest=decision.digest(),
        certificate=None,
    )
    datum = {"part": 0, "part_count": 1, "continues": False, **to_datum(newer)}
    return OutgoingRecord(DECISIONS, decision_key(newer.seq), default_framing().encode("Decision", datum), 0)


def test_it_wins_the_lease_and_fences_nobody() -> None:
    """The level was raised a moment ago, and it has not read of it: it reads the log before it fences, and ends."""
    with SlowCluster() as world:
        first = world.start("c1")
        world.wait_until(world.decisions)
        first.end()
        last = world.decisions()[-1]
        lease = MemoryLeaseStore(world.leases)
        leader = MemoryTransactionalWriter(world.cluster, world.broker)
        granted = lease.acquire("newer", last.term, LEASE_MS)
        assert isinstance(granted, LeaseGranted)
        leader.open()
        older = world.start("older")
        poll_until(lambda: any(b"older" in (record.key or b"") for record in world.records("heartbeats")))
        raised = of_the_next_level(last)
        assert leader.commit([raised]) is CommitOutcome.COMMITTED
        assert older.alive
        lease.release("newer", granted.term)
        poll_until(lambda: not older.alive)
        assert isinstance(older.failure, UnsupportedFeatureLevelError)
        assert f"needs feature level {FEATURE_LEVEL + 1}" in str(older.failure)
        assert leader.commit([raised]) is CommitOutcome.COMMITTED, "the leader was fenced"
        # It gave the lease back, so that the leader has it again at once.
        again = lease.acquire("newer", Term(0), LEASE_MS)
        assert isinstance(again, LeaseGranted)
        assert again.term > granted.term + 1


def test_a_raised_level_writes_every_row_in_its_new_version() -> None:
    """Otherwise the next leader finds rows of two versions, takes the table for damaged, and repairs it first."""
    world = PublishedWorld(ClusterConfig("test"), ClusterPolicy(slot_count=8), first_feature_level=2)
    world.admit("n1", "n2")
    world.ask("raise_feature_level", level="3")
    shown = read_routing_table(LogSource(world.reader(), SystemClock()))
    assert shown is not None
    assert shown.digest == table_of(world.state).digest
