"""When a session reports the steps of handoffs: at once, together, and only where heartbeats are heard."""

from controlplane.core.session.messages import (
    ConfirmTable,
    HeartbeatAcknowledged,
    SendHeartbeat,
    StepDone,
    TableConfirmed,
)
from controlplane.core.session.node_session import STEPS_TOGETHER_MS, NodeSession, SessionState
from controlplane.core.values.machine import Woke
from tests.unit.core.session.test_node_session import SERVING, WALL_MS, WAYS, session_after


def beats(session: NodeSession, now_ms: int, event: StepDone | Woke) -> int:
    """How many heartbeats an event lets the session send."""
    actions = session.on_event(now_ms, event).actions
    assert all(action == SendHeartbeat(WALL_MS, now_ms) for action in actions)
    return len(actions)


def test_a_step_is_reported_at_once() -> None:
    """The leader waits for it. The next heartbeat of the session's own accord comes an interval later."""
    session = session_after(*SERVING)
    assert beats(session, 600, StepDone()) == 1
    session.on_event(605, HeartbeatAcknowledged(600))
    assert beats(session, 1_599, Woke()) == 0
    assert beats(session, 1_600, Woke()) == 1


def test_steps_that_are_done_soon_after_another_are_reported_together() -> None:
    """A node that takes very many bundles at once must not send a heartbeat for each."""
    session = session_after(*SERVING)
    assert beats(session, 600, StepDone()) == 1
    for now_ms in (601, 610, 600 + STEPS_TOGETHER_MS - 1):
        assert beats(session, now_ms, StepDone()) == 0
    assert session.on_event(649, Woke()).next_wake_at_ms == 600 + STEPS_TOGETHER_MS
    assert beats(session, 600 + STEPS_TOGETHER_MS, Woke()) == 1
    assert beats(session, 600 + 2 * STEPS_TOGETHER_MS, Woke()) == 0


def test_an_ordinary_heartbeat_holds_no_step_back() -> None:
    """The slot or the bundle has no owner meanwhile."""
    session = session_after(*SERVING)
    assert beats(session, 600, StepDone()) == 1
    session.on_event(605, HeartbeatAcknowledged(600))
    assert beats(session, 1_600, Woke()) == 1
    assert beats(session, 1_601, StepDone()) == 1
    assert beats(session, 1_602, StepDone()) == 0


def test_steps_are_not_reported_where_nobody_hears_them() -> None:
    """A node that is no member, or has lost the log, has heartbeats to send that report every step anyway, or none."""
    for state, events in WAYS.items():
        if state in (SessionState.ACTIVE, SessionState.DRAINING):
            continue
        session = session_after(*events)
        session.on_event(2_011, Woke())
        assert not [each for each in session.on_event(2_012, StepDone()).actions if isinstance(each, SendHeartbeat)]


def test_a_heartbeat_that_reports_steps_counts_like_any_other() -> None:
    """Its acknowledgement asks for the table, and is valid as long."""
    session = session_after(*SERVING)
    serves_until_ms = session.serve_until_ms
    assert beats(session, 600, StepDone()) == 1
    assert session.on_event(610, HeartbeatAcknowledged(600)).actions == (ConfirmTable(610),)
    session.on_event(611, TableConfirmed(610))
    assert session.serve_until_ms == serves_until_ms + 590
