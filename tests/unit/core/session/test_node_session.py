"""The node session, rule by rule."""

from collections.abc import Callable

import pytest

from controlplane.core.membership.node import NodeRole, NodeStatus
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
    SessionEvent,
    TableChanged,
    TableConfirmed,
    TableRead,
)
from controlplane.core.session.node_session import (
    FOREVER_MS,
    TABLE_GOOD_FOR_AT_LEAST_MS,
    TRANSITIONS,
    NodeSession,
    OnLogLoss,
    SessionSettings,
    SessionState,
    SessionTrigger,
)
from controlplane.core.values.machine import Output, Woke
from controlplane.errors import ConfigurationError, InvariantViolationError

WALL_MS = 1_700_000_000_000


def row(status: NodeStatus, incarnation: int = WALL_MS) -> NodeRow:
    """The node's own row in the table."""
    return NodeRow("n1", incarnation, NodeRole.DATA, status, (), "", 1, "")


SILENCE_LIMIT_MS = 2_500
ACTIVE, DRAINING, FENCED = (
    TableChanged(row(status), SILENCE_LIMIT_MS)
    for status in (NodeStatus.ACTIVE, NodeStatus.DRAINING, NodeStatus.FENCED)
)
SUPERSEDED = TableChanged(row(NodeStatus.ACTIVE, WALL_MS + 1), SILENCE_LIMIT_MS)
READ = TableRead(0, WALL_MS)


@pytest.mark.parametrize("limit_ms", [500, 1_000, 2_500, 4_500, 5_000, 10_000, 20_000])
def test_a_clock_that_is_a_tenth_slow_stops_the_node_within_every_limit(limit_ms: int) -> None:
    """While it counts nine milliseconds ten pass, and the brokers' clocks may be a hundredth fast."""
    session = session_after((0, READ), (0, TableChanged(row(NodeStatus.ACTIVE), limit_ms)))
    session.on_event(0, HeartbeatAcknowledged(0))
    session.on_event(0, TableConfirmed(0))
    acknowledged_only_ms = session._deadline_ms()  # noqa: SLF001 - a reading of the table may be valid for longer
    assert acknowledged_only_ms / 0.9 * 1.01 <= limit_ms
    assert session.serve_until_ms == acknowledged_only_ms > 0


def session_after(*events: tuple[int, SessionEvent], settings: SessionSettings | None = None) -> NodeSession:
    """A session that has been through timed events."""
    session = NodeSession(settings or SessionSettings())
    for now_ms, event in events:
        session.on_event(now_ms, event)
    return session


SERVING: tuple[tuple[int, SessionEvent], ...] = (
    (0, READ),
    (10, ACTIVE),
    (20, HeartbeatAcknowledged(10)),
    (21, TableConfirmed(20)),
)
"""How to come to serve."""

WAYS: dict[SessionState, tuple[tuple[int, SessionEvent], ...]] = {
    SessionState.STARTING: (),
    SessionState.JOINING: ((0, READ),),
    SessionState.ACTIVE: ((0, READ), (10, ACTIVE)),
    SessionState.DRAINING: ((0, READ), (10, ACTIVE), (20, DRAINING)),
    SessionState.LOST_LOG: ((0, READ), (10, ACTIVE), (2_010, Woke())),
    SessionState.FENCED: ((0, READ), (10, ACTIVE), (20, FENCED)),
}
"""How to come into each state that is not final."""

EVENTS: dict[SessionTrigger, tuple[tuple[int, SessionEvent], ...]] = {
    SessionTrigger.TABLE_READ: ((3_000, READ),),
    SessionTrigger.ADMITTED: ((1_000, ACTIVE),),
    SessionTrigger.DRAINED: ((1_000, DRAINING),),
    SessionTrigger.FENCED: ((3_000, FENCED),),
    SessionTrigger.SUPERSEDED: ((3_000, SUPERSEDED),),
    SessionTrigger.LOG_LOST: ((2_010, Woke()),),
    SessionTrigger.LOG_BACK: ((3_000, HeartbeatAcknowledged(2_900)), (3_010, TableConfirmed(3_000))),
    SessionTrigger.LEAVE_ASKED: ((3_000, LeaveAsked("test")),),
}
"""What brings each trigger about."""


