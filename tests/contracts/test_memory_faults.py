"""What the in-memory world can do beyond the contracts: faults on demand, delays, compaction, virtual time."""

from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.adapters.system_clock import SystemClock
from controlplane.config import DECISIONS, ROUTING_TABLE, ClusterConfig
from controlplane.core.values.identifiers import Term, TopicPartition
from controlplane.errors import (
    ConfigurationError,
    InvariantViolationError,
    LeaseStoreUnavailableError,
    LogUnavailableError,
)
from controlplane.ports import CommitOutcome, Delivery, LeaseGranted, OutgoingRecord, RawRecord
from controlplane.testing import (
    CommitFault,
    MemoryBroker,
    MemoryEventWriter,
    MemoryLeaseServer,
    MemoryLeaseStore,
    MemoryLockServer,
    MemoryLockStore,
    MemoryLogReader,
    MemoryTransactionalWriter,
    VirtualClock,
)

CLUSTER = ClusterConfig("memory")
DECISIONS_0 = TopicPartition(DECISIONS, 0)
TABLE_0 = TopicPartition(ROUTING_TABLE, 0)


def decision(value: bytes) -> OutgoingRecord:
    """A record for ``decisions``."""
    return OutgoingRecord(DECISIONS, b"key", value)


def folded(records: Sequence[RawRecord]) -> dict[bytes | None, bytes]:
    """The rows that live after the last record."""
    rows: dict[bytes | None, bytes] = {}
    for record in records:
        if record.value is None:
            rows.pop(record.key, None)
        else:
            rows[record.key] = record.value
    return rows


class World:
    """A broker with two topics, on a clock of the test's own."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.broker = MemoryBroker(self.clock)
        for topic in (DECISIONS, ROUTING_TABLE):
            self.broker.create_topic(CLUSTER.topic(topic))

    def writer(self) -> MemoryTransactionalWriter:
        """An opened writer."""
        writer = MemoryTransactionalWriter(CLUSTER, self.broker)
        writer.open()
        return writer

    def seen(self, place: TopicPartition = DECISIONS_0) -> list[bytes | None]:
        """Everything visible in a partition."""
        reader = MemoryLogReader(CLUSTER, self.broker)
        reader.assign(reader.start_offsets(place.topic))
        return [record.value for record in reader.poll(10_000, 0).records]


@pytest.mark.parametrize(
    ("fault", "first", "finally_seen"),
    [
        (CommitFault.ANSWER_LOST_AFTER_COMMIT, CommitOutcome.UNKNOWN, [b"x"]),
        (CommitFault.ANSWER_LOST_BEFORE_COMMIT, CommitOutcome.UNKNOWN, []),
        (CommitFault.ABORTED, CommitOutcome.ABORTED, []),
        (CommitFault.FENCED, CommitOutcome.FENCED, []),
    ],
)
def test_ordered_faults_end_commits_as_ordered(
    fault: CommitFault, first: CommitOutcome, finally_seen: list[bytes]
) -> None:
    """A simulation orders each way in which a commit can end, and the leader has to be right in each."""
    world = World()
    writer = world.writer()
    world.broker.fail_next_commit(fault)
    assert writer.commit([decision(b"x")]) is first
    assert world.seen() == finally_seen
    if first is CommitOutcome.UNKNOWN:
        assert writer.resolve(0) is CommitOutcome.COMMITTED
        assert world.seen() == [b"x"]
    if first is not CommitOutcome.FENCED:
        assert writer.commit([decision(b"next")]) is CommitOutcome.COMMITTED


def test_a_transaction_left_open_ends_with_its_time_limit() -> None:
    """A dead leader's transaction holds readers back until then, and its writer is fenced without a rival."""
    world = World()
    writer = world.writer()
    world.broker.fail_next_commit(CommitFault.ANSWER_LOST_BEFORE_COMMIT)
    writer.commit([decision(b"lost")])
    MemoryEventWriter(CLUSTER, world.broker).send(decision(b"behind"))
    world.clock.advance(5_000)
    assert world.seen() == []
    world.clock.advance(1)
    assert world.seen() == [b"behind"]
    assert writer.resolve(0) is CommitOutcome.FENCED


