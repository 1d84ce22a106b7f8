"""What operators read in an agent's log: each change of its state, and what became of its slots when it left."""

import signal
import threading
from collections.abc import Iterator, MutableMapping

import pytest
from structlog.testing import capture_logs

from controlplane.adapters.system_threads import SystemThreads
from controlplane.core.membership.node import NodeStatus
from controlplane.core.session.node_session import SessionSettings
from controlplane.errors import InvariantViolationError, LogContinuityError
from controlplane.node import Access, DrainOutcome, NodeAgent, SessionState
from controlplane.node.description import NodeDescription
from controlplane.node.session_log import LOG_REGAINED, STATE_EVENTS
from tests.helpers.memory_cluster import ObservedCluster
from tests.helpers.polling import poll_until
from tests.helpers.readme import ROOT

SETTINGS = SessionSettings(heartbeat_interval_ms=100, join_retry_ms=200, self_fencing_margin_ms=200)
Line = MutableMapping[str, object]


@pytest.fixture
def world() -> Iterator[ObservedCluster]:
    """A cluster without a controller."""
    with ObservedCluster() as made:
        yield made


@pytest.fixture
def lines(world: ObservedCluster) -> Iterator[list[Line]]:
    """Everything that is logged, also by the agents that this test makes."""
    with capture_logs() as captured:
        yield captured


def agent_of(world: ObservedCluster, node_id: str = "n1") -> NodeAgent:
    """A started agent."""
    agent = NodeAgent(
        writer=world.event_writer(),
        reader=world.reader(),
        clock=world.clock,
        threads=SystemThreads(),
        node=NodeDescription(node_id),
        cluster="test",
        settings=SETTINGS,
    )
    return agent.start()


def serving(world: ObservedCluster, node_id: str = "n1") -> NodeAgent:
    """An agent that serves a slot."""
    agent = agent_of(world, node_id)
    poll_until(lambda: serves(agent))
    return agent


def serves(agent: NodeAgent) -> bool:
    """Whether the agent serves a slot; what it leads is ready at once."""
    return any(agent.slot_ready(each) and agent.ownership(each).access is Access.ACCEPT for each in range(8))


def told(lines: list[Line], node_id: str = "n1") -> list[tuple[str, str]]:
    """Level and event of a node's lines."""
    return [(str(line["log_level"]), str(line["event"])) for line in lines if line.get("node") == node_id]


def test_every_change_of_state_is_logged_and_that_it_serves_again(world: ObservedCluster, lines: list[Line]) -> None:
    """One who reads only this log knows at each moment whether the node serves."""
    world.start("c1")
    agent = serving(world)
    world.broker.available = False
    poll_until(lambda: agent.state is SessionState.LOST_LOG)
    world.broker.available = True
    poll_until(lambda: serves(agent))
    agent.stop(drain=False)
    events = [line for line in told(lines) if line[1] != "routing table unavailable"]
    assert events[:3] == [
        ("info", "node asks to be admitted"),
        ("info", "node is a member"),
        ("info", "requests for ready slots are served"),
    ]
    # A busy machine may lose the log more than once: each time it is this.
    rounds, rest = divmod(len(events) - 4, 4)
    assert (rounds > 0, rest) == (True, 0)
    assert events[3:-1] == rounds * [
        ("warning", "no heartbeat was acknowledged in time"),
        ("warning", "requests are refused"),
        ("info", "heartbeats are acknowledged again"),
        ("info", "requests for ready slots are served"),
    ]
    assert events[-1] == ("info", "node has left")
    back = [line for line in lines if line.get("before") == "lost_log"][-1]
    assert back["incarnation"] == agent._session.incarnation  # noqa: SLF001 - what the table names
    assert back["epoch"] == 2


def test_a_fenced_node_says_so(world: ObservedCluster, lines: list[Line]) -> None:
    """Its slots go to others while it lives: a partition between it and Kafka that is over by now."""
    world.start("c1")
    world.join("n2")
    agent = serving(world)
    writer = agent._writer  # noqa: SLF001 - the network between this node and Kafka
    send, writer.send = writer.send, lambda *_: None  # type: ignore[method-assign]
    world.wait_until(lambda: _status(world, "n1") is not NodeStatus.ACTIVE)
    poll_until(lambda: agent.state is SessionState.FENCED)
    writer.send = send  # type: ignore[method-assign]
    poll_until(lambda: agent.state is SessionState.ACTIVE)
    agent.stop(drain=False)
    events = [line for line in told(lines) if "fenced" in line[1]]
    assert events == [
        ("warning", "node is fenced: its slots and bundles go to other nodes, and it asks to be admitted again")
    ]