@pytest.mark.parametrize(("state", "trigger"), TRANSITIONS, ids=lambda each: each.value)
def test_every_transition_of_the_table_happens(state: SessionState, trigger: SessionTrigger) -> None:
    """The table is the rule: each of its lines can be reached and leads where it says."""
    session = session_after(*WAYS[state])
    assert session.state is state
    for now_ms, event in EVENTS[trigger]:
        session.on_event(now_ms, event)
    assert session.state is TRANSITIONS[state, trigger]


def test_what_is_not_in_the_table_is_an_error() -> None:
    """A second first reading of the table is a defect of the driver and must not pass."""
    session = session_after((0, READ))
    with pytest.raises(InvariantViolationError, match="has no transition for table_read"):
        session.on_event(1, READ)


@pytest.mark.parametrize("last_event", [LeaveAsked("done"), SUPERSEDED])
def test_final_states_answer_nothing(last_event: SessionEvent) -> None:
    """A session that is over sends nothing, whatever still comes in."""
    session = session_after((0, READ), (10, ACTIVE), (20, last_event))
    for event in (Woke(), ACTIVE, FENCED, HeartbeatAcknowledged(20), DrainAsked("late"), LeaveAsked("again")):
        assert session.on_event(5_000, event) == Output(None)
    assert session.serve_until_ms == 0


def test_the_incarnation_grows_even_if_the_wall_clock_fell() -> None:
    """A restart on a machine whose clock was set back must still be taken for the newer process."""
    last_known = WALL_MS + 500
    assert session_after((0, TableRead(last_known, WALL_MS))).incarnation == WALL_MS + 501
    assert session_after((0, TableRead(last_known, WALL_MS + 9_000))).incarnation == WALL_MS + 9_000


def test_a_name_that_is_not_known_asks_above_the_floor() -> None:
    """The table tells how great an incarnation the controllers have forgotten, while the join is on its way."""
    floor = WALL_MS + 40
    session = session_after((0, READ))
    waits = session.on_event(10, TableChanged(None, SILENCE_LIMIT_MS, floor))
    assert waits == Output(1_000)
    assert session.on_event(1_000, Woke()) == Output(2_000, (SendJoin(floor + 1),))
    later = session.on_event(2_000, Woke())
    assert later.actions == (SendJoin(floor + 1),)


def test_a_process_that_was_forgotten_joins_as_a_new_one() -> None:
    """It stood still for longer than a fenced node is remembered, and may still believe that it serves."""
    session = session_after(*SERVING)
    asks = session.on_event(90_000_000, TableChanged(None, SILENCE_LIMIT_MS, WALL_MS))
    assert session.serve_until_ms == 0
    assert asks.actions == (SendJoin(WALL_MS + 1),)


@pytest.mark.parametrize("status", [NodeStatus.ACTIVE, NodeStatus.FENCED])
def test_a_node_with_a_row_is_not_bound_by_the_floor(status: NodeStatus) -> None:
    """The controllers know it, and a greater incarnation would cost it what it holds."""
    session = session_after(*SERVING, (30, TableChanged(row(status), SILENCE_LIMIT_MS, WALL_MS + 500)))
    session.on_event(1_030, Woke())
    assert session.incarnation == WALL_MS


def test_the_join_is_repeated_until_the_table_answers() -> None:
    """A join that was lost, or came while no controller led, must not leave the node outside for ever."""
    session = NodeSession(SessionSettings(join_retry_ms=1_000))
    assert session.on_event(0, READ) == Output(1_000, (SendJoin(WALL_MS),))
    assert session.on_event(999, Woke()) == Output(1_000)
    assert session.on_event(1_000, Woke()) == Output(2_000, (SendJoin(WALL_MS),))
    assert session.on_event(1_500, ACTIVE) == Output(2_000, (SendHeartbeat(WALL_MS, 1_500),))


