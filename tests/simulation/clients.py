"""The in-memory Kafka and lease store as a simulated process sees them: through its network, by its own clock."""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from controlplane.config import HEARTBEATS
from controlplane.core.election.contenders import Contending
from controlplane.core.log.log_mark import LogMark
from controlplane.core.values.identifiers import ControllerId, ProcessId, Term, TopicPartition
from controlplane.errors import LogUnavailableError
from controlplane.kafka_rules.promises import DescribedKafka
from controlplane.ports import (
    AcquireOutcome,
    CommitOutcome,
    ContenderNote,
    Delivery,
    LeaseGranted,
    LeaseHeld,
    LeaseMissing,
    OutgoingRecord,
    PolledBatch,
    RawRecord,
    RenewOutcome,
)
from controlplane.testing import (
    MemoryEventWriter,
    MemoryLeaseStore,
    MemoryLogReader,
    MemoryTopicInspector,
    MemoryTransactionalWriter,
)
from tests.simulation.network import Link

_Answer = TypeVar("_Answer")

_FLUSH_STEP_MS = 10
_QUERY_STEP_MS = 50
_FETCH_MS = 3
"""How long the broker waits for more before it answers a fetch: what comes about the same time comes in one batch."""
TICK_KEYS = b"c"
"""Controllers' names begin like this, and nodes' do not: so keys tell ticks from heartbeats."""


class SimulatedReader:
    """Implements :class:`controlplane.ports.LogReader`."""

    def __init__(self, machine: Link) -> None:
        """Of this machine."""
        self._machine = machine
        self._inner = MemoryLogReader(machine.stores.cluster, machine.stores.broker)
        self._inner.held_back = machine.network.held_back
        self._inner.stale_ends = machine.network.stale_ends
        self._inner.unreachable = machine.network.unreachable
        self._topics: frozenset[str] = frozenset()

    def _ask(self, query: Callable[[MemoryLogReader], _Answer]) -> _Answer:
        """Repeat a query until it is answered or this machine's patience is over."""
        machine = self._machine
        deadline_ms = machine.scheduler.now_ms + machine.network.patience_ms
        while True:
            machine.latency()
            self._inner.connected = machine.network.kafka
            try:
                return query(self._inner)
            except LogUnavailableError:
                if machine.scheduler.now_ms >= deadline_ms:
                    raise
            machine.scheduler.sleep(_QUERY_STEP_MS)

    def partition_count(self, topic: str) -> int:
        """See :meth:`controlplane.ports.LogReader.partition_count`."""
        return self._ask(lambda reader: reader.partition_count(topic))

    def offsets_at_time(self, topic: str, time_ms: int, *, only_answering: bool = False) -> dict[TopicPartition, int]:
        """See :meth:`controlplane.ports.LogReader.offsets_at_time`."""
        return self._ask(lambda reader: reader.offsets_at_time(topic, time_ms, only_answering=only_answering))

    def start_offsets(self, topic: str, *, only_answering: bool = False) -> dict[TopicPartition, int]:
        """See :meth:`controlplane.ports.LogReader.start_offsets`."""
        return self._ask(lambda reader: reader.start_offsets(topic, only_answering=only_answering))

    def end_offsets(self, topic: str, *, only_answering: bool = False) -> dict[TopicPartition, int]:
        """See :meth:`controlplane.ports.LogReader.end_offsets`."""
        return self._ask(lambda reader: reader.end_offsets(topic, only_answering=only_answering))

    def assign(self, positions: Mapping[TopicPartition, int]) -> None:
        """See :meth:`controlplane.ports.LogReader.assign`."""
        self._topics = frozenset(self._machine.stores.cluster.topic(place.topic) for place in positions)
        self._inner.assign(positions)

    def poll(self, max_records: int, timeout_ms: int) -> PolledBatch:
        """See :meth:`controlplane.ports.LogReader.poll`: what is new arrives after the network's time."""
        machine, scheduler, stores = self._machine, self._machine.scheduler, self._machine.stores
        scheduler.require_alive()
        deadline_ms = scheduler.now_ms + timeout_ms
        turns = 0
        while True:
            self._inner.connected = machine.network.kafka
            batch = self._inner.poll(min(max_records, stores.fetch_records), 0)
            remaining_ms = deadline_ms - scheduler.now_ms
            if batch.records or batch.ended or remaining_ms <= 0:
                scheduler.events += _news_in(batch.records, turns)
                return batch
            stores.news.wait(self._topics, machine.travel_ms() + _FETCH_MS, remaining_ms)
            turns += 1

    def close(self) -> None:
        """See :meth:`controlplane.ports.LogReader.close`."""
        self._inner.close()