def test_handing_over_is_told(world: ObservedCluster, lines: list[Line]) -> None:
    """First that it begins and how long it may take, then that it is done."""
    world.start("c1")
    world.join("n2")
    agent = serving(world)
    drained = agent.stop()
    assert drained == (DrainOutcome.DONE, 8, 0)
    assert [line for line in told(lines) if "hand" in line[1]] == [
        ("info", "handing over before leaving"),
        ("info", "everything was handed over"),
    ]


def test_the_last_node_says_that_nothing_is_handed_over(world: ObservedCluster, lines: list[Line]) -> None:
    """There is no other node."""
    world.start("c1")
    assert serving(world).stop() == (DrainOutcome.NO_OTHER_NODE, 8, 8)
    assert ("warning", "nothing was handed over: no other node can take it") in told(lines)


def test_without_a_controller_it_says_that_nothing_was_handed_over(world: ObservedCluster, lines: list[Line]) -> None:
    """The operator has pressed Ctrl-C, and has to learn why it takes so long and what it led to."""
    controller = world.start("c1")
    world.join("n2")
    agent = serving(world)
    controller.end()
    assert agent.stop(timeout_ms=300) == (DrainOutcome.TIMED_OUT, 8, 8)
    events = [line for line in lines if line.get("node") == "n1" and "hand" in str(line["event"])]
    assert [line["log_level"] for line in events] == ["info", "warning"]
    assert events[0]["timeout_ms"] == 300
    assert events[1]["event"] == (
        "nothing was handed over within 300 ms: is there a leader, and have other nodes copied it? "
        "The node leaves with what it holds"
    )
    assert [(line["slots"], line["bundles"]) for line in events] == [(8, 0), (8, 0)]


def test_a_node_that_is_no_member_hands_nothing_over_and_says_so(world: ObservedCluster, lines: list[Line]) -> None:
    """It was never admitted: there is no leader any more."""
    controller = world.start("c1")
    poll_until(world.table)
    controller.end()
    agent = agent_of(world)
    poll_until(lambda: agent.state is SessionState.JOINING)
    assert agent.stop().outcome is DrainOutcome.NOT_A_MEMBER
    assert ("warning", "nothing to hand over: the node is not a member now") in told(lines)


def test_a_superseded_process_ends_with_one_line(
    world: ObservedCluster, lines: list[Line], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says what happened and what to do, without a stack, and its main thread returns; the newer one warns first."""
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    world.start("c1")
    older = serving(world)
    ended_as: list[SessionState] = []
    waiting = threading.Thread(target=lambda: ended_as.append(older.run_until_signal()))
    waiting.start()
    newer = serving(world)
    waiting.join(20)
    assert ended_as == [SessionState.SUPERSEDED]
    newer.stop(drain=False)
    (line,) = [line for line in lines if line["log_level"] == "error"]
    assert line["event"] == "node agent ended"
    assert str(line["error"]).startswith("another process has joined as node 'n1'")
    assert "exc_info" not in line
    (warned,) = [line for line in lines if "takes the place of another process" in str(line["event"])]
    assert warned["log_level"] == "warning"


@pytest.mark.parametrize(
    ("failure", "with_stack"),
    [
        (LogContinuityError("routing-table[0]@7"), False),
        (InvariantViolationError("a defect"), True),
        (KeyError(1), True),
    ],
    ids=lambda value: type(value).__name__,
)
def test_only_defects_are_logged_with_a_stack(
    world: ObservedCluster, lines: list[Line], failure: Exception, *, with_stack: bool
) -> None:
    """An error that says what to do needs no stack; a defect, of ours or of a callback, does."""
    agent = agent_of(world)

    def fail() -> None:
        raise failure

    agent._shared.guarded(fail)  # noqa: SLF001 - as a thread of the agent runs
    agent.stop()
    (line,) = [line for line in lines if line["log_level"] == "error"]
    assert line.get("exc_info", False) is with_stack


def test_the_page_explains_every_state() -> None:
    """An operator looks a line up by its words."""
    page = (ROOT / "docs" / "how-to" / "survive-silence-and-failures.md").read_text(encoding="utf-8")
    assert [event for event in (*STATE_EVENTS.values(), LOG_REGAINED) if f"`{event}`" not in page] == []
    assert STATE_EVENTS.keys() == {*SessionState} - {SessionState.STARTING, SessionState.SUPERSEDED}


def _status(world: ObservedCluster, node_id: str) -> NodeStatus | None:
    table = world.table()
    row = table.nodes.get(node_id) if table else None
    return row.status if row else None
