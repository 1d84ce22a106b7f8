"""The agent's thread that drives the session machine: joining, heartbeats, draining and leaving."""

import queue
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final, assert_never

from controlplane.config import HEARTBEATS, MEMBERSHIP
from controlplane.core.cluster.policy import HANDOFFS_FROM_LEVEL
from controlplane.core.log.inputs import InputPayload
from controlplane.core.membership.inputs import Heartbeat, NodeJoined, NodeLeaving, NodeLeft
from controlplane.core.membership.node import PROCESSES_FROM_LEVEL
from controlplane.core.session.messages import (
    ConfirmTable,
    HeartbeatAcknowledged,
    SendHeartbeat,
    SendJoin,
    SendLeaving,
    SendLeft,
    SessionAction,
    SessionEvent,
    StepDone,
)
from controlplane.core.session.node_session import FINAL_STATES, NodeSession, SessionSettings, SessionState
from controlplane.core.slots.reports import few, merged
from controlplane.core.values.identifiers import Incarnation, ProcessId
from controlplane.core.values.machine import Woke
from controlplane.errors import ConfigurationError, SupersededError
from controlplane.node.description import join_record
from controlplane.node.sending import SizeLimitedSender, send_record
from controlplane.node.session_log import SessionLog
from controlplane.node.shared import Shared
from controlplane.ports import Delivery, EventWriter, Mailbox, Threads

_STEP_MS: Final = 50
"""The interval of the session's checks whether a record was delivered, while one is outstanding."""
_IDLE_MS: Final = 500
"""The interval of the session's checks while no record is outstanding."""
_JOINS_A_WARNING: Final = 10
_FEW_STEPS: Final = 100
"""Steps of handoffs in a heartbeat in which more do not fit."""