def _news_in(records: Sequence[RawRecord], turns: int) -> int:
    """How many deliveries these are, less the turns that were taken for nothing but ticks."""
    news = sum(1 for each in records if each.topic != HEARTBEATS or not (each.key or b"").startswith(TICK_KEYS))
    return news or (-turns if records else 0)


class SimulatedTransactionalWriter:
    """Implements :class:`controlplane.ports.TransactionalWriter`."""

    def __init__(self, machine: Link) -> None:
        """Of this machine."""
        self._machine = machine
        self._inner = MemoryTransactionalWriter(machine.stores.cluster, machine.stores.broker)
        self._inner.unreachable = machine.network.unreachable

    def _reach(self) -> MemoryTransactionalWriter:
        self._machine.latency()
        self._inner.connected = self._machine.network.kafka
        return self._inner

    @property
    def transaction_timeout_ms(self) -> int:
        """See :meth:`controlplane.ports.TransactionalWriter.transaction_timeout_ms`."""
        return self._inner.transaction_timeout_ms

    def open(self) -> None:
        """See :meth:`controlplane.ports.TransactionalWriter.open`."""
        self._reach().open()

    def write_barrier(self, records: Sequence[OutgoingRecord]) -> dict[TopicPartition, int]:
        """See :meth:`controlplane.ports.TransactionalWriter.write_barrier`."""
        offsets = self._reach().write_barrier(records)
        self._machine.latency()
        return offsets

    def commit(self, records: Sequence[OutgoingRecord]) -> CommitOutcome:
        """See :meth:`controlplane.ports.TransactionalWriter.commit`."""
        outcome = self._reach().commit(records)
        self._machine.latency()
        return outcome

    def resolve(self, timeout_ms: int) -> CommitOutcome:
        """See :meth:`controlplane.ports.TransactionalWriter.resolve`."""
        outcome = self._reach().resolve(0)
        if outcome is CommitOutcome.UNKNOWN:
            self._machine.scheduler.sleep(timeout_ms)
        return outcome

    def close(self) -> None:
        """See :meth:`controlplane.ports.TransactionalWriter.close`."""
        self._inner.close()


class SimulatedEventWriter:
    """Implements :class:`controlplane.ports.EventWriter`.

    Attributes:
        is_stuck: whether nothing is sent or acknowledged, although the machine reaches Kafka.
    """

    def __init__(self, machine: Link, message_timeout_ms: int) -> None:
        """Of this machine."""
        self.is_stuck = False
        self._machine = machine
        self._inner = MemoryEventWriter(machine.stores.cluster, machine.stores.broker, message_timeout_ms)
        self._inner.unreachable = machine.network.unreachable

    def _reach(self) -> MemoryEventWriter:
        self._machine.scheduler.require_alive()
        self._inner.connected = self._machine.network.kafka and not self.is_stuck
        self._inner.ahead_ms = self._machine.clock.wall_step_ms
        return self._inner

    def send(self, record: OutgoingRecord, on_delivery: Callable[[Delivery], None] | None = None) -> None:
        """See :meth:`controlplane.ports.EventWriter.send`."""
        self._reach().send(record, on_delivery)

    def poll(self, timeout_ms: int) -> None:
        """See :meth:`controlplane.ports.EventWriter.poll`."""
        self._reach().poll(timeout_ms)

    @property
    def awaits_delivery(self) -> bool:
        """See :meth:`controlplane.ports.EventWriter.awaits_delivery`."""
        return self._inner.awaits_delivery

    def flush(self, timeout_ms: int) -> int:
        """See :meth:`controlplane.ports.EventWriter.flush`."""
        deadline_ms = self._machine.scheduler.now_ms + timeout_ms
        while (waiting := self._reach().flush(0)) and self._machine.scheduler.now_ms < deadline_ms:
            self._machine.scheduler.sleep(_FLUSH_STEP_MS)
        return waiting

    def partition_count(self, topic: str) -> int:
        """See :meth:`controlplane.ports.EventWriter.partition_count`."""
        self._machine.latency()
        return self._reach().partition_count(topic)

    def close(self) -> None:
        """See :meth:`controlplane.ports.EventWriter.close`."""
        self._inner.connected = False