def test_heartbeats_keep_their_interval_whatever_else_happens() -> None:
    """Early, repeated and late wake-ups neither double a heartbeat nor make up for missed ones."""
    session = session_after((0, READ), (10, ACTIVE))
    assert session.on_event(10, Woke()) == Output(510)
    assert session.on_event(11, HeartbeatAcknowledged(10)).actions == (ConfirmTable(11),)
    assert session.on_event(12, TableConfirmed(11)).actions == ()
    assert session.on_event(1_010, Woke()).actions == (SendHeartbeat(WALL_MS, 1_010),)
    assert session.on_event(1_011, HeartbeatAcknowledged(1_010)).actions == (ConfirmTable(1_011),)
    assert session.on_event(2_700, Woke()) == Output(3_010, (SendHeartbeat(WALL_MS, 2_700),))


@pytest.mark.parametrize("limit_ms", [500, 2_500, 20_000])
def test_a_heartbeat_that_is_not_acknowledged_is_sent_again_while_the_former_one_is_valid(limit_ms: int) -> None:
    """Also if the writer got stuck right after an acknowledgement; another writer may send the second one."""
    session = session_after((0, READ), (0, TableChanged(row(NodeStatus.ACTIVE), limit_ms)))
    session.on_event(0, HeartbeatAcknowledged(0))
    session.on_event(0, TableConfirmed(0))
    sent_at_ms: list[int] = []
    for now_ms in range(session.serve_until_ms):
        sent_at_ms += [
            action.sent_at_ms for action in session.on_event(now_ms, Woke()).actions if hasattr(action, "sent_at_ms")
        ]
    assert len(sent_at_ms) >= 2
    assert session.serve_until_ms - sent_at_ms[1] >= limit_ms // 8


def test_a_lost_log_is_not_asked_more_often() -> None:
    """It may be overloaded, and there is nothing left to save."""
    session = session_after(*WAYS[SessionState.LOST_LOG])
    session.on_event(2_010, Woke())
    actions = [each for now_ms in range(2_011, 12_011) for each in session.on_event(now_ms, Woke()).actions]
    assert len(actions) == 10


def test_a_member_serves_only_once_a_heartbeat_is_acknowledged_and_the_table_confirmed() -> None:
    """Before that nobody knows from when the leader counts its silence, nor whether the count has begun anew."""
    session = session_after((0, READ), (10, ACTIVE))
    assert session.serve_until_ms == 0
    assert session.on_event(30, HeartbeatAcknowledged(10)).actions == (ConfirmTable(30),)
    assert session.serve_until_ms == 0
    session.on_event(31, TableConfirmed(30))
    assert session.serve_until_ms == 10 + 2_500 - 500


def test_a_node_that_reads_late_that_it_was_admitted_does_not_serve() -> None:
    """It was fenced since, and its first heartbeat was appended after that: only the table's end tells."""
    session = session_after((0, READ), (9_000, ACTIVE))
    session.on_event(9_001, HeartbeatAcknowledged(9_000))
    assert session.serve_until_ms == 0
    session.on_event(9_002, FENCED)
    session.on_event(9_003, TableConfirmed(9_001))
    assert session.serve_until_ms == 0
    assert session.state is SessionState.FENCED


def test_a_member_that_cannot_read_the_table_stops_though_its_heartbeats_arrive() -> None:
    """Its slots may have gone to others, and nobody fences it: what it has read last is good for one limit."""
    session = session_after(*SERVING)
    for sent_at_ms in (1_010, 2_010, 3_010):
        session.on_event(sent_at_ms, Woke())
        asked_at_ms = sent_at_ms + 5
        assert session.on_event(asked_at_ms, HeartbeatAcknowledged(sent_at_ms)).actions == (ConfirmTable(asked_at_ms),)
    assert session.state is SessionState.ACTIVE
    assert session.serve_until_ms == 20 + 2_500 - 500
    assert not session.lacks_table(2_019)
    assert session.lacks_table(2_020)
    session.on_event(3_100, TableConfirmed(1_015))
    assert session.lacks_table(3_100), "that reading began too long ago"
    session.on_event(3_101, TableConfirmed(3_015))
    assert session.serve_until_ms == 3_010 + 2_500 - 500
    assert not session.lacks_table(3_101)


