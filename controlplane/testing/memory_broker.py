"""Kafka in memory: topics, append times from a virtual clock, transactions, fencing, and faults on demand.

It implements the guarantees that the control plane relies on, and nothing more. Time passes only when the clock is
advanced. Whatever becomes due meanwhile (delayed records, transactions that time out) happens at the next call of any
client.
"""

import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from controlplane.errors import FencedError, LogUnavailableError, PrerequisiteError
from controlplane.ports import Clock
from controlplane.testing.memory_partition import LeadingBroker, MemoryPartition, MemoryTransaction, TransactionState
from controlplane.testing.memory_sends import PendingSend, PendingSends

_TIMESTAMP_TYPE: Final = "message.timestamp.type"


class CommitFault(Enum):
    """A fault that replaces the success of the next commit; see :meth:`MemoryBroker.fail_next_commit`."""

    ANSWER_LOST_AFTER_COMMIT = "answer_lost_after_commit"
    """The transaction is committed, and the writer gets no answer."""
    ANSWER_LOST_BEFORE_COMMIT = "answer_lost_before_commit"
    """The records are appended, the transaction stays open, and the writer gets no answer."""
    ABORTED = "aborted"
    """The records are appended and aborted; the writer may continue."""
    FENCED = "fenced"
    """The transaction times out at the broker: it is aborted and its writer fenced, without another writer."""


@dataclass(slots=True)
class _Producer:
    """The transaction coordinator's record of one transactional id."""

    epoch: int = 0
    timeout_ms: int = 0
    transaction: MemoryTransaction | None = None


@dataclass(slots=True)
class _Topic:
    partitions: list[MemoryPartition] = field(default_factory=list)
    settings: dict[str, str] = field(default_factory=dict)


