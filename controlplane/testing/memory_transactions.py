"""The transactional writer of the in-memory broker, beside the clients in :mod:`controlplane.testing.memory_log`."""

from collections.abc import Collection, Sequence
from typing import TypeAlias

from controlplane.config import ClusterConfig
from controlplane.core.values.identifiers import TopicPartition
from controlplane.core.values.partitioning import partition_of
from controlplane.errors import FencedError, InvariantViolationError
from controlplane.kafka_rules.broker_sessions import transaction_timeout_ms
from controlplane.ports import CommitOutcome, OutgoingRecord
from controlplane.testing.memory_broker import CommitFault, MemoryBroker, unavailable
from controlplane.testing.memory_log import refuse_too_large
from controlplane.testing.memory_partition import LeadingBroker, MemoryTransaction, TransactionState

_TRANSACTION_TIMEOUT_MS = transaction_timeout_ms(brokers=1, session_ms=0)
_Place: TypeAlias = tuple[str, int]


class MemoryTransactionalWriter:
    """Implements :class:`controlplane.ports.TransactionalWriter`.

    A commit while the broker is unreachable returns ``UNKNOWN`` and appends nothing yet. Resolving it sends the records
    once the broker is back, or reports the writer as fenced if that took longer than the transaction timeout. The same
    holds of a partition that takes no record; one whose records are not replicated leaves the transaction open.

    Attributes:
        connected: False cuts this client off, and no other one.
        unreachable: brokers that this writer cannot reach, while others can.
    """

    def __init__(
        self, cluster: ClusterConfig, broker: MemoryBroker, transaction_timeout_ms: int = _TRANSACTION_TIMEOUT_MS
    ) -> None:
        """Set up; :meth:`open` has to follow."""
        self.connected = True
        self._cluster = cluster
        self._broker = broker
        self._timeout_ms = transaction_timeout_ms
        self.unreachable: Collection[LeadingBroker] = ()
        self._epoch = 0
        self._transaction: MemoryTransaction | None = None
        self._appended_to: Sequence[_Place] = ()
        self._unsent: tuple[Sequence[OutgoingRecord], int] | None = None

    @property
    def transaction_timeout_ms(self) -> int:
        """See :meth:`controlplane.ports.TransactionalWriter.transaction_timeout_ms`."""
        return self._timeout_ms

    def open(self) -> None:
        """See :meth:`controlplane.ports.TransactionalWriter.open`."""
        if not self._reachable:
            raise unavailable(self._cluster.transactional_id)
        self._transaction, self._unsent = None, None
        self._epoch = self._broker.init_transactions(self._cluster.transactional_id, self._timeout_ms)

    def commit(self, records: Sequence[OutgoingRecord]) -> CommitOutcome:
        """See :meth:`controlplane.ports.TransactionalWriter.commit`.

        Raises:
            InvariantViolationError: the writer is not open, there are no records, or the last commit is unresolved.
        """
        if not self._epoch or not records or self._transaction or self._unsent:
            raise InvariantViolationError(
                "commit needs an open writer, at least one record, and no unresolved commit before it"
            )
        if not self._are_taken(records):
            self._unsent = (records, self._broker.now_ms())
            return CommitOutcome.UNKNOWN
        try:
            return self._send(records)
        except FencedError:
            return self._fenced()

    def write_barrier(self, records: Sequence[OutgoingRecord]) -> dict[TopicPartition, int]:
        """See :meth:`controlplane.ports.TransactionalWriter.write_barrier`.

        Raises:
            InvariantViolationError: the writer is not open, or the last commit is unresolved.
        """
        if not self._epoch or self._transaction or self._unsent:
            raise InvariantViolationError("a barrier needs an open writer and no unresolved commit before it")
        if not self._are_taken(records):
            raise unavailable(self._cluster.transactional_id)
        placed = [self._placed(record) for record in records]
        transactional_id = self._cluster.transactional_id
        transaction = self._broker.append_in_transaction(transactional_id, self._epoch, placed)
        last = {
            TopicPartition(record.topic, partition): self._broker.partitions(name)[partition].end_offset - 1
            for record, (name, partition, _, _) in zip(records, placed, strict=True)
        }
        self._appended_to = [(name, partition) for name, partition, _, _ in placed]
        self._broker.while_open()
        if not self._may_end:
            raise unavailable(transactional_id)
        self._broker.end_transaction(transactional_id, transaction, TransactionState.ABORTED)
        return last

    def resolve(self, timeout_ms: int) -> CommitOutcome:  # noqa: ARG002 - virtual time cannot be waited for
        """See :meth:`controlplane.ports.TransactionalWriter.resolve`; never waits.

        Raises:
            InvariantViolationError: the outcome of no commit is unknown.
        """
        if self._transaction is None and self._unsent is None:
            raise InvariantViolationError("there is no unknown commit to resolve")
        if self._unsent is not None and not self._are_taken(self._unsent[0]):
            return CommitOutcome.UNKNOWN
        if self._transaction is not None and not self._may_end:
            return CommitOutcome.UNKNOWN
        try:
            if self._unsent is not None:
                (records, since_ms), self._unsent = self._unsent, None
                if self._broker.now_ms() - since_ms > self._timeout_ms:
                    return self._fenced()
                return self._send(records)
            return self._end(TransactionState.COMMITTED)
        except FencedError:
            return self._fenced()

    def close(self) -> None:
        """Release everything; the broker aborts an open transaction after its timeout."""
        self.connected = False

    @property
    def _reachable(self) -> bool:
        self._broker.settle()
        broker = self._broker
        is_answered = broker.available and broker.coordinator_available and broker.coordinator not in self.unreachable
        return self.connected and is_answered and not broker.awaits_markers()

    def _are_taken(self, records: Sequence[OutgoingRecord]) -> bool:
        """Whether the coordinator answers, and the leaders of all partitions append records."""
        places = [self._placed(record)[:2] for record in records] if self._reachable else []
        return bool(places) and all(self._is_reached(*each) and self._broker.takes_records(*each) for each in places)

    @property
    def _may_end(self) -> bool:
        """Whether the coordinator answers, and all that was appended is acknowledged."""
        return self._reachable and all(
            self._is_reached(*each) and self._broker.is_replicated(*each) for each in self._appended_to
        )

    def _is_reached(self, name: str, number: int) -> bool:
        return self._broker.partitions(name)[number].leader not in self.unreachable

    def _send(self, records: Sequence[OutgoingRecord]) -> CommitOutcome:
        """Append the records and end the transaction, with the fault that was requested for it, if any."""
        transactional_id = self._cluster.transactional_id
        placed = [self._placed(record) for record in records]
        self._transaction = self._broker.append_in_transaction(transactional_id, self._epoch, placed)
        self._appended_to = [(name, partition) for name, partition, _, _ in placed]
        self._broker.while_open()
        if not self._may_end:
            return CommitOutcome.UNKNOWN
        match self._broker.take_fault():
            case CommitFault.ANSWER_LOST_AFTER_COMMIT:
                self._broker.end_transaction(transactional_id, self._transaction, TransactionState.COMMITTED)
                return CommitOutcome.UNKNOWN
            case CommitFault.ANSWER_LOST_BEFORE_COMMIT:
                return CommitOutcome.UNKNOWN
            case CommitFault.ABORTED:
                return self._end(TransactionState.ABORTED)
            case CommitFault.FENCED:
                self._broker.time_out_transaction(transactional_id)
                return self._end(TransactionState.COMMITTED)
            case None:
                return self._end(TransactionState.COMMITTED)

    def _end(self, state: TransactionState) -> CommitOutcome:
        transaction = self._transaction
        if transaction is None:
            raise InvariantViolationError("there is no transaction to end")
        self._broker.end_transaction(self._cluster.transactional_id, transaction, state)
        self._transaction = None
        return CommitOutcome.COMMITTED if transaction.state is TransactionState.COMMITTED else CommitOutcome.ABORTED

    def _fenced(self) -> CommitOutcome:
        self._epoch = 0
        self._transaction, self._unsent = None, None
        return CommitOutcome.FENCED

    def _placed(self, record: OutgoingRecord) -> tuple[str, int, bytes, bytes | None]:
        refuse_too_large(record)
        name = self._cluster.topic(record.topic)
        partition = record.partition
        if partition is None:
            partition = partition_of(record.key, len(self._broker.partitions(name)))
        return name, partition, record.key, record.value
