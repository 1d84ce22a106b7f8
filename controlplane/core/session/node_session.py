"""The state machine of a node session: joining, heartbeats, self-fencing, draining and leaving. It does no I/O.

The routing table determines the status of the node, and the session follows it. A node that is fenced by the table and
still runs joins again with the same incarnation. A node whose name has a greater incarnation in the table is superseded
and stops for good. So is one whose incarnation the table gives to another process: two processes that start at once, or
whose clocks are wrong, can choose the same one.

The controllers forget nodes that are gone for long, and refuse an unknown name unless its incarnation is above all that
they have forgotten. The table tells this floor. A session without a row takes a greater incarnation before it asks
again; it holds nothing then, so for the cluster it is a new process.

Self-fencing: a node without contact to the log refuses requests before another node can own what it held. The leader
counts silence from the append of a heartbeat, and a heartbeat is never appended before it was *sent*. So the node
serves until (sending of the last acknowledged heartbeat + silence limit - margin), see
:mod:`controlplane.core.session.silence`. The silence limit is the cluster's, and the table contains it: with a limit of
its own a node could serve longer than the leader waits.

A node starts or resumes serving only after a heartbeat was acknowledged and the table, read to its end after that,
still shows it as a member. The acknowledgement alone is not enough: a node that reads late that it was admitted may
have been fenced since.

A leader also takes slots from nodes that live, and does not wait for them. So after every acknowledgement the node
reads the table to its end again. Such a reading is valid for as long as an acknowledgement, but at least for
:data:`TABLE_GOOD_FOR_AT_LEAST_MS`. A node that can send heartbeats but cannot read the table serves slots of other
nodes for that long at most.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Final, assert_never

from controlplane.core.membership.node import NodeStatus
from controlplane.core.membership.rows import NodeRow
from controlplane.core.session.messages import (
    ConfirmTable,
    DrainAsked,
    HeartbeatAcknowledged,
    LeaveAsked,
    SendHeartbeat,
    SendJoin,
    SendLeaving,
    SendLeft,
    SessionAction,
    SessionEvent,
    SessionOutput,
    StepDone,
    TableChanged,
    TableConfirmed,
    TableRead,
)
from controlplane.core.session.silence import valid_for_ms
from controlplane.core.values.identifiers import Incarnation, ProcessId
from controlplane.core.values.machine import Output, Woke
from controlplane.errors import ConfigurationError, InvariantViolationError

FOREVER_MS: Final = 1 << 62
"""A monotonic time that is never reached."""
TABLE_GOOD_FOR_AT_LEAST_MS: Final = 1_500
"""Least time for which a reading of the table is valid: finding the end takes some tenths of a second."""
_AGAIN_DIVISOR: Final = 4
"""A heartbeat is sent again after this part of the time for which an acknowledgement is valid."""
STEPS_TOGETHER_MS: Final = 50
"""Least time between two heartbeats that are sent to report steps: those done meanwhile are reported together."""


class OnLogLoss(Enum):
    """What a node does when it loses contact to the log."""

    STOP = "stop"
    """Refuse requests before a leader can fence the node. An outage of the log then is an outage of the service."""
    SERVE = "serve"
    """Continue to serve. For services that prefer stale answers to none, or fence writes by the token alone."""


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """Settings of a node session.

    Attributes:
        heartbeat_interval_ms: longest time between two heartbeats. It is shorter if the time for which an
            acknowledgement is valid is less than two intervals.
        join_retry_ms: time after which a join or leaving record is repeated until the table shows its effect.
        self_fencing_margin_ms: how long before the cluster's silence limit a node without contact to the log refuses
            requests. At least a ninth of the limit is used, and at most half of it
            (:func:`controlplane.core.session.silence.valid_for_ms`).
        on_log_loss: see :class:`OnLogLoss`.
    """

    heartbeat_interval_ms: int = 1_000
    join_retry_ms: int = 1_000
    self_fencing_margin_ms: int = 500
    on_log_loss: OnLogLoss = OnLogLoss.STOP

    def __post_init__(self) -> None:
        """Refuse invalid settings.

        Raises:
            ConfigurationError: an interval is not positive, or the margin is negative.
        """
        if min(self.heartbeat_interval_ms, self.join_retry_ms) <= 0 or self.self_fencing_margin_ms < 0:
            raise ConfigurationError(f"session intervals have to be positive and the margin not negative: {self}")


class SessionState(Enum):
    """The state of a node session."""

    STARTING = "starting"
    """Waits for the first table and reads it to its end before it joins.

    Its incarnation must be greater than the last known one, and the settings say what a join may contain.
    """
    JOINING = "joining"
    """Asks to be admitted."""
    ACTIVE = "active"
    """Is a member."""
    DRAINING = "draining"
    """Is a member and is being relieved of what it holds."""
    LOST_LOG = "lost_log"
    """Is a member as far as it knows, but its heartbeats are not acknowledged."""
    FENCED = "fenced"
    """Is fenced by the table; joins again with the same incarnation."""
    LEFT = "left"
    """Has left. Final."""
    SUPERSEDED = "superseded"
    """Another process has joined under the same name, with a greater incarnation or, at the same time, with an equal
    one; this one must stop. Final."""


class SessionTrigger(Enum):
    """What moves a node session from one state to another."""

    TABLE_READ = "table_read"
    ADMITTED = "admitted"
    DRAINED = "drained"
    FENCED = "fenced"
    SUPERSEDED = "superseded"
    LOG_LOST = "log_lost"
    LOG_BACK = "log_back"
    LEAVE_ASKED = "leave_asked"


_S, _T = SessionState, SessionTrigger
TRANSITIONS: Final[dict[tuple[SessionState, SessionTrigger], SessionState]] = {
    (_S.STARTING, _T.TABLE_READ): _S.JOINING,
    (_S.STARTING, _T.LEAVE_ASKED): _S.LEFT,
    (_S.JOINING, _T.ADMITTED): _S.ACTIVE,
    (_S.JOINING, _T.DRAINED): _S.DRAINING,
    (_S.JOINING, _T.SUPERSEDED): _S.SUPERSEDED,
    (_S.JOINING, _T.LEAVE_ASKED): _S.LEFT,
    (_S.ACTIVE, _T.DRAINED): _S.DRAINING,
    (_S.ACTIVE, _T.FENCED): _S.FENCED,
    (_S.ACTIVE, _T.SUPERSEDED): _S.SUPERSEDED,
    (_S.ACTIVE, _T.LOG_LOST): _S.LOST_LOG,
    (_S.ACTIVE, _T.LEAVE_ASKED): _S.LEFT,
    (_S.DRAINING, _T.ADMITTED): _S.ACTIVE,
    (_S.DRAINING, _T.FENCED): _S.FENCED,
    (_S.DRAINING, _T.SUPERSEDED): _S.SUPERSEDED,
    (_S.DRAINING, _T.LOG_LOST): _S.LOST_LOG,
    (_S.DRAINING, _T.LEAVE_ASKED): _S.LEFT,
    (_S.LOST_LOG, _T.LOG_BACK): _S.ACTIVE,
    (_S.LOST_LOG, _T.FENCED): _S.FENCED,
    (_S.LOST_LOG, _T.SUPERSEDED): _S.SUPERSEDED,
    (_S.LOST_LOG, _T.LEAVE_ASKED): _S.LEFT,
    (_S.FENCED, _T.ADMITTED): _S.ACTIVE,
    (_S.FENCED, _T.DRAINED): _S.DRAINING,
    (_S.FENCED, _T.SUPERSEDED): _S.SUPERSEDED,
    (_S.FENCED, _T.LEAVE_ASKED): _S.LEFT,
}
"""Transition table: (state, trigger) to the next state. A pair that is not in it is an error.
``docs/reference/states.md`` is generated from it."""

FINAL_STATES: Final = frozenset({_S.LEFT, _S.SUPERSEDED})
HEARD_STATES: Final = frozenset({_S.ACTIVE, _S.DRAINING})
"""The states of a member whose heartbeats are acknowledged."""
_MEMBER_STATES: Final = HEARD_STATES | {_S.LOST_LOG}
_ASKING_STATES: Final = frozenset({_S.JOINING, _S.FENCED})


class NodeSession:
    """The state machine. Its attributes may be read at any time; only :meth:`on_event` changes them.

    Attributes:
        state: see :class:`SessionState`.
        incarnation: 0 until the table was read.
        last_acknowledged_ms: monotonic time at which the last acknowledged heartbeat of this membership was sent; None
            before the first.
        table_known_at_ms: monotonic time at which the last complete reading of the table during this membership was
            requested; None before the first.
    """

    def __init__(self, settings: SessionSettings, process_id: ProcessId = "") -> None:
        """Create a session of this process, which waits for the table."""
        self._process_id = process_id
        self.state = SessionState.STARTING
        self.incarnation: Incarnation = 0
        self.last_acknowledged_ms: int | None = None
        self.table_known_at_ms: int | None = None
        self._settings = settings
        self._row: NodeRow | None = None
        self._floor: Incarnation = 0
        self._good_for_ms = 0
        self._heartbeat_interval_ms = settings.heartbeat_interval_ms
        self._member_since_ms = 0
        self._lost_at_ms = 0
        self._ask_at_ms = 0
        self._heartbeat_at_ms = 0
        self._sent_at_ms = 0
        self._steps_again_at_ms = 0
        self._drain_reason: str | None = None

    @property
    def serve_until_ms(self) -> int:
        """The monotonic time from which on the node has to refuse requests; 0 if it has to refuse them now."""
        if self.state not in _MEMBER_STATES:
            return 0
        if self._settings.on_log_loss is OnLogLoss.SERVE:
            return FOREVER_MS
        acknowledged_ms, known_at_ms = self.last_acknowledged_ms, self.table_known_at_ms
        if self.state is SessionState.LOST_LOG or acknowledged_ms is None or known_at_ms is None:
            return 0
        return min(acknowledged_ms + self._good_for_ms, known_at_ms + self._table_good_for_ms)

    def lacks_table(self, now_ms: int) -> bool:
        """Whether the node refuses requests, although heartbeats are acknowledged, because its table is too old."""
        since_ms = max(self.table_known_at_ms or 0, self._member_since_ms)
        heard = self.state in HEARD_STATES
        return heard and self.serve_until_ms <= now_ms and now_ms >= since_ms + self._table_good_for_ms

    @property
    def _table_good_for_ms(self) -> int:
        return max(self._good_for_ms, TABLE_GOOD_FOR_AT_LEAST_MS)

    def on_event(self, now_ms: int, event: SessionEvent) -> SessionOutput:
        """Process an event at monotonic time ``now_ms``. In a final state events have no effect.

        Raises:
            InvariantViolationError: the transition table has no row for the trigger in this state.
        """
        if self.state in FINAL_STATES:
            return Output(None)
        # First, because an acknowledgement that arrives after the deadline must not hide that the deadline has passed.
        self._notice_log_loss(now_ms)
        actions: list[SessionAction] = []
        match event:
            case Woke():
                pass
            case TableRead(last_known=last_known, wall_ms=wall_ms):
                self.incarnation = max(wall_ms, last_known + 1)
                self._move(now_ms, SessionTrigger.TABLE_READ)
            case TableChanged(row=row, silence_limit_ms=silence_limit_ms, incarnation_floor=floor):
                self._row = row
                self._floor = floor
                self._keep_within(now_ms, silence_limit_ms)
            case HeartbeatAcknowledged(sent_at_ms=sent_at_ms):
                actions += self._acknowledged(now_ms, sent_at_ms)
            case TableConfirmed(asked_at_ms=asked_at_ms):
                self._confirmed(now_ms, asked_at_ms)
            case StepDone():
                self._report_soon(now_ms)
            case DrainAsked(reason=reason):
                self._drain_reason = reason
                self._ask_at_ms = now_ms
            case LeaveAsked(reason=reason):
                if self.state is not SessionState.STARTING:
                    actions.append(SendLeft(self.incarnation, reason))
                self._move(now_ms, SessionTrigger.LEAVE_ASKED)
            case _:
                assert_never(event)
        self._follow_table(now_ms)
        actions += self._due(now_ms)
        return Output(self._next_wake_at_ms(), tuple(actions))

    def _move(self, now_ms: int, trigger: SessionTrigger) -> None:
        before = self.state
        after = TRANSITIONS.get((before, trigger))
        if after is None:
            message = f"node session: state {before.value} has no transition for {trigger.value}"
            raise InvariantViolationError(message)
        self.state = after
        if after in _ASKING_STATES:
            self._ask_at_ms = now_ms
        if after in _MEMBER_STATES and before in _ASKING_STATES:
            self._member_since_ms = now_ms
            self.table_known_at_ms = None
            self.last_acknowledged_ms = None
            self._heartbeat_at_ms = now_ms
        if after is SessionState.LOST_LOG:
            self._lost_at_ms = now_ms

    def _keep_within(self, now_ms: int, silence_limit_ms: int) -> None:
        """Adapt the validity of an acknowledgement and the heartbeat interval to the cluster's silence limit."""
        self._good_for_ms = valid_for_ms(silence_limit_ms, self._settings.self_fencing_margin_ms)
        self._heartbeat_interval_ms = min(self._settings.heartbeat_interval_ms, self._good_for_ms // 2)
        self._heartbeat_at_ms = min(self._heartbeat_at_ms, now_ms + self._heartbeat_interval_ms)

    def _report_soon(self, now_ms: int) -> None:
        """Send the next heartbeat at once, or soon after the last one that was sent for this reason.

        Not while the log is lost: heartbeats are frequent enough then, and each of them reports every step.
        """
        if self.state in HEARD_STATES:
            soon_ms = max(now_ms, self._steps_again_at_ms)
            if soon_ms < self._heartbeat_at_ms:
                self._heartbeat_at_ms = soon_ms
                self._steps_again_at_ms = soon_ms + STEPS_TOGETHER_MS

    def _acknowledged(self, now_ms: int, sent_at_ms: int) -> list[SessionAction]:
        if self.state not in _MEMBER_STATES or sent_at_ms < self._member_since_ms:
            return []
        self.last_acknowledged_ms = max(sent_at_ms, self.last_acknowledged_ms or 0)
        return [ConfirmTable(now_ms)] if now_ms < self._deadline_ms() else []

    def _confirmed(self, now_ms: int, asked_at_ms: int) -> None:
        """Note a complete reading of the table.

        It was requested after an acknowledgement, and the session has already followed the node's row in it.
        """
        is_back = self.state is SessionState.LOST_LOG
        since_ms = self._lost_at_ms if is_back else self._member_since_ms
        if self.state not in _MEMBER_STATES or asked_at_ms < since_ms or now_ms >= self._deadline_ms():
            return
        self.table_known_at_ms = asked_at_ms
        if is_back:
            self._move(now_ms, SessionTrigger.LOG_BACK)

    def _follow_table(self, now_ms: int) -> None:
        """Move to the state that the node's row in the table demands, unless the session is in it."""
        trigger = self._standing()
        agreed = {
            SessionState.JOINING: (SessionTrigger.FENCED,),
            SessionState.ACTIVE: (SessionTrigger.ADMITTED,),
            SessionState.DRAINING: (SessionTrigger.DRAINED,),
            SessionState.LOST_LOG: (SessionTrigger.ADMITTED, SessionTrigger.DRAINED),
            SessionState.FENCED: (SessionTrigger.FENCED,),
        }
        if self.state in agreed and trigger not in agreed[self.state]:
            self._move(now_ms, trigger)

    def _standing(self) -> SessionTrigger:
        row = self._row
        if row is None or row.incarnation < self.incarnation:
            return SessionTrigger.FENCED
        if not row.is_of(self.incarnation, self._process_id):
            return SessionTrigger.SUPERSEDED
        return {NodeStatus.ACTIVE: SessionTrigger.ADMITTED, NodeStatus.DRAINING: SessionTrigger.DRAINED}.get(
            row.status, SessionTrigger.FENCED
        )

    def _deadline_ms(self) -> int:
        return max(self.last_acknowledged_ms or 0, self._member_since_ms) + self._good_for_ms

    def _notice_log_loss(self, now_ms: int) -> None:
        if self.state in HEARD_STATES and now_ms >= self._deadline_ms():
            self._move(now_ms, SessionTrigger.LOG_LOST)

    def _due(self, now_ms: int) -> list[SessionAction]:
        actions: list[SessionAction] = []
        if self._asks and now_ms >= self._ask_at_ms:
            self._ask_at_ms = now_ms + self._settings.join_retry_ms
            if self.state in _ASKING_STATES:
                if self._row is None:
                    self.incarnation = max(self.incarnation, self._floor + 1)
                actions.append(SendJoin(self.incarnation))
            elif self._drain_reason is not None:
                actions.append(SendLeaving(self.incarnation, self._drain_reason))
        if self.state in _MEMBER_STATES and now_ms >= self._next_heartbeat_at_ms:
            self._heartbeat_at_ms = now_ms + self._heartbeat_interval_ms
            self._sent_at_ms = now_ms
            actions.append(SendHeartbeat(self.incarnation, now_ms))
        return actions

    @property
    def _asks(self) -> bool:
        """Whether a join or leaving record has to be repeated until the table shows its effect."""
        if self._drain_reason is None:
            return self.state in _ASKING_STATES
        return self.state in _MEMBER_STATES and self._standing() is SessionTrigger.ADMITTED

    @property
    def _next_heartbeat_at_ms(self) -> int:
        """When the next heartbeat is due: earlier if the last one is not acknowledged, until the log is lost.

        The interval is at most half of the time for which an acknowledgement is valid, and what is not acknowledged
        within a quarter of it is sent again. So both are sent while the former acknowledgement is valid.
        """
        is_acknowledged = self.last_acknowledged_ms is not None and self.last_acknowledged_ms >= self._sent_at_ms
        if is_acknowledged or self.state is SessionState.LOST_LOG:
            return self._heartbeat_at_ms
        return min(self._heartbeat_at_ms, self._sent_at_ms + self._good_for_ms // _AGAIN_DIVISOR)

    def _next_wake_at_ms(self) -> int | None:
        wakes = []
        if self._asks:
            wakes.append(self._ask_at_ms)
        if self.state in _MEMBER_STATES:
            wakes.append(self._next_heartbeat_at_ms)
        if self.state in HEARD_STATES:
            wakes.append(self._deadline_ms())
        return min(wakes, default=None)