def test_a_short_limit_leaves_the_time_that_reading_takes() -> None:
    """The end of the table is found some tenths of a second after the asking: nobody may refuse requests for that."""
    admitted = TableChanged(row(NodeStatus.ACTIVE), 500)
    session = session_after((0, READ), (10, admitted), (20, HeartbeatAcknowledged(10)), (21, TableConfirmed(20)))
    for sent_at_ms in range(200, 2_000, 200):
        session.on_event(sent_at_ms + 5, HeartbeatAcknowledged(sent_at_ms))
        assert session.serve_until_ms == min(sent_at_ms + 250, 20 + TABLE_GOOD_FOR_AT_LEAST_MS)


def test_a_member_without_the_log_does_not_lack_the_table_alone() -> None:
    """What is told of a table that cannot be read must not hide that nothing can be reached."""
    assert not session_after(*WAYS[SessionState.LOST_LOG]).lacks_table(9_000)
    assert session_after(*SERVING).lacks_table(2_020)
    settings = SessionSettings(on_log_loss=OnLogLoss.SERVE)
    assert not session_after(*SERVING, settings=settings).lacks_table(9_000), "it was asked to serve on"


def test_a_table_that_was_asked_for_in_an_earlier_membership_confirms_nothing() -> None:
    """The node was fenced and admitted since; what that reading brought is out of date."""
    session = session_after((0, READ), (10, ACTIVE), (20, HeartbeatAcknowledged(10)), (30, FENCED), (40, ACTIVE))
    session.on_event(50, HeartbeatAcknowledged(40))
    session.on_event(51, TableConfirmed(20))
    assert session.serve_until_ms == 0


@pytest.mark.parametrize(
    ("silence_limit_ms", "interval_ms", "serves_for_ms"), [(500, 125, 250), (1_200, 350, 700), (20_000, 1_000, 17_777)]
)
def test_a_node_keeps_within_the_clusters_silence_limit(
    silence_limit_ms: int, interval_ms: int, serves_for_ms: int
) -> None:
    """Whoever created the cluster chose the limit: a node that went by one of its own might serve while others own."""
    admitted = TableChanged(row(NodeStatus.ACTIVE), silence_limit_ms)
    session = session_after((0, READ), (10, admitted), (20, HeartbeatAcknowledged(10)), (21, TableConfirmed(20)))
    assert session.serve_until_ms == 10 + serves_for_ms
    assert session.on_event(10 + interval_ms, Woke()).actions == (SendHeartbeat(WALL_MS, 10 + interval_ms),)


def test_silence_is_counted_from_the_sending_not_from_the_acknowledgement() -> None:
    """The broker may have appended a heartbeat long before its acknowledgement arrived."""
    session = session_after((0, READ), (10, ACTIVE), (1_500, HeartbeatAcknowledged(10)), (1_501, TableConfirmed(1_500)))
    assert session.serve_until_ms == 2_010


def test_a_node_without_the_log_resumes_only_with_a_confirmed_table() -> None:
    """An acknowledged heartbeat alone does not say that the node was not fenced meanwhile: the table does."""
    session = session_after(*WAYS[SessionState.LOST_LOG])
    output = session.on_event(3_000, HeartbeatAcknowledged(2_010))
    assert ConfirmTable(3_000) in output.actions
    assert session.serve_until_ms == 0
    session.on_event(3_001, TableConfirmed(2_000))
    before = session.state
    assert before is SessionState.LOST_LOG, "that reading began before the log was lost"
    session.on_event(3_002, TableConfirmed(3_000))
    assert session.state is SessionState.ACTIVE
    assert session.serve_until_ms == 4_010