@pytest.mark.parametrize(("away_ms", "outcome"), [(5_000, CommitOutcome.COMMITTED), (5_001, CommitOutcome.FENCED)])
def test_a_commit_into_an_outage_depends_on_its_length(away_ms: int, outcome: CommitOutcome) -> None:
    """Nothing is in the log before the broker is back; beyond the time limit nothing ever is."""
    world = World()
    writer = world.writer()
    world.broker.available = False
    assert writer.commit([decision(b"x")]) is CommitOutcome.UNKNOWN
    world.clock.advance(away_ms)
    world.broker.available = True
    assert world.seen() == []
    assert writer.resolve(0) is outcome
    assert world.seen() == ([b"x"] if outcome is CommitOutcome.COMMITTED else [])


def test_a_delayed_record_is_appended_when_it_is_due() -> None:
    """A heartbeat that was sent before a death may arrive after it; its append time is the arrival's."""
    world = World()
    writer = MemoryEventWriter(CLUSTER, world.broker)
    deliveries: list[Delivery] = []
    world.broker.delivery_delay_ms = 300
    sent_at_ms = world.clock.wall_ms()
    writer.send(decision(b"slow"), deliveries.append)
    world.broker.delivery_delay_ms = 0
    writer.send(decision(b"behind it"), deliveries.append)
    world.clock.advance(299)
    assert world.seen() == []
    world.clock.advance(201)
    assert world.seen() == [b"slow", b"behind it"]
    writer.poll(0)
    assert [delivery.append_time_ms - sent_at_ms for delivery in deliveries] == [300, 300]


def test_one_client_can_be_cut_off_alone() -> None:
    """A leader that has lost Kafka while everybody else has it: its ticks do not arrive, and it learns nothing."""
    world = World()
    cut_off, other = MemoryEventWriter(CLUSTER, world.broker), MemoryEventWriter(CLUSTER, world.broker)
    reader = MemoryLogReader(CLUSTER, world.broker)
    reader.assign({DECISIONS_0: 0})
    reader.connected = cut_off.connected = False
    told: list[Delivery] = []
    cut_off.send(decision(b"mine"), told.append)
    other.send(decision(b"theirs"))
    assert world.seen() == [b"theirs"]
    assert reader.poll(10, 0).records == []
    with pytest.raises(LogUnavailableError):
        reader.end_offsets(DECISIONS)
    world.clock.advance(1_000)
    assert cut_off.flush(0) == 1
    cut_off.connected = True
    assert cut_off.flush(0) == 0
    assert world.seen() == [b"theirs", b"mine"]
    assert told[0].append_time_ms == world.clock.wall_ms()


def test_a_full_queue_is_an_error_until_there_is_room() -> None:
    """Memory is bounded while the broker is away."""
    world = World()
    writer = MemoryEventWriter(CLUSTER, world.broker, queue_limit=2)
    world.broker.available = False
    writer.send(decision(b"1"))
    writer.send(decision(b"2"))
    with pytest.raises(LogUnavailableError, match="2 records wait"):
        writer.send(decision(b"3"))
    world.broker.available = True
    writer.flush(0)
    writer.send(decision(b"3"))
    assert world.seen() == [b"1", b"2", b"3"]


