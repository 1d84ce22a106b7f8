"""Taking over: the order of steps that makes a new leader safe, whatever the old one still does.

Lease won -> lease checked again -> ``init_transactions`` fences the predecessor and aborts its open transaction -> a
reader that began after that reads the log to its end -> a log that holds our term or a higher one sends us back for a
higher term -> log, table and lease store have to name the same log -> all heartbeats up to here are observed -> lease
checked again -> *term opened* committed.
"""

from collections.abc import Callable, Mapping
from contextlib import closing
from typing import Final, NamedTuple
from uuid import uuid4

import structlog

from controlplane import __version__
from controlplane.config import HEARTBEATS, ROUTING_TABLE, ControllerConfig
from controlplane.core.decide import open_term
from controlplane.core.identifiers import Term, TopicPartition
from controlplane.core.policy import Policy
from controlplane.core.slot_policies import check_slot_policy
from controlplane.core.slot_policy import SlotPolicies
from controlplane.core.state import State
from controlplane.core.table_replica import TableReplica
from controlplane.errors import LeaseStoreUnavailableError, LogContinuityError
from controlplane.ports import Clock, LeaseStore, LogReader, TransactionalWriter
from controlplane.service.dead_letters import DeadLetterWriter
from controlplane.service.follower import LogFollower, Patience
from controlplane.service.intake import Intake
from controlplane.service.leading import Leadership, Standing
from controlplane.service.lease_keeper import LeaseKeeper
from controlplane.service.metrics import ControllerMetrics
from controlplane.service.publisher import TablePublisher
from controlplane.table_follower import fold_record

_READ_LIMIT_MS: Final = 60_000
_STALL_LIMIT_MS: Final = 5_000
"""A contender that gets nothing from Kafka for this long stands in the way of one that would."""
UNRESOLVED_LIMIT_MS: Final = 15_000
"""How long a commit may stay without an answer before everything is discarded and the log is asked."""
_TABLE: Final = TopicPartition(ROUTING_TABLE, 0)

_log = structlog.get_logger(__name__)


class Parts(NamedTuple):
    """What a controller is made of; every take-over makes a new transactional writer."""

    config: ControllerConfig
    first_policy: Policy
    slot_policies: SlotPolicies
    clock: Clock
    metrics: ControllerMetrics
    lease_store: LeaseStore
    open_reader: Callable[[], LogReader]
    open_transactions: Callable[[], TransactionalWriter]
    follower: LogFollower
    intake: Intake
    dead_letters: DeadLetterWriter


def require_slot_policy(parts: Parts, state: State) -> None:
    """Refuse to lead a cluster under whose policy, or first policy, this controller could not decide.

    Raises:
        UnknownSlotPolicyError: this controller does not know the slot policy.
        ConfigurationError: the slot policy refuses its options.
    """
    check_slot_policy(parts.slot_policies, state.policy if state.log_id else parts.first_policy)


def take_over(parts: Parts, keeper: LeaseKeeper, term: Term) -> Leadership | None:
    """Run the whole take-over under ``term``; None if somebody or something else comes first.

    Raises:
        LogUnavailableError: Kafka did not answer in time.
        FencedError: a later contender initialised its transactions meanwhile.
        LogContinuityError: log, table and lease store do not belong together: nobody may lead this.
        UnsupportedFeatureLevelError: a newer version wrote the log or the table.
        UnknownSlotPolicyError: this controller could not decide under the log's policy.
        ConfigurationError: the slot policy refuses its options.
    """
    if not keeper.confirm(term):
        return None
    writer = parts.open_transactions()
    try:
        leadership = _take_over(parts, keeper, term, writer)
    except BaseException:
        writer.close()
        raise
    if leadership is None:
        writer.close()
    return leadership