def test_a_late_acknowledgement_does_not_hide_the_loss() -> None:
    """A stalled process whose heartbeat got through after the deadline may have been fenced: the table knows."""
    session = session_after(*SERVING, (1_010, Woke()))
    session.on_event(2_600, HeartbeatAcknowledged(1_010))
    assert session.state is SessionState.LOST_LOG
    assert session.serve_until_ms == 0


def test_acknowledgements_of_an_earlier_membership_do_not_count() -> None:
    """A heartbeat that was sent before the node was fenced says nothing about its readmission."""
    session = session_after((0, READ), (10, ACTIVE), (20, FENCED), (30, ACTIVE))
    session.on_event(40, HeartbeatAcknowledged(10))
    assert session.serve_until_ms == 0
    session.on_event(50, HeartbeatAcknowledged(30))
    session.on_event(51, TableConfirmed(50))
    assert session.serve_until_ms == 2_030


def test_a_fenced_node_joins_again_with_the_same_incarnation() -> None:
    """It is still the same process; a new incarnation would be taken for a restart."""
    session = session_after(*SERVING)
    assert session.on_event(30, FENCED) == Output(1_030, (SendJoin(WALL_MS),))
    assert session.serve_until_ms == 0


def test_a_node_whose_row_vanished_joins_again() -> None:
    """An operator removed the node: as long as it lives it asks to be a member."""
    session = session_after((0, READ), (10, ACTIVE))
    assert session.on_event(20, TableChanged(None, SILENCE_LIMIT_MS)).actions == (SendJoin(WALL_MS),)


def test_serving_on_without_the_log_is_a_choice() -> None:
    """With on_log_loss = serve the node goes on until the table itself fences it."""
    settings = SessionSettings(on_log_loss=OnLogLoss.SERVE)
    session = session_after(*WAYS[SessionState.LOST_LOG], settings=settings)
    assert session.state is SessionState.LOST_LOG
    assert session.serve_until_ms == FOREVER_MS
    session.on_event(9_000, FENCED)
    assert session.serve_until_ms == 0


def test_draining_is_asked_until_the_table_shows_it() -> None:
    """Leaving in an orderly way is two steps: relieved of everything first, gone afterwards."""
    session = session_after(*SERVING)
    leaving = SendLeaving(WALL_MS, "restart")
    assert leaving in session.on_event(100, DrainAsked("restart")).actions
    assert leaving not in session.on_event(1_010, Woke()).actions
    assert leaving in session.on_event(1_100, Woke()).actions
    session.on_event(1_200, DRAINING)
    assert session.state is SessionState.DRAINING
    assert session.serve_until_ms > 0, "it serves until the others have taken over"
    assert leaving not in session.on_event(2_100, Woke()).actions
    assert session.on_event(2_200, LeaveAsked("restart")) == Output(None, (SendLeft(WALL_MS, "restart"),))


def test_a_draining_node_that_is_fenced_does_not_join_again() -> None:
    """It wanted to go anyway."""
    session = session_after((0, READ), (10, ACTIVE), (20, DrainAsked("restart")))
    assert session.on_event(30, FENCED) == Output(None)


def test_leaving_before_the_table_was_read_says_nothing() -> None:
    """Without an incarnation there is nothing to take back."""
    assert NodeSession(SessionSettings()).on_event(0, LeaveAsked("early")) == Output(None)


@pytest.mark.parametrize(
    "build",
    [
        lambda: SessionSettings(heartbeat_interval_ms=0),
        lambda: SessionSettings(self_fencing_margin_ms=-1),
        lambda: SessionSettings(join_retry_ms=0),
    ],
)
def test_settings_that_contradict_themselves_are_refused(build: Callable[[], SessionSettings]) -> None:
    """No interval is nothing, and no margin less than nothing."""
    with pytest.raises(ConfigurationError):
        build()