class SimulatedTopicInspector:
    """Implements :class:`controlplane.ports.TopicInspector`."""

    def __init__(self, machine: Link) -> None:
        """Of this machine."""
        self._machine = machine
        self._inner = MemoryTopicInspector(machine.stores.broker)

    def describe(self, topics: Sequence[str]) -> DescribedKafka:
        """See :meth:`controlplane.ports.TopicInspector.describe`."""
        self._machine.latency()
        self._inner.connected = self._machine.network.kafka
        return self._inner.describe(topics)


class SimulatedLeaseStore:
    """Implements :class:`controlplane.ports.LeaseStore`: without an answer a request takes the whole time limit."""

    def __init__(self, machine: Link, timeout_ms: int, process: ProcessId) -> None:
        """Of this machine, for this process on it."""
        self._machine = machine
        self._timeout_ms = timeout_ms
        self._process = process
        self._asked = machine.leases
        self._inner = MemoryLeaseStore(self._asked, self._process)

    def _reach(self) -> MemoryLeaseStore:
        machine = self._machine
        machine.latency()
        # The machine may be led to another one while this request waits for its answer.
        self._asked = asked = machine.leases
        self._inner = MemoryLeaseStore(asked, self._process)
        self._inner.connected = machine.network.lease_store
        if not (self._inner.connected and asked.available):
            machine.scheduler.sleep(self._timeout_ms)
        if self._inner.connected and asked.available and not asked.refusal:
            machine.lease_store_answered = True
        return self._inner

    def acquire(
        self, owner: ControllerId, floor: Term, duration_ms: int, priority: int | None = None
    ) -> AcquireOutcome:
        """See :meth:`controlplane.ports.LeaseStore.acquire`."""
        store = self._reach()
        now_ms, lease = self._asked.clock.wall_ms(), self._asked.lease
        other = "" if lease.is_held_by(now_ms, owner, self._process) else lease.holder(now_ms)
        outcome = store.acquire(owner, floor, duration_ms, priority)
        if isinstance(outcome, LeaseGranted):
            self._machine.stores.on_grant(owner, other, floor, outcome.term)
        self._machine.latency()
        return outcome

    def renew(self, owner: ControllerId, term: Term, duration_ms: int, priority: int = 0) -> RenewOutcome:
        """See :meth:`controlplane.ports.LeaseStore.renew`."""
        outcome = self._reach().renew(owner, term, duration_ms, priority)
        self._machine.latency()
        return outcome

    def release(self, owner: ControllerId, term: Term) -> bool:
        """See :meth:`controlplane.ports.LeaseStore.release`."""
        return self._reach().release(owner, term)

    def contenders(self) -> Sequence[Contending]:
        """See :meth:`controlplane.ports.LeaseStore.contenders`."""
        return self._reach().contenders()

    def read(self) -> LeaseHeld | LeaseMissing:
        """See :meth:`controlplane.ports.LeaseStore.read`."""
        return self._reach().read()

    def read_log_id(self) -> str | None:
        """See :meth:`controlplane.ports.LeaseStore.read_log_id`."""
        return self._reach().read_log_id()

    def write_log_id(self, log_id: str) -> None:
        """See :meth:`controlplane.ports.LeaseStore.write_log_id`."""
        self._reach().write_log_id(log_id)

    def read_mark(self) -> LogMark | None:
        """See :meth:`controlplane.ports.LeaseStore.read_mark`."""
        return self._reach().read_mark()

    def write_mark(self, mark: LogMark) -> None:
        """See :meth:`controlplane.ports.LeaseStore.write_mark`."""
        self._reach().write_mark(mark)

    def write_note(self, owner: ControllerId, acknowledged_ms: int, longest_unanswered_ms: int | None) -> None:
        """See :meth:`controlplane.ports.LeaseStore.write_note`."""
        self._reach().write_note(owner, acknowledged_ms, longest_unanswered_ms)

    def read_note(self, owner: ControllerId) -> ContenderNote:
        """See :meth:`controlplane.ports.LeaseStore.read_note`."""
        return self._reach().read_note(owner)

    def close(self) -> None:
        """See :meth:`controlplane.ports.LeaseStore.close`."""
