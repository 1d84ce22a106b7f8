"""Appends to Kafka atomically: implements the port :class:`controlplane.ports.TransactionalWriter`.

A commit appends all records or none, and answers which, or ``UNKNOWN``; opening fences earlier writers. This is
implemented by Kafka's transactions under the cluster's one transactional id. The producer is not watched and replaced
as others are (decision 0014): a leader whose commits do not succeed steps down, and another one opens a new producer.

The behaviour of librdkafka, as found with a broker that was paused, killed and raced (a contract or fault test each):

- A ``commit_transaction`` that timed out has to be called again, and nothing else may be called: begin and abort answer
  ``_CONFLICT``. What it could not even send becomes "requires abort" once it is older than ``message.timeout.ms``.
- A record that ``produce`` refuses is not part of the transaction, and a commit would commit the others without it. So
  the transaction has to be aborted explicitly.
- A transaction that timed out at the broker ends in a fatal error, without any other writer.
- Dropping a producer leaves its open transaction to the broker; ``Producer.close`` would try to abort and to flush.
"""

import time
from collections.abc import Sequence
from enum import Enum

import structlog
from confluent_kafka import KafkaError, KafkaException, Message, Producer

from controlplane.adapters.kafka_client import PRODUCER_SETTINGS, client_settings, new_client
from controlplane.adapters.kafka_errors import (
    Access,
    denial_error,
    error_of,
    in_words,
    is_denied,
    is_fencing,
    refusal_error,
)
from controlplane.adapters.kafka_log_listener import LogListener
from controlplane.adapters.kafka_new_leaders import ASKED_EVERY_S, NewLeaders
from controlplane.config import ClusterConfig, KafkaConfig
from controlplane.core.values.identifiers import TopicPartition
from controlplane.errors import FencedError, InvariantViolationError, LogUnavailableError
from controlplane.ports import CommitOutcome, OutgoingRecord

COMMIT_TIMEOUT_MS = 2_000
"""How long a leader waits for the answer to a commit before it counts as unknown, and is asked for again."""

_ROLE = "decisions"
_SOCKET_MARGIN_MS = 500
_POLL_S = 0.005
_FLUSH_S = 0.5


class _State(Enum):
    """The state of the writer; each public method is allowed in one of these only."""

    CLOSED = "closed"
    READY = "ready"
    COMMIT_UNKNOWN = "commit_unknown"
    ABORT_UNKNOWN = "abort_unknown"


class _Reports:
    """Keeps what the producer reports of the records of the present transaction.

    A separate object, because a producer that referred to its writer would not be freed when the writer drops it.

    Attributes:
        refused: the first record that was given up: the reason why the transaction cannot be committed.
        offsets: the offset of the last acknowledged record, by the topic's full name and the partition.
    """

    def __init__(self) -> None:
        self.refused: tuple[KafkaError, str] | None = None
        self.offsets: dict[tuple[str, int], int] = {}

    def begin(self) -> None:
        """Forget the former transaction."""
        self.refused = None
        self.offsets.clear()

    def on_delivery(self, error: KafkaError | None, message: Message) -> None:
        """Take the delivery report of a record."""
        if error is None:
            self.offsets[message.topic(), message.partition()] = message.offset()  # type: ignore[index, assignment] # a record has a place
        elif self.refused is None:
            self.refused = (error, f"{message.topic()}[{message.partition()}]")