class SessionThread:
    """Drives the session. Other threads pass events to it and read its state.

    Attributes:
        confirmations: times at which the session asked for a reading of the table; the table thread answers.
        incarnation_known: set as soon as the session has chosen its incarnation.
        serve_until_ms: the node may serve until this time of the monotonic clock.
    """

    def __init__(self, shared: Shared, writer: EventWriter, settings: SessionSettings, threads: Threads) -> None:
        """Set up; :meth:`run` begins to send. The writer belongs to the caller."""
        self._shared = shared
        self._writer = writer
        self._session = NodeSession(settings, shared.process_id)
        self._inbox: Mailbox[SessionEvent] = threads.mailbox()
        self.confirmations: Mailbox[int] = threads.mailbox()
        self.incarnation_known = threads.signal()
        self.serve_until_ms = 0
        self._joins_sent = 0
        self._heartbeats = SizeLimitedSender(shared, writer, HEARTBEATS)
        self._log = SessionLog(shared.logger)

    @property
    def state(self) -> SessionState:
        """The state of the session."""
        return self._session.state

    @property
    def incarnation(self) -> Incarnation:
        """The incarnation under which the node is a member or asks to be one; 0 before it is known."""
        return self._session.incarnation

    def tell(self, event: SessionEvent) -> None:
        """Pass an event to the session."""
        self._inbox.put(event)

    def run(self) -> None:
        """Drive the session until the node has left, or is to stop.

        Raises:
            SupersededError: a greater incarnation of this node has joined.
        """
        shared, session = self._shared, self._session
        wake_at_ms: int | None = 0
        while not shared.stopping.is_set():
            output = session.on_event(shared.clock.monotonic_ms(), self._next_event(wake_at_ms))
            self.serve_until_ms = session.serve_until_ms
            wake_at_ms = output.next_wake_at_ms
            for action in output.actions:
                self._perform(action)
            self._writer.poll(0)
            self._show()
            if session.incarnation:
                self.incarnation_known.set()
            if session.state in FINAL_STATES:
                shared.end()
        if session.state is SessionState.SUPERSEDED:
            message = (
                f"another process has joined as node {shared.node.node_id!r}, so this process no longer serves and has "
                "to end; if both are meant to run, give each a node id of its own"
            )
            raise SupersededError(message)

    def _send(self, topic: str, payload: InputPayload, on_delivery: Callable[[Delivery], None] | None = None) -> None:
        send_record(self._shared, self._writer, topic, payload, on_delivery or self._on_delivery)

    def _next_event(self, wake_at_ms: int | None) -> SessionEvent:
        wait_ms = _STEP_MS if self._writer.awaits_delivery else _IDLE_MS
        if wake_at_ms is not None:
            wait_ms = min(wait_ms, wake_at_ms - self._shared.clock.monotonic_ms())
        try:
            event = self._inbox.get(timeout=max(wait_ms, 1) / 1_000)
        except queue.Empty:
            return Woke()
        # A heartbeat that was sent since may have reported the step already.
        has_news = self._shared.bundles.has_news or self._shared.book.has_news
        return Woke() if isinstance(event, StepDone) and not has_news else event

    def _perform(self, action: SessionAction) -> None:
        node = self._shared.node
        match action:
            case SendJoin(incarnation=incarnation):
                self._count_join(incarnation)
                self._send(MEMBERSHIP, self._join_record(incarnation))
            case SendHeartbeat(sent_at_ms=sent_at_ms):
                self._joins_sent = 0
                self._send_heartbeat(sent_at_ms)
            case SendLeaving(incarnation=incarnation, reason=reason):
                self._send(MEMBERSHIP, NodeLeaving(node.node_id, incarnation, reason, self._process_id))
            case SendLeft(incarnation=incarnation, reason=reason):
                self._send(MEMBERSHIP, NodeLeft(node.node_id, incarnation, reason, self._process_id))
            case ConfirmTable(asked_at_ms=asked_at_ms):
                self.confirmations.put(asked_at_ms)
            case _:
                assert_never(action)

    @property
    def _process_id(self) -> ProcessId:
        """The name of the process for records, if every controller that can read the log can read it, else empty."""
        return self._shared.process_id if self._shared.feature_level >= PROCESSES_FROM_LEVEL else ""

    def _join_record(self, incarnation: Incarnation) -> NodeJoined:
        return join_record(
            self._shared.node,
            incarnation,
            self._shared.started_at_wall_ms,
            self._process_id,
            hands_off=self._shared.feature_level >= HANDOFFS_FROM_LEVEL,
        )

    def _count_join(self, incarnation: Incarnation) -> None:
        """Count a join, and log a warning at intervals while the node is not admitted."""
        self._joins_sent += 1
        if self._joins_sent % _JOINS_A_WARNING == 0:
            text = "not admitted yet: is there a leader, and does topic dead-letters say why the join is refused?"
            self._shared.logger.warning(text, joins=self._joins_sent, incarnation=incarnation)

    def _send_heartbeat(self, sent_at_ms: int) -> None:
        """Send a heartbeat. If it takes too much, it goes without the statuses of bundles, or of some slots as well.

        Those of bundles go first, because no decision needs them. Of those of slots some always stay, because a node
        that reports none counts as ready in each. So do some steps: the leader waits for each of them, and the next
        heartbeats name the others.
        """
        node, wall_ms = self._shared.node, self._shared.clock.wall_ms()
        report, bundles = self._shared.book.report(wall_ms), self._shared.bundles.report()
        hands_off = self._shared.feature_level >= HANDOFFS_FROM_LEVEL
        beat = Heartbeat(
            node.node_id,
            self._session.incarnation,
            wall_ms,
            report.epoch,
            node.role,
            report.settings,
            report.statuses,
            bundles.statuses,
            report.groups,
            self._process_id,
            bundles.steps if hands_off else (),
            report.released if hands_off else (),
        )
        on_delivery = partial(self._on_heartbeat, sent_at_ms=sent_at_ms)
        self._heartbeats.send(_ever_smaller(beat), on_delivery)

    def _on_heartbeat(self, delivery: Delivery, sent_at_ms: int) -> None:
        metrics = self._shared.metrics
        (metrics.heartbeats_given_up if delivery.error else metrics.heartbeats_acknowledged).inc()
        if delivery.error is None:
            self.tell(HeartbeatAcknowledged(sent_at_ms))
        self._on_delivery(delivery)

    def _on_delivery(self, delivery: Delivery) -> None:
        """Handle a denial: before the first acknowledged heartbeat it ends the agent, later the right may come back."""
        if delivery.denied:
            self._shared.logger.warning("event not allowed", error=delivery.error)
            if self._session.last_acknowledged_ms is None:
                self._shared.fail(ConfigurationError(delivery.error))

    def _show(self) -> None:
        session, metrics, now_ms = self._session, self._shared.metrics, self._shared.clock.monotonic_ms()
        metrics.serves.set(1 if now_ms < self.serve_until_ms else 0)
        if session.last_acknowledged_ms is not None:
            metrics.heartbeat_age_ms.set(now_ms - session.last_acknowledged_ms)
        if session.table_known_at_ms is not None:
            metrics.table_age_ms.set(now_ms - session.table_known_at_ms)
        self._log.compare(session, now_ms, self._shared.book.epoch)
        with self._shared.changed:
            self._shared.changed.notify_all()


def _ever_smaller(beat: Heartbeat) -> Iterator[tuple[Heartbeat, str]]:
    """A heartbeat, and what may be sent instead; each with what is left out of it, in words."""
    yield beat, ""
    without_bundles = beat._replace(bundle_statuses=())
    yield without_bundles, "the statuses of bundles"
    brief = without_bundles._replace(slot_statuses=few(beat.slot_statuses), slot_groups=merged(beat.slot_groups))
    yield brief, "the statuses of bundles, and parts of those of slots"
    left_out = "the statuses of bundles, parts of those of slots, and most steps of handoffs"
    yield brief._replace(bundle_steps=beat.bundle_steps[:_FEW_STEPS]), left_out
