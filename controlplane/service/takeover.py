"""The steps of a take-over; their order is defined by the table of :mod:`controlplane.core.election.steps`."""

from collections.abc import Callable, Mapping
from contextlib import closing
from typing import Final, TypeVar

import structlog

from controlplane.config import DECISIONS, HEARTBEATS, ROUTING_TABLE, SNAPSHOTS
from controlplane.core.deciding.decide import Opening, open_term
from controlplane.core.deciding.observations import Observations
from controlplane.core.log.identity import check_end, check_identity, shows_last_epoch
from controlplane.core.log.log_mark import LogMark, check_known_end
from controlplane.core.log.state import State
from controlplane.core.slots.policies import check_slot_policy
from controlplane.core.values.identifiers import Term, TopicPartition
from controlplane.errors import (
    ConfigurationError,
    FencedError,
    InvariantViolationError,
    LeaseStoreUnavailableError,
    LogContinuityError,
    LogUnavailableError,
)
from controlplane.ports import CommitOutcome, LeaseStore, OutgoingRecord
from controlplane.service.components import ControllerComponents
from controlplane.service.leadership import Leadership
from controlplane.service.publisher import TablePublisher
from controlplane.service.read_back import ReadBack
from controlplane.service.table_watch import TableWatch
from controlplane.topic_reading.deadlines import READ_LIMIT_MS, STALL_LIMIT_MS
from controlplane.topic_reading.unread import NO_BARRIER
from controlplane.version import __version__

_Stored = TypeVar("_Stored")

BARRIER_KEY: Final = b"barrier"
"""Key of the records of a barrier; they are aborted, so that readers of committed records never see it."""

_log = structlog.get_logger(__name__)


def require_slot_policy(components: ControllerComponents, state: State) -> None:
    """Refuse to lead a cluster under whose policy this controller cannot decide; a new cluster's is its first policy.

    Raises:
        UnknownSlotPolicyError: this controller does not know the slot policy.
        ConfigurationError: the slot policy refuses its options.
    """
    check_slot_policy(components.slot_policies, state.cluster.policy if state.log_id else components.first_policy)


def read_log(
    components: ControllerComponents,
    barrier: Mapping[TopicPartition, int] = NO_BARRIER,
    stall_limit_ms: int = STALL_LIMIT_MS,
) -> Term:
    """Fold the log to its end, at or behind the barrier, and return the term of its last decision.

    Raises:
        LogUnavailableError: Kafka did not answer in time, or its answers did not reach the barrier.
        LogContinuityError: the log has lost decisions that were read.
        UnsupportedFeatureLevelError: a newer version wrote the log.
    """
    components.follower.read_to_end(READ_LIMIT_MS, stall_limit_ms, barrier)
    return components.follower.state.term