def _take_over(parts: Parts, keeper: LeaseKeeper, term: Term, writer: TransactionalWriter) -> Leadership | None:
    writer.open()
    parts.follower.read_to_end(_READ_LIMIT_MS, _STALL_LIMIT_MS)
    state = parts.follower.state
    if state.term >= term:
        _log.warning("the log holds this term or a higher one", term=term, log_term=state.term)
        keeper.raise_floor(state.term)
        return None
    with closing(parts.open_reader()) as reader:
        replica = _read_table(reader, parts.clock)
        ends = reader.end_offsets(HEARTBEATS)
    _check_identity(state, replica, parts.lease_store.read_log_id())
    publisher = TablePublisher(replica.row_hashes)
    republish = bool(state.log_id) and not _stands(state, replica, publisher)
    new_log = None if state.log_id else (uuid4().hex, parts.first_policy)
    require_slot_policy(parts, state)
    _catch_up(parts.intake, ends, parts.clock)
    if not keeper.confirm(term):
        return None
    parts.intake.settle(state)
    # Before the first decision of the term, after which others take the letters of all that was refused for written.
    parts.dead_letters.write(parts.intake.take_refusals())
    leadership = Leadership(
        state,
        parts.slot_policies,
        writer,
        publisher,
        parts.intake,
        parts.dead_letters,
        parts.clock,
        parts.metrics,
    )
    now_ms = parts.intake.observations.now_ms or state.decided_at_ms
    sealed = open_term(
        state,
        term,
        parts.config.controller_id,
        __version__,
        new_log=new_log,
        now_ms=now_ms,
        republish=republish,
    )
    standing = leadership.commit(sealed, publisher.rows_of_decision(sealed))
    deadline_ms = parts.clock.monotonic_ms() + UNRESOLVED_LIMIT_MS
    while standing is Standing.UNRESOLVED and parts.clock.monotonic_ms() < deadline_ms:
        standing = leadership.step()
    if standing is not Standing.LEADS or leadership.term != term:
        return None
    _remember_log_id(parts.lease_store, leadership.state.log_id)
    return leadership


def _remember_log_id(store: LeaseStore, log_id: str) -> None:
    """Only after the commit: a controller that dies between the two must not make an empty log look deleted."""
    try:
        store.write_log_id(log_id)
    except LeaseStoreUnavailableError as error:
        _log.warning("the lease store does not remember the log id yet", error=str(error))


def _read_table(reader: LogReader, clock: Clock) -> TableReplica:
    """The routing table as the topic shows it now, read from its start.

    No table follower: rows that do not fit their marker are no error here, because the leader writes them again.

    Raises:
        LogUnavailableError: Kafka did not answer in time.
        LogContinuityError: a record is no row of a table; nobody can read the topic beyond it.
        UnsupportedFeatureLevelError: a row was written by a newer version.
    """
    replica = TableReplica()
    reader.assign(reader.start_offsets(ROUTING_TABLE))
    patience = Patience(clock, f"the end of topic {ROUTING_TABLE}", _READ_LIMIT_MS, _STALL_LIMIT_MS)
    while True:
        batch = reader.poll(5_000, 50)
        for record in batch.records:
            fold_record(replica, record)
        if _TABLE in batch.ended:
            return replica
        patience.check(progress=bool(batch.records))


def _catch_up(intake: Intake, ends: Mapping[TopicPartition, int], clock: Clock) -> None:
    """Observe every heartbeat and tick that stands in the log by now.

    A leader that decided on half the past would date the nodes that it admits into that past, and then count the other
    half against them.

    Raises:
        LogUnavailableError: Kafka did not answer in time.
    """
    patience = Patience(clock, f"the end of topic {HEARTBEATS}", _READ_LIMIT_MS, _STALL_LIMIT_MS)
    while any(offset < ends.get(place, 0) for place, offset in intake.observations.positions.items()):
        patience.check(progress=intake.poll(50) > 0)


def _check_identity(state: State, replica: TableReplica, stored_log_id: str | None) -> None:
    """Refuse to lead a log that is not the one that table and lease store know.

    Raises:
        LogContinuityError: naming what contradicts what.
    """
    marker = replica.last_marker
    if not state.log_id:
        if marker is not None:
            message = (
                f"topic decisions is empty, but routing-table holds epoch {marker.epoch} of log {marker.log_id!r}: "
                "the decision log was deleted or recreated; restore it, or delete all topics and the lease"
            )
            raise LogContinuityError(message)
        if stored_log_id is not None:
            message = (
                f"topic decisions is empty, but the lease store remembers log {stored_log_id!r}: the decision log was "
                "deleted or recreated; restore it, or delete all topics and the lease"
            )
            raise LogContinuityError(message)
        return
    if marker is not None and marker.log_id != state.log_id:
        message = f"routing-table belongs to log {marker.log_id!r}, decisions to {state.log_id!r}: one was recreated"
        raise LogContinuityError(message)
    if stored_log_id is not None and stored_log_id != state.log_id:
        message = f"the lease store remembers log {stored_log_id!r}, decisions is {state.log_id!r}: one was recreated"
        raise LogContinuityError(message)
    if marker is not None and (marker.epoch, marker.seq) > (state.epoch, state.seq):
        message = f"routing-table shows epoch {marker.epoch}, decisions end at {state.epoch}: decisions were lost"
        raise LogContinuityError(message)


def _stands(state: State, replica: TableReplica, publisher: TablePublisher) -> bool:
    marker = replica.last_marker
    return marker is not None and marker.epoch == state.epoch and publisher.shows(state)