class MemoryBroker:
    """A Kafka cluster in memory. Thread-safe. Topic names include the cluster's prefix.

    Attributes:
        coordinator: the broker that coordinates transactions.
        coordinator_available: False lets no transaction begin or end; single records and readers go on.
        delivery_delay_ms: time between the sending of a single record and its append.
        on_change: called with the name of a topic in which there may be something new to read.
        while_open: called while a commit's records are appended and its transaction is not ended yet.
    """

    def __init__(self, clock: Clock) -> None:
        """Begin without topics; ``clock`` is the broker's time."""
        self.lock = threading.RLock()
        self.coordinator = LeadingBroker()
        self.coordinator_available = True
        self.delivery_delay_ms = 0
        self.on_change: Callable[[str], None] = _nobody_waits
        self.while_open: Callable[[], None] = _nobody_looks
        self._clock = clock
        self._available = True
        self._topics: dict[str, _Topic] = {}
        self._producers: dict[str, _Producer] = {}
        self._sends = PendingSends(clock, self.takes_records, self.find_partition, self._tell_change)
        self._faults: deque[CommitFault] = deque()
        self._leaderless: set[tuple[str, int]] = set()
        self._read_only: set[tuple[str, int]] = set()

    # -- for the operator and the fault injector ---------------------------------------------------------------------

    @property
    def available(self) -> bool:
        """False while the broker is unreachable: no client gets an answer, nothing is appended, nothing is lost."""
        return self._available

    @available.setter
    def available(self, value: bool) -> None:
        self.settle()
        self._available = value

    def create_topic(self, name: str, partition_count: int = 1, settings: Mapping[str, str] | None = None) -> None:
        """Create an empty topic; one with that name is deleted before, so that offsets begin at 0 again.

        Without ``settings``, under Kafka's names, it has those of the deleted one.
        """
        with self.lock:
            former = self._topics.get(name, _Topic()).settings
            self._topics[name] = _Topic([MemoryPartition() for _ in range(partition_count)])
            self.alter_topic(name, former if settings is None else settings)

    def alter_topic(self, topic: str, settings: Mapping[str, str]) -> None:
        """Change settings of a topic. Of them ``message.timestamp.type`` has an effect, on records that follow."""
        with self.lock:
            found = self._topics[topic]
            found.settings = {**found.settings, **settings}
            for partition in found.partitions:
                partition.keeps_create_time = found.settings.get(_TIMESTAMP_TYPE) == "CreateTime"

    def add_partitions(self, topic: str, partition_count: int) -> None:
        """Increase a topic to this many partitions; the new ones are empty, and the partition of a key may change."""
        with self.lock:
            partitions = self.partitions(topic)
            partitions.extend(MemoryPartition() for _ in range(partition_count - len(partitions)))

    def compact(self, topic: str, *, active_from: int | None = None, drop_tombstones: bool = False) -> None:
        """Compact every partition of a topic now; see :meth:`MemoryPartition.compact`."""
        with self.lock:
            self.settle()
            for partition in self.partitions(topic):
                partition.compact(active_from=active_from, drop_tombstones=drop_tombstones)

    def delete_before(self, topic: str, partition: int, offset: int) -> None:
        """Delete a partition's records before an offset, as retention does."""
        with self.lock:
            self.partitions(topic)[partition].delete_before(offset)

    def lose_from(self, topic: str, partition: int, offset: int) -> None:
        """Lose a partition's records from an offset on, as brokers do that are restored from an older copy."""
        with self.lock:
            self.partitions(topic)[partition].lose_from(offset)

    def fail_next_commit(self, fault: CommitFault) -> None:
        """Let the next commit that reaches the broker end with this fault; several faults are queued."""
        self._faults.append(fault)

    def end_commit_faults(self) -> None:
        """Let commits succeed again: what was to fail and has not yet, does not."""
        self._faults.clear()

    def lose_leader(self, topic: str, partition: int) -> None:
        """Leave a partition without a leader: requests for it get no answer, and records and markers for it wait."""
        self.settle()
        self._leaderless.add((topic, partition))
        self.hold_markers_back(topic, partition)

    def elect_leader(self, topic: str, partition: int) -> None:
        """Give a partition a leader again."""
        self.settle()
        self._leaderless.discard((topic, partition))
        self.write_markers(topic, partition)

    def lose_follower(self, topic: str, partition: int) -> None:
        """Acknowledge no record for a partition, because a copy of it is on a broker that has just died.

        The broker handles the requests of a connection in order, so later records of the same writer wait as well,
        whatever their partition is.
        """
        self.settle()
        self._sends.unreplicated.add((topic, partition))

    def drop_follower(self, topic: str, partition: int) -> None:
        """End :meth:`lose_follower`: the dead broker's copy no longer counts."""
        self.settle()
        self._sends.unreplicated.discard((topic, partition))

    def set_read_only(self, topic: str, partition: int, *, read_only: bool) -> None:
        """Let a partition take no record, for want of in-sync copies or of room; its readers go on."""
        self.settle()
        (self._read_only.add if read_only else self._read_only.discard)((topic, partition))

    def hold_markers_back(self, topic: str, partition: int) -> None:
        """Let the end of a transaction be acknowledged before its marker is written here, as Kafka does.

        Until :meth:`write_markers` the last stable offset stays, and the coordinator lets the transactional id neither
        begin a transaction nor be opened.
        """
        with self.lock:
            self.partitions(topic)[partition].markers_are_late = True

    def write_markers(self, topic: str, partition: int) -> None:
        """Write the markers that were held back."""
        with self.lock:
            self.partitions(topic)[partition].write_late_markers(self._clock.wall_ms())
        self.on_change(topic)

    def lose_next_acks(self, count: int) -> None:
        """Append the next single records, but report them to their writers as given up in the end."""
        self._sends.acks_to_lose += count

    def double_next_sends(self, count: int) -> None:
        """Append the next single records twice, as a retry of a producer that is not idempotent does."""
        self._sends.sends_to_double += count

    # -- for the clients ---------------------------------------------------------------------------------------------

    def now_ms(self) -> int:
        """The broker's monotonic time."""
        return self._clock.monotonic_ms()

    def has_topic(self, topic: str) -> bool:
        """Whether the topic exists."""
        return topic in self._topics

    def partitions(self, topic: str) -> list[MemoryPartition]:
        """The partitions of a topic.

        Raises:
            PrerequisiteError: there is no such topic.
        """
        found = self._topics.get(topic)
        if found is None:
            raise PrerequisiteError(f"there is no topic {topic!r}: create the cluster's topics first")
        return found.partitions

    def settings(self, topic: str) -> Mapping[str, str]:
        """The settings of a topic that exists."""
        return self._topics[topic].settings

    def find_partition(self, topic: str, number: int) -> MemoryPartition | None:
        """A partition, or None if there is none."""
        found = self._topics.get(topic)
        return found.partitions[number] if found is not None and number < len(found.partitions) else None

    def has_leader(self, topic: str, partition: int) -> bool:
        """Whether requests for a partition are answered."""
        return self._available and (topic, partition) not in self._leaderless

    def takes_records(self, topic: str, partition: int) -> bool:
        """Whether a partition's leader appends what is sent."""
        return self.has_leader(topic, partition) and (topic, partition) not in self._read_only

    def is_replicated(self, topic: str, partition: int) -> bool:
        """Whether what a partition's leader appends is acknowledged."""
        return self.has_leader(topic, partition) and (topic, partition) not in self._sends.unreplicated

    def settle(self) -> None:
        """Do what has become due: append delayed records, give up expired ones, abort transactions that timed out."""
        if not (self._sends or any(each.transaction for each in self._producers.values())):
            return
        with self.lock:
            if self._available and self.coordinator_available:
                for producer in self._producers.values():
                    self._abort_if_timed_out(producer)
            self._sends.settle()

    def send(self, pending: PendingSend) -> None:
        """Take a single record from a writer; it is appended when it is due and the broker can be reached."""
        with self.lock:
            self._sends.add(pending)
            self.settle()

    def init_transactions(self, transactional_id: str, timeout_ms: int) -> int:
        """Fence earlier producers with this id, abort their open transaction, and return the new producer epoch."""
        with self.lock:
            producer = self._producers.setdefault(transactional_id, _Producer())
            if producer.transaction is not None:
                self._end(producer, producer.transaction, TransactionState.ABORTED)
            producer.epoch += 1
            producer.timeout_ms = timeout_ms
            return producer.epoch

    def append_in_transaction(
        self, transactional_id: str, epoch: int, records: Sequence[tuple[str, int, bytes, bytes | None]]
    ) -> MemoryTransaction:
        """Open a transaction and append its records ``(topic, partition, key, value)``; they stay invisible.

        Raises:
            FencedError: another producer has this transactional id.
            PrerequisiteError: a topic does not exist; nothing was appended.
        """
        with self.lock:
            producer = self._producer(transactional_id, epoch)
            targets = [self.partitions(topic)[partition] for topic, partition, _, _ in records]
            transaction = MemoryTransaction(epoch, self.now_ms())
            producer.transaction = transaction
            for target, (_, _, key, value) in zip(targets, records, strict=True):
                target.append(key, value, self._clock.wall_ms(), transaction)
            for topic in dict.fromkeys(topic for topic, _, _, _ in records):
                self.on_change(topic)
            return transaction

    def end_transaction(self, transactional_id: str, transaction: MemoryTransaction, state: TransactionState) -> None:
        """Commit or abort; repeating a request that has succeeded is harmless, as in Kafka.

        Raises:
            FencedError: another producer has this transactional id, or the transaction timed out.
        """
        with self.lock:
            self._end(self._producer(transactional_id, transaction.producer_epoch), transaction, state)

    def take_fault(self) -> CommitFault | None:
        """Remove and return the fault that was requested for this commit, if any."""
        return self._faults.popleft() if self._faults else None

    def awaits_markers(self) -> bool:
        """Whether a transaction has ended whose markers are not all written: the coordinator is busy with it."""
        partitions = (partition for topic in self._topics.values() for partition in topic.partitions)
        return any(partition.awaits_markers for partition in partitions)

    def time_out_transaction(self, transactional_id: str) -> None:
        """Abort the open transaction and fence its producer, as happens after ``transaction.timeout.ms``."""
        with self.lock:
            producer = self._producers[transactional_id]
            if producer.transaction is not None:
                self._end(producer, producer.transaction, TransactionState.ABORTED)
            producer.epoch += 1

    # -- inside ------------------------------------------------------------------------------------------------------

    def _tell_change(self, topic: str) -> None:
        self.on_change(topic)

    def _producer(self, transactional_id: str, epoch: int) -> _Producer:
        self.settle()
        producer = self._producers[transactional_id]
        if producer.epoch != epoch:
            raise FencedError(
                f"transactional id {transactional_id!r} is at producer epoch {producer.epoch}, not {epoch}: "
                "another writer opened, or the transaction timed out"
            )
        return producer

    def _end(self, producer: _Producer, transaction: MemoryTransaction, state: TransactionState) -> None:
        transaction.state = state
        producer.transaction = None
        now_ms = self._clock.wall_ms()
        for name, topic in self._topics.items():
            ended = [partition.end_transaction(transaction, now_ms) for partition in topic.partitions]
            if any(ended):
                self.on_change(name)

    def _abort_if_timed_out(self, producer: _Producer) -> None:
        transaction = producer.transaction
        if transaction is not None and self.now_ms() - transaction.opened_at_ms > producer.timeout_ms:
            self._end(producer, transaction, TransactionState.ABORTED)
            producer.epoch += 1


def _nobody_waits(_: str) -> None:
    """Ignore changes."""


def _nobody_looks() -> None:
    """Ignore open transactions."""


def unavailable(topic: str) -> LogUnavailableError:
    """The error of a client that gets no answer about a topic."""
    return LogUnavailableError(f"the in-memory broker was made unavailable: no answer about {topic!r}")