class TakeOver:
    """One attempt to lead under one term, step by step; the machine determines the order of the steps.

    Each method may raise :class:`controlplane.errors.RetryableError` or another subclass of ControlPlaneError. The
    attempt has failed then, and only :meth:`close` may follow.
    """

    def __init__(self, components: ControllerComponents, term: Term) -> None:
        """Create the writer without a request to Kafka."""
        self._components = components
        self._term = term
        self._writer = components.open_transactions()
        self._stall_limit_ms = max(STALL_LIMIT_MS, self._writer.transaction_timeout_ms)
        self._read_back = ReadBack(components.follower, self._write_barrier, components.clock, self._stall_limit_ms)
        self._leadership: Leadership | None = None
        self._watch: TableWatch | None = None
        self._republish = False
        self._barrier = NO_BARRIER

    @property
    def leadership(self) -> Leadership:
        """The leadership, which decides and commits; available once everything was caught up with.

        Raises:
            InvariantViolationError: :meth:`catch_up` has not succeeded.
        """
        if self._leadership is None:
            raise InvariantViolationError("a controller that has not caught up cannot lead")
        return self._leadership

    @property
    def leads(self) -> bool:
        """Whether the term is open, that is, *term opened* is committed."""
        return self._leadership is not None and self._leadership.term == self._term

    def open_writer(self) -> None:
        """Fence every earlier writer, and write a barrier to the topics that decide what may follow.

        Unless this controller cannot decide under the log's policy. A broker may end a topic before records that were
        acknowledged. An end at or behind the barrier has all that the fenced writers have committed before it.

        Raises:
            LogUnavailableError: Kafka did not answer in time.
            UnknownSlotPolicyError: this controller does not know the slot policy of the log.
            ConfigurationError: the slot policy refuses its options.
            FencedError: a later contender initialised its transactions meanwhile.
        """
        require_slot_policy(self._components, self._components.follower.state)
        self._writer.open()
        self._barrier = self._write_barrier()

    def read_log(self) -> Term:
        """Fold the log up to the barrier; see :func:`read_log`.

        An end before the barrier is waited for no longer than a transaction may take: by then another contender may
        reach a broker that knows more.
        """
        return read_log(self._components, self._barrier, self._stall_limit_ms)

    def catch_up(self) -> None:
        """Compare the log with table and lease store, and observe every heartbeat that can be read by now.

        Raises:
            LogUnavailableError: Kafka did not answer in time, or a later contender leads already.
            LeaseStoreUnavailableError: the lease store did not answer, or refused the request.
            LogContinuityError: log, table and lease store do not belong together; no controller may lead with them.
            UnknownSlotPolicyError: this controller does not know the slot policy of the log.
            ConfigurationError: the slot policy refuses its options.
        """
        components = self._components
        state = components.follower.state
        watch = self._watch = TableWatch(components.open_reader, components.clock, state.log_id)
        watch.read_to_end(self._barrier, self._stall_limit_ms)
        with closing(components.open_reader()) as reader:
            ends = reader.end_offsets(HEARTBEATS, only_answering=True)
        try:
            check_identity(state, watch.image, _stored(components.lease_store.read_log_id))
            check_known_end(state, self._known_marks())
        except LogContinuityError:
            self._require_end_of_log()
            raise
        publisher = TablePublisher(watch.image.row_hashes)
        self._republish = not (shows_last_epoch(state, watch.image) and publisher.shows(state))
        if self._republish and not publisher.can_remove_all_but(state):
            _log.warning(
                "more foreign rows in the routing table than one transaction can remove, opening the term without them",
                topic=ROUTING_TABLE,
                rows=len(watch.image.row_hashes),
            )
            # The watch finds these rows, and removes them over several transactions.
            publisher, self._republish = TablePublisher.of(state), False
        require_slot_policy(components, state)
        # With only half of the heartbeats read, a leader would date admissions by that half, and then count the time of
        # the other half as silence of the nodes that it admitted.
        if components.input_reader.lacks_partitions():
            components.input_reader.take_in_partitions()
        components.input_reader.skip_to_recorded(state, ends.keys())
        components.input_reader.catch_up(ends)
        self._leadership = Leadership(
            state,
            components.slot_policies,
            self._writer,
            publisher,
            components.input_reader,
            components.dead_letters,
            components.clock,
            components.metrics,
        )

    def _write_barrier(self) -> Mapping[TopicPartition, int]:
        """Append a record to the log and one to the table that no reader sees; see the port."""
        text = f"barrier of {self._components.config.controller_id} in term {self._term}".encode()
        records = [OutgoingRecord(topic, BARRIER_KEY, text, 0) for topic in (DECISIONS, ROUTING_TABLE)]
        return self._writer.write_barrier(records)

    def _known_marks(self) -> list[tuple[str, LogMark]]:
        """How far the log was known to reach, apart from the log: in the lease store, and in the newest snapshot."""
        mark = _stored(self._components.lease_store.read_mark)
        newest = self._components.follower.newest_snapshot
        known = [("the lease store", mark), (f"a snapshot in topic {SNAPSHOTS}", newest)]
        return [(where, mark) for where, mark in known if mark is not None]

    def _require_end_of_log(self) -> None:
        """Check whether the log was written to since it was read, as table and lease store are ahead of what was read.

        By a barrier that is written now: what was committed behind the first one, its marker may hold back or the
        answering broker may not know yet.

        Raises:
            LogUnavailableError: it was: a later contender has fenced this one, and leads.
        """
        known = self._components.follower.state
        try:
            self._barrier = self._write_barrier()
        except FencedError as error:
            raise LogUnavailableError(f"a later contender has opened its writer meanwhile: {error}") from error
        self.read_log()
        check_end(known, self._components.follower.state, self._term)

    def open_term(self) -> CommitOutcome:
        """Commit the first decision of the term."""
        components, state = self._components, self.leadership.state
        components.input_reader.catch_up_with(state)
        _warn_of_later_epochs(components.input_reader.observations, state)
        # The positions of the first decision pass none of the inputs whose letters have to precede it.
        components.dead_letters.write(components.input_reader.refusals.take())
        new_log = None if state.log_id else (components.new_log_id(), components.first_policy)
        opening = Opening(
            new_log=new_log,
            republish=self._republish,
            observed_from=components.input_reader.observed_from,
            cluster=components.config.cluster.name,
        )
        observations, controller_id = components.input_reader.observations, components.config.controller_id
        return self.leadership.commit(open_term(state, observations, self._term, controller_id, __version__, opening))

    def remember_log_id(self) -> None:
        """Write the log id to the lease store; if the store does not answer, the next leader writes it."""
        _remember_log_id(self._components.lease_store, self.leadership.state.log_id)

    def read_back(self, is_acknowledged: Callable[[], bool]) -> bool:
        """Read the leader's own decisions back if the interval has passed; see :meth:`ReadBack.look`.

        Raises:
            FencedError: a later term is open.
            LogUnavailableError: Kafka did not answer in time.
            StopError: the log is not the one that was led.
        """
        return self._read_back.look(self.leadership.state, is_acknowledged)

    def watch_table(self) -> None:
        """Compare the topic of the table with what was committed, at intervals; the next decision may repair it.

        Raises:
            LogContinuityError: a marker of this log was forged, or the topic was recreated.
        """
        if self._watch is not None:
            self.leadership.watch_table(self._watch)

    def close(self) -> None:
        """Close writer and reader; what is not committed is discarded."""
        self._writer.close()
        if self._watch is not None:
            self._watch.close()