@given(
    writes=st.lists(
        st.tuples(st.sampled_from([b"a", b"b", b"c"]), st.sampled_from([b"1", b"2", None]), st.booleans()), max_size=20
    ),
    active_from=st.none() | st.integers(min_value=0, max_value=40),
    drop_tombstones=st.booleans(),
)
def test_compaction_keeps_the_last_of_each_key(
    writes: list[tuple[bytes, bytes | None, bool]], active_from: int | None, drop_tombstones: bool
) -> None:
    """Whoever folds the topic from its start gets the same rows before and after, and offsets do not move."""
    world = World()
    writer = world.writer()
    for key, value, aborted in writes:
        if aborted:
            world.broker.fail_next_commit(CommitFault.ABORTED)
        writer.commit([OutgoingRecord(ROUTING_TABLE, key, value)])
    reader = MemoryLogReader(CLUSTER, world.broker)
    reader.assign({TABLE_0: 0})
    before = reader.poll(1_000, 0).records
    ends = reader.end_offsets(ROUTING_TABLE)
    world.broker.compact(CLUSTER.topic(ROUTING_TABLE), active_from=active_from, drop_tombstones=drop_tombstones)
    reader.assign({TABLE_0: 0})
    after = reader.poll(1_000, 0).records
    assert set(after) <= set(before)
    assert folded(after) == folded(before)
    assert reader.end_offsets(ROUTING_TABLE) == ends
    limit = ends[TABLE_0] if active_from is None else active_from
    assert [record for record in after if record.offset >= limit] == [r for r in before if r.offset >= limit]
    cleaned = [record for record in after if record.offset < limit]
    assert len({record.key for record in cleaned}) == len(cleaned)
    assert not drop_tombstones or all(record.value is not None for record in cleaned)


def test_lease_faults_hit_whom_they_should() -> None:
    """One controller may lose the store while its rival still has it."""
    clock = VirtualClock()
    server = MemoryLeaseServer(clock)
    cut_off, other = MemoryLeaseStore(server), MemoryLeaseStore(server)
    cut_off.connected = False
    with pytest.raises(LeaseStoreUnavailableError):
        cut_off.acquire("a", Term(0), 1_000)
    assert other.acquire("b", Term(0), 1_000) == LeaseGranted(Term(1))


def lease_store() -> tuple[MemoryLeaseServer, MemoryLeaseStore]:
    """With its server."""
    server = MemoryLeaseServer(VirtualClock())
    return server, MemoryLeaseStore(server)


def lock_store() -> tuple[MemoryLockServer, MemoryLockStore]:
    """With its server."""
    server = MemoryLockServer(VirtualClock())
    return server, MemoryLockStore(server, "dc", "lock")


@pytest.mark.parametrize("connect", [lease_store, lock_store])
def test_a_server_fails_its_clients_as_it_is_told(
    connect: Callable[[], tuple[MemoryLeaseServer, MemoryLeaseStore] | tuple[MemoryLockServer, MemoryLockStore]],
) -> None:
    """Without an answer somebody tries again; what is refused is a setting."""
    server, store = connect()
    store.read()
    server.refusal = "your password was changed"
    with pytest.raises(ConfigurationError, match="password"):
        store.read()
    server.available = False
    with pytest.raises(LeaseStoreUnavailableError):
        store.read()
    server.available, server.refusal = True, ""
    store.read()
    store.close()
    with pytest.raises(LeaseStoreUnavailableError):
        store.read()


def test_virtual_time_goes_on_only_when_told() -> None:
    """Monotonic time never goes back; the wall clock is stepped as operators step it."""
    clock = VirtualClock(monotonic_ms=5, wall_ms=1_000)
    clock.advance(10)
    clock.step_wall(-500)
    assert (clock.monotonic_ms(), clock.wall_ms()) == (15, 510)
    with pytest.raises(InvariantViolationError):
        clock.advance(-1)


def test_the_system_clock_counts_milliseconds() -> None:
    """A wrong unit would make every deadline a thousand times too long or too short."""
    clock = SystemClock()
    first, wall = clock.monotonic_ms(), clock.wall_ms()
    assert 1_700_000_000_000 < wall < 4_000_000_000_000
    assert 0 <= clock.monotonic_ms() - first < 60_000