class KafkaTransactionalWriter:
    """Implements :class:`controlplane.ports.TransactionalWriter`. Not thread-safe.

    Args:
        cluster: determines the transactional id and the prefix of the topics.
        kafka: the servers, and the user's settings.
        transaction_timeout_ms: time after which the broker aborts an open transaction and fences its writer. Until then
            the transaction of a crashed leader holds every reader back.
        commit_timeout_ms: how long :meth:`commit` waits for the broker before it answers ``UNKNOWN``. Queueing more
            records than the client holds takes longer, at most ``transaction_timeout_ms``.
        open_timeout_ms: how long :meth:`open` waits in all.
    """

    def __init__(
        self,
        cluster: ClusterConfig,
        kafka: KafkaConfig,
        transaction_timeout_ms: int = 5_000,
        *,
        commit_timeout_ms: int = COMMIT_TIMEOUT_MS,
        open_timeout_ms: int = 10_000,
    ) -> None:
        """Set up; :meth:`open` has to follow."""
        self._cluster = cluster
        self._kafka = kafka
        self._access = Access(kafka.principal, "write")
        self._transaction_timeout_ms = transaction_timeout_ms
        self._commit_timeout_s = commit_timeout_ms / 1_000
        self._open_timeout_s = open_timeout_ms / 1_000
        self._state = _State.CLOSED
        self._producer: Producer | None = None
        self._new_leaders = NewLeaders()
        self._topics: tuple[str, ...] = ()
        self._reports = _Reports()
        self._written_to = ""
        self._logger = structlog.get_logger().bind(cluster=cluster.name)

    @property
    def transaction_timeout_ms(self) -> int:
        """See :meth:`controlplane.ports.TransactionalWriter.transaction_timeout_ms`."""
        return self._transaction_timeout_ms

    def open(self) -> None:
        """See :meth:`controlplane.ports.TransactionalWriter.open`; makes a new producer each time.

        Raises:
            ConfigurationError: this user has no right to use the transactional id.
        """
        self.close()
        listener = LogListener(_ROLE, self._cluster.name)
        self._new_leaders = listener.new_leaders
        self._reports = _Reports()
        producer = self._new_producer(listener)
        deadline = time.monotonic() + self._open_timeout_s
        while True:
            try:
                producer.init_transactions(max(deadline - time.monotonic(), _POLL_S))
            except KafkaException as exception:
                error = error_of(exception)
                if error.retriable() and not error.fatal() and time.monotonic() < deadline:
                    producer.poll(_POLL_S)
                    continue
                what = f"transactional id {self._cluster.transactional_id}"
                raise listener.request_error(error, what, self._access._replace(operation="use")) from exception
            self._producer = producer
            self._state = _State.READY
            return

    def commit(self, records: Sequence[OutgoingRecord]) -> CommitOutcome:
        """See :meth:`controlplane.ports.TransactionalWriter.commit`.

        Raises:
            InvariantViolationError: there are no records (librdkafka would report success without asking the broker,
                even for a fenced writer), the writer is not open, or the last commit is unresolved.
            ConfigurationError: Kafka refuses a record permanently (too large, denied); the transaction is aborted.
            PrerequisiteError: a topic does not exist; the transaction is aborted.
        """
        if not records:
            raise InvariantViolationError("a commit needs at least one record")
        producer = self._producer_in(_State.READY)
        try:
            refused = self._append(producer, records)
        except KafkaException as exception:
            return self._finished(error_of(exception))
        return self._end(producer, self._commit_timeout_s) if refused is None else self._abort(producer, refused)

    def write_barrier(self, records: Sequence[OutgoingRecord]) -> dict[TopicPartition, int]:
        """See :meth:`controlplane.ports.TransactionalWriter.write_barrier`.

        Waits for the acknowledgements for as long as a transaction may stay open: a broker that has just died holds
        them back until Kafka has given it up.

        Raises:
            InvariantViolationError: the writer is not open, or the last commit is unresolved.
            ConfigurationError, PrerequisiteError: see :meth:`commit`.
        """
        producer = self._producer_in(_State.READY)
        try:
            refused = self._append(producer, records)
        except KafkaException as exception:
            self._finished(error_of(exception))
            raise FencedError(f"a barrier was refused: {in_words(error_of(exception))}") from exception
        waiting = 0
        try:
            if refused is None:
                waiting, refused = self._acknowledged(producer)
        except (KafkaException, SystemError):
            # The client raises its fatal errors here, and may call for a further report meanwhile, which Python takes
            # for a defect. The end of the transaction says what the error is.
            refused = KafkaError(KafkaError._FATAL)  # noqa: SLF001 - librdkafka's own code
        if refused is None and self._reports.refused is not None:
            refused = self._reports.refused[0]
        names = {self._cluster.topic(record.topic): record.topic for record in records}
        offsets = {TopicPartition(names[name], number): at for (name, number), at in self._reports.offsets.items()}
        outcome = CommitOutcome.UNKNOWN if waiting and refused is None else self._abort(producer, refused)
        if outcome is CommitOutcome.FENCED:
            raise FencedError("another writer opened before this one had written a barrier")
        if outcome is CommitOutcome.UNKNOWN or refused is not None:
            self.close()
            raise LogUnavailableError(f"a barrier was not acknowledged in {self._written_to}")
        return offsets

    def _acknowledged(self, producer: Producer) -> tuple[int, KafkaError | None]:
        """Wait until the transaction's records are acknowledged; return how many are not, and why it cannot go on.

        Raises:
            KafkaException: a fatal error.
        """
        deadline = time.monotonic() + self._transaction_timeout_ms / 1_000
        while True:
            waiting = producer.flush(max(min(deadline - time.monotonic(), _FLUSH_S), 0))
            self._new_leaders.ask(producer, self._topics)
            is_done = waiting == 0 and self._reports.refused is None
            cause = None if is_done else _cause_of_abort(producer)
            if waiting == 0 or cause is not None or time.monotonic() >= deadline:
                return waiting, cause

    def _append(self, producer: Producer, records: Sequence[OutgoingRecord]) -> KafkaError | None:
        """Begin a transaction and queue its records; return the error if a record was not accepted.

        Raises:
            KafkaException: no transaction can be begun.
        """
        self._reports.begin()
        self._topics = tuple(dict.fromkeys(self._cluster.topic(record.topic) for record in records))
        self._written_to = f"topic {' or '.join(self._topics)}"
        # After this time the broker would have aborted the transaction anyway.
        deadline = time.monotonic() + self._transaction_timeout_ms / 1_000
        producer.begin_transaction()
        # This client may have been idle while a broker died, and finds out only now that it cannot be reached.
        self._new_leaders.ask_now(producer, self._topics)
        for record in records:
            refused = self._produce(producer, record, deadline)
            if refused is not None:
                return refused
        return None

    def resolve(self, timeout_ms: int) -> CommitOutcome:
        """See :meth:`controlplane.ports.TransactionalWriter.resolve`: requests the same end of the transaction again.

        Raises:
            InvariantViolationError: the outcome of no commit is unknown.
        """
        if self._producer is not None:
            self._new_leaders.ask(self._producer, self._topics)
        if self._state is _State.ABORT_UNKNOWN:
            return self._abort(self._producer_in(_State.ABORT_UNKNOWN), None, timeout_ms / 1_000)
        return self._end(self._producer_in(_State.COMMIT_UNKNOWN), timeout_ms / 1_000)

    def close(self) -> None:
        """See :meth:`controlplane.ports.TransactionalWriter.close`; never waits."""
        self._state = _State.CLOSED
        self._producer = None

    def _producer_in(self, state: _State) -> Producer:
        if self._state is not state or self._producer is None:
            raise InvariantViolationError(
                f"the transactional writer is {self._state.value}, but this call needs it to be {state.value}: "
                "open, then commit, then resolve until the outcome is known"
            )
        return self._producer

    def _produce(self, producer: Producer, record: OutgoingRecord, deadline: float) -> KafkaError | None:
        """Queue one record of the transaction; return the error if the record was not accepted."""
        name = self._cluster.topic(record.topic)
        partition = -1 if record.partition is None else record.partition
        while True:
            try:
                producer.produce(name, record.value, record.key, partition)
                return None
            except BufferError:
                if time.monotonic() > deadline:
                    return KafkaError(KafkaError._QUEUE_FULL, f"{len(producer)} records wait")  # noqa: SLF001 - librdkafka's own code
                producer.poll(_POLL_S)
            except KafkaException as exception:
                error = error_of(exception)
                self._reports.refused = self._reports.refused or (error, f"{name}, key {record.key!r}")
                return error

    def _end(self, producer: Producer, timeout_s: float) -> CommitOutcome:
        """Commit, and return the outcome."""
        try:
            self._commit(producer, timeout_s)
        except KafkaException as exception:
            error = error_of(exception)
            if is_fencing(error):
                return self._finished(error)
            if error.txn_requires_abort():
                return self._abort(producer, error)
            if error.retriable():
                if self._state is not _State.COMMIT_UNKNOWN:
                    self._logger.warning("commit without an answer from Kafka", error=in_words(error))
                self._state = _State.COMMIT_UNKNOWN
                return CommitOutcome.UNKNOWN
            return self._finished(error)
        self._state = _State.READY
        return CommitOutcome.COMMITTED

    def _commit(self, producer: Producer, timeout_s: float) -> None:
        """Commit, and ask for new leaders as long as there is no answer. The client goes on where the last call ended.

        Raises:
            KafkaException: see :meth:`confluent_kafka.Producer.commit_transaction`.
        """
        deadline = time.monotonic() + timeout_s
        while True:
            try:
                producer.commit_transaction(max(min(deadline - time.monotonic(), ASKED_EVERY_S), 0))
            except KafkaException as exception:
                error = error_of(exception)
                is_over = time.monotonic() >= deadline
                if is_over or not error.retriable() or is_fencing(error) or error.txn_requires_abort():
                    raise
                self._new_leaders.connection_lost()
                self._new_leaders.ask(producer, self._topics)
            else:
                return

    def _abort(self, producer: Producer, cause: KafkaError | None, timeout_s: float | None = None) -> CommitOutcome:
        """Abort, and return the outcome.

        Raises:
            ConfigurationError, PrerequisiteError: a record was refused permanently, so that a retry would not help.
        """
        if cause is not None:
            self._logger.warning("transaction aborted", cause=in_words(cause))
        try:
            producer.abort_transaction(self._commit_timeout_s if timeout_s is None else timeout_s)
        except KafkaException as exception:
            error = error_of(exception)
            if error.retriable() and not is_fencing(error):
                self._state = _State.ABORT_UNKNOWN
                return CommitOutcome.UNKNOWN
            outcome = self._finished(error)
        else:
            self._state = _State.READY
            outcome = CommitOutcome.ABORTED
        if cause is not None and is_denied(cause):
            raise denial_error(cause, self._written_to, self._access)
        self._raise_refusal()
        return outcome

    def _raise_refusal(self) -> None:
        refusal = None if self._reports.refused is None else refusal_error(*self._reports.refused, self._access)
        if refusal is not None:
            raise refusal

    def _finished(self, error: KafkaError) -> CommitOutcome:
        """Drop this producer, which cannot commit any more; the caller may open the writer again."""
        if error.code() == KafkaError.INVALID_TXN_STATE:
            # Without another writer: the coordinator has aborted what stayed open for too long.
            self._logger.warning("transaction ended by Kafka, its time limit has passed", error=in_words(error))
        else:
            self._logger.warning("fenced by Kafka", error=in_words(error))
        self.close()
        return CommitOutcome.FENCED

    def _new_producer(self, listener: LogListener) -> Producer:
        own: dict[str, object] = {
            **PRODUCER_SETTINGS,
            "transactional.id": self._cluster.transactional_id,
            "transaction.timeout.ms": self._transaction_timeout_ms,
            "socket.timeout.ms": self._transaction_timeout_ms - _SOCKET_MARGIN_MS,
            "message.timeout.ms": self._transaction_timeout_ms,
            "request.timeout.ms": self._transaction_timeout_ms,
            # Reported before the transaction times out.
            "topic.metadata.propagation.max.ms": self._transaction_timeout_ms // 4,
            # The commit flushes at once in any case; this lets large transactions fill their batches.
            "linger.ms": 5,
            "on_delivery": self._reports.on_delivery,
        }
        return new_client(Producer, client_settings(self._cluster, self._kafka, listener, _ROLE, own))


def _cause_of_abort(producer: Producer) -> KafkaError | None:
    """Why the open transaction can only be aborted; None if it can go on.

    librdkafka drops the queued records of such a transaction, and tells their reports only that they were dropped. It
    says why in its answer to every call that is not an abort. The call here is refused in any case, because a
    transaction is open.
    """
    try:
        producer.begin_transaction()
    except KafkaException as exception:
        error = error_of(exception)
        return error if error.txn_requires_abort() else None
    return None