def _stored(read: Callable[[], _Stored]) -> _Stored:
    """What the lease store has. This store granted the lease, so a refusal must not end the controller.

    Raises:
        LeaseStoreUnavailableError: the store did not answer, or refused the request.
    """
    try:
        return read()
    except ConfigurationError as error:
        raise LeaseStoreUnavailableError(str(error)) from error


def _warn_of_later_epochs(observations: Observations, state: State) -> None:
    """Say that nodes have seen later epochs than the log has. Anything may write heartbeats, so it proves nothing."""
    seen = {
        node_id: heard.heartbeat.table_epoch
        for view in observations.partitions.values()
        for (node_id, _), heard in view.heard.items()
        if heard.heartbeat.table_epoch > state.epoch
    }
    if seen:
        _log.warning(
            "nodes say that they have a later table than the log: has it lost decisions?",
            epoch=state.epoch,
            latest=max(seen.values()),
            nodes=sorted(seen)[:5],
        )


def _remember_log_id(store: LeaseStore, log_id: str) -> None:
    """Write the log id, after the commit: a crash between the two must not make an empty log look deleted."""
    try:
        store.write_log_id(log_id)
    except (LeaseStoreUnavailableError, ConfigurationError) as error:
        _log.warning("the log id is not in the lease store yet", error=str(error))
