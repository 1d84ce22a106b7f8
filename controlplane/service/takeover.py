"""Taking over: what each step of it does; their order is the table of :mod:`controlplane.core.election.steps`."""

from contextlib import closing

import structlog

from controlplane.config import HEARTBEATS, ROUTING_TABLE
from controlplane.core.deciding.decide import Opening, open_term
from controlplane.core.log.identity import check_end, check_identity, shows_last_epoch
from controlplane.core.log.state import State
from controlplane.core.slots.policies import check_slot_policy
from controlplane.core.values.identifiers import Term
from controlplane.errors import (
    ConfigurationError,
    InvariantViolationError,
    LeaseStoreUnavailableError,
    LogContinuityError,
)
from controlplane.ports import CommitOutcome, LeaseStore
from controlplane.service.components import ControllerComponents
from controlplane.service.leadership import Leadership
from controlplane.service.publisher import TablePublisher
from controlplane.service.read_back import ReadBack
from controlplane.service.table_watch import TableWatch
from controlplane.topic_reading.deadlines import READ_LIMIT_MS, STALL_LIMIT_MS
from controlplane.version import __version__

_log = structlog.get_logger(__name__)


def require_slot_policy(components: ControllerComponents, state: State) -> None:
    """Refuse to lead a cluster under whose policy, or first policy, this controller could not decide.

    Raises:
        UnknownSlotPolicyError: this controller does not know the slot policy.
        ConfigurationError: the slot policy refuses its options.
    """
    check_slot_policy(components.slot_policies, state.cluster.policy if state.log_id else components.first_policy)


def read_log(components: ControllerComponents) -> Term:
    """Fold the log to its end and return the term of its last decision.

    Raises:
        LogUnavailableError: Kafka did not answer in time.
        UnsupportedFeatureLevelError: a newer version wrote the log.
    """
    components.follower.read_to_end(READ_LIMIT_MS, STALL_LIMIT_MS)
    return components.follower.state.term


class TakeOver:
    """One attempt at leading under one term, step by step; which step comes when, the machine says.

    Each method may raise what :class:`controlplane.errors.RetryableError` and its siblings stand for; the attempt is
    over then, and :meth:`close` is all that may follow.
    """

    def __init__(self, components: ControllerComponents, term: Term) -> None:
        """Nothing is asked of Kafka yet."""
        self._components = components
        self._term = term
        self._writer = components.open_transactions()
        self._read_back = ReadBack(components.follower, components.clock)
        self._leadership: Leadership | None = None
        self._watch: TableWatch | None = None
        self._republish = False

    @property
    def leadership(self) -> Leadership:
        """What decides and commits, once everything is caught up with.

        Raises:
            InvariantViolationError: :meth:`catch_up` has not succeeded.
        """
        if self._leadership is None:
            raise InvariantViolationError("a controller that has not caught up cannot lead")
        return self._leadership

    @property
    def leads(self) -> bool:
        """Whether the term is open: *term opened* is committed."""
        return self._leadership is not None and self._leadership.term == self._term

    def open_writer(self) -> None:
        """Fence every earlier writer, unless this controller could not decide as the log asks for.

        Raises:
            LogUnavailableError: Kafka did not answer in time.
            UnknownSlotPolicyError: this controller could not decide under the log's policy.
            ConfigurationError: the slot policy refuses its options.
            FencedError: a later contender initialised its transactions meanwhile.
        """
        require_slot_policy(self._components, self._components.follower.state)
        self._writer.open()

    def catch_up(self) -> None:
        """Compare the log with table and lease store, and observe every heartbeat that can be read by now.

        Raises:
            LogUnavailableError: Kafka did not answer in time, or a later contender leads already.
            LeaseStoreUnavailableError: Redis did not, or refused.
            LogContinuityError: log, table and lease store do not belong together: no controller may lead this.
            UnknownSlotPolicyError: this controller could not decide under the log's policy.
            ConfigurationError: the slot policy refuses its options.
        """
        components = self._components
        state = components.follower.state
        watch = self._watch = TableWatch(components.open_reader, components.clock, state.log_id)
        watch.read_to_end()
        with closing(components.open_reader()) as reader:
            ends = reader.end_offsets(HEARTBEATS, only_answering=True)
        try:
            check_identity(state, watch.image, _stored_log_id(components.lease_store))
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
            # The watch finds them, and removes them in one transaction after the other.
            publisher, self._republish = TablePublisher.of(state), False
        require_slot_policy(components, state)
        # A leader that had read half of the heartbeats would date admissions by that half, and then count the time of
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

    def _require_end_of_log(self) -> None:
        """Table and lease store know more than the log did: all is well if the log has gone on since it was read.

        Raises:
            LogUnavailableError: it has: a later contender has fenced this one, and leads.
        """
        known = self._components.follower.state
        read_log(self._components)
        check_end(known, self._components.follower.state, self._term)

    def open_term(self) -> CommitOutcome:
        """Commit the first decision of the term.

        Raises:
            LogUnavailableError: dead letters that have to come first are not written.
        """
        components, state = self._components, self.leadership.state
        components.input_reader.catch_up_with(state)
        # Before the first decision of the term: after it others take the letters of all that was refused for written.
        components.dead_letters.write(components.input_reader.take_refusals())
        new_log = None if state.log_id else (components.new_log_id(), components.first_policy)
        opening = Opening(
            new_log=new_log, republish=self._republish, observed_from=components.input_reader.observed_from
        )
        observations, controller_id = components.input_reader.observations, components.config.controller_id
        return self.leadership.commit(open_term(state, observations, self._term, controller_id, __version__, opening))

    def remember_log_id(self) -> None:
        """Let the lease store know the log; a store that does not answer is told by the next leader."""
        _remember_log_id(self._components.lease_store, self.leadership.state.log_id)

    def read_back(self) -> bool:
        """Read the leader's own decisions back, if it is time to; whether it was.

        Raises:
            FencedError: a later term is open.
            LogUnavailableError: Kafka did not answer in time.
            StopError: the log is not the one that was led.
        """
        return self._read_back.look(self.leadership.state)

    def watch_table(self) -> None:
        """Compare the topic of the table with what was committed, if it is time to; the next decision may repair it.

        Raises:
            LogContinuityError: a marker of this log was forged, or the topic was recreated.
        """
        if self._watch is not None:
            self.leadership.watch_table(self._watch)

    def close(self) -> None:
        """Give writer and reader back; what is not committed is discarded."""
        self._writer.close()
        if self._watch is not None:
            self._watch.close()


def _stored_log_id(store: LeaseStore) -> str | None:
    """A refusal counts as no answer: the lease is from this store, so what is wrong there ends no controller.

    Raises:
        LeaseStoreUnavailableError: no answer, or a refusal.
    """
    try:
        return store.read_log_id()
    except ConfigurationError as error:
        raise LeaseStoreUnavailableError(str(error)) from error


def _remember_log_id(store: LeaseStore, log_id: str) -> None:
    """Only after the commit: a controller that dies between the two must not make an empty log look deleted."""
    try:
        store.write_log_id(log_id)
    except (LeaseStoreUnavailableError, ConfigurationError) as error:
        _log.warning("the lease store does not remember the log id yet", error=str(error))
