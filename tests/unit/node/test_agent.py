"""Agents against a real controller over the in-memory world: joining, gains and losses, fencing, draining, errors."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest
from prometheus_client import REGISTRY
from structlog.testing import capture_logs

from controlplane.adapters.system_threads import SystemThreads
from controlplane.codec.inputs import decode_input
from controlplane.config import HEARTBEATS, LOAD_REPORTS
from controlplane.core.bundles.reports import BundleLoad, LoadReport
from controlplane.core.membership.node import NodeStatus
from controlplane.core.session.node_session import SessionSettings, SessionState
from controlplane.core.slots.reports import SlotLoad
from controlplane.core.values.identifiers import Epoch, SlotId, TopicPartition
from controlplane.errors import SupersededError
from controlplane.node import (
    Access,
    NodeAgent,
    NodeCallbacks,
    NodeLoad,
    SlotGained,
    SlotLost,
)
from controlplane.node.description import NodeDescription
from controlplane.node.load_thread import LoadReports
from controlplane.ports import LogReader, PartitionEnd, PolledBatch
from controlplane.testing import MemoryEventWriter
from tests.helpers.memory_cluster import ObservedCluster
from tests.helpers.polling import poll_until

SETTINGS = SessionSettings(heartbeat_interval_ms=100, join_retry_ms=200, self_fencing_margin_ms=200)


class Recorder(NodeCallbacks):
    """Keeps what it hears and marks every gained slot as ready."""

    def __init__(self) -> None:
        self.agent: NodeAgent | None = None
        self.gained: list[SlotGained] = []
        self.lost: list[SlotLost] = []

    def on_slots_gained(self, slots: Sequence[SlotGained]) -> None:
        """Keep and mark."""
        self.gained.extend(slots)
        for slot in slots:
            assert self.agent is not None
            self.agent.slot_ready(slot.slot_id)

    def on_slots_lost(self, slots: Sequence[SlotLost]) -> None:
        """Keep."""
        self.lost.extend(slots)


class LateEnds:
    """A reader over a slow connection: an end comes 300 ms after the fetch from which it tells."""

    def __init__(self, reader: LogReader) -> None:
        """Wrap a reader."""
        self._reader = reader
        self._ends_at_s = 0.0
        self._ended: dict[TopicPartition, PartitionEnd] = {}

    def __getattr__(self, name: str) -> object:
        """Everything else is the wrapped reader's."""
        return getattr(self._reader, name)

    def assign(self, positions: Mapping[TopicPartition, int]) -> None:
        """Fetch anew."""
        self._reader.assign(positions)
        self._ends_at_s = time.monotonic() + 0.3
        self._ended = {}

    def poll(self, max_records: int, timeout_ms: int) -> PolledBatch:
        """Keep the ends back for a while."""
        batch = self._reader.poll(max_records, timeout_ms)
        self._ended |= batch.ended
        if time.monotonic() < self._ends_at_s:
            return PolledBatch(batch.records, {})
        ended, self._ended = self._ended, {}
        return PolledBatch(batch.records, ended)


class Fleet:
    """Agents of one in-memory cluster with a running controller."""

    def __init__(self, world: ObservedCluster, stack: ExitStack) -> None:
        self.world = world
        self._stack = stack

    def start(
        self,
        node_id: str,
        callbacks: NodeCallbacks | None = None,
        load_source: Callable[[], NodeLoad] | None = None,
        reader: LogReader | None = None,
    ) -> NodeAgent:
        """An agent that joins; it is stopped at the end without draining."""
        writer = MemoryEventWriter(self.world.cluster, self.world.broker, message_timeout_ms=800)
        load_reports = None
        if load_source is not None:
            load_reports = LoadReports(load_source, self.world.event_writer(), interval_ms=50)
        agent = NodeAgent(
            writer=writer,
            reader=reader or self.world.reader(),
            clock=self.world.clock,
            threads=SystemThreads(),
            node=NodeDescription(node_id),
            cluster="test",
            callbacks=callbacks,
            load_reports=load_reports,
            settings=SETTINGS,
        )
        if isinstance(callbacks, Recorder):
            callbacks.agent = agent
        agent.start()
        self._stack.callback(lambda: agent.stop(drain=False))
        return agent


@pytest.fixture
def fleet() -> Iterator[Fleet]:
    """A cluster with one controller."""
    with ObservedCluster() as world, ExitStack() as stack:
        world.start("c1")
        yield Fleet(world, stack)


def test_an_agent_joins_and_serves_what_it_leads_once_it_is_ready(fleet: Fleet) -> None:
    """Gains arrive as callbacks; a slot is refused until its data is there."""
    agent = fleet.start("n1")
    poll_until(lambda: set(fleet.world.owners().values()) == {"n1"})
    poll_until(lambda: agent.ownership(3).access is Access.MIGRATING)
    poll_until(lambda: agent.slot_ready(3))
    assert agent.ownership(3).access is Access.ACCEPT
    assert agent.ownership(3).token == (1, agent.ownership(3).epoch)


def test_a_request_waits_for_the_table_by_which_it_was_sent(fleet: Fleet) -> None:
    """It goes on as soon as the node has read it, and is given up at the end of its time or of the agent."""
    agent = fleet.start("n1")
    poll_until(lambda: set(fleet.world.owners().values()) == {"n1"})
    poll_until(lambda: agent.table is not None)
    table = agent.table
    assert table is not None
    assert agent.wait_for_epoch(table.epoch, timeout_ms=0)
    far = Epoch(table.epoch + 1_000)
    assert not agent.wait_for_epoch(far, timeout_ms=10)
    with ThreadPoolExecutor(2) as threads:
        waits = threads.submit(agent.wait_for_epoch, Epoch(table.epoch + 1), timeout_ms=600_000)
        fleet.start("n2")
        assert waits.result(20)
        waits_on = threads.submit(agent.wait_for_epoch, far, timeout_ms=600_000)
        assert not waits_on.done()
        agent.stop(drain=False)
        assert not waits_on.result(20)
    assert not agent.wait_for_epoch(far, timeout_ms=600_000)


def test_a_second_node_takes_its_share_and_knows_where_to_fetch_it(fleet: Fleet) -> None:
    """Sources of a gained slot are living holders, the former slot leader first."""
    first, second = Recorder(), Recorder()
    fleet.start("n1", first)
    poll_until(lambda: set(fleet.world.owners().values()) == {"n1"})
    fleet.start("n2", second)
    poll_until(lambda: set(fleet.world.owners().values()) == {"n1", "n2"})
    poll_until(lambda: len(second.gained) == 8)
    assert {slot.sources for slot in second.gained} == {("n1",)}


def test_the_last_node_does_not_wait_for_somebody_to_take_over(fleet: Fleet) -> None:
    """Nobody could: it leaves as soon as the table says so, however long it might wait."""
    agent = fleet.start("n1")
    poll_until(lambda: agent.ownership(3).access is Access.MIGRATING)
    began_s = time.monotonic()
    agent.stop(timeout_ms=60_000)
    assert time.monotonic() - began_s < 30
    poll_until(lambda: set(fleet.world.owners().values()) == {None})
    causes = [cause.kind.value for decision in fleet.world.decisions() for cause in decision.causes]
    assert causes[-2:] == ["node_leaving", "node_left"]


def test_stopping_drains_first_and_leaves_then(fleet: Fleet) -> None:
    """After a graceful stop nobody waits for silence: the node's slots are elsewhere before it goes."""
    fleet.start("n1", Recorder())
    agent = fleet.start("n2", Recorder())
    poll_until(lambda: set(fleet.world.owners().values()) == {"n1", "n2"})
    poll_until(lambda: agent.state is SessionState.ACTIVE)  # the table may tell others before it tells the node itself
    agent.stop(drain=True)
    assert set(fleet.world.owners().values()) == {"n1"}
    poll_until(lambda: "n2" not in fleet.world.table().nodes)  # type: ignore[union-attr]
    causes = {cause.kind.value for decision in fleet.world.decisions() for cause in decision.causes}
    assert "node_expired" not in causes


def test_a_node_without_the_log_refuses_before_others_may_own_its_slots(fleet: Fleet) -> None:
    """Self-fencing counts from the sending of the last acknowledged heartbeat; it resumes when the log is back."""
    agent = fleet.start("n1", Recorder())
    poll_until(lambda: agent.ownership(3).access is Access.ACCEPT)
    fleet.world.broker.available = False
    began_s = time.monotonic()
    poll_until(lambda: agent.ownership(3).access is Access.MOVED)
    assert time.monotonic() - began_s < fleet.world.policy.silence_limit_ms / 1_000
    fleet.world.broker.available = True
    poll_until(lambda: agent.ownership(3).access is Access.ACCEPT)
    assert fleet.world.table().nodes["n1"].status is NodeStatus.ACTIVE  # type: ignore[union-attr]


def test_a_node_is_back_even_if_the_table_takes_longer_to_read_than_a_heartbeat(fleet: Fleet) -> None:
    """Each heartbeat asks for the table to be read to its end: a reading that is under way must not begin again."""
    agent = fleet.start("n1", Recorder(), reader=LateEnds(fleet.world.reader()))  # type: ignore[arg-type]
    poll_until(lambda: agent.ownership(3).access is Access.ACCEPT)
    fleet.world.broker.available = False
    poll_until(lambda: agent.state is SessionState.LOST_LOG)
    fleet.world.broker.available = True
    poll_until(lambda: agent.ownership(3).access is Access.ACCEPT)


def test_a_process_that_was_replaced_stops_for_good(fleet: Fleet) -> None:
    """Two processes of one name cannot both serve: the older one ends and says why."""
    older = fleet.start("n1", Recorder())
    poll_until(lambda: older.ownership(3).access is Access.ACCEPT)
    newer = fleet.start("n1", Recorder())
    poll_until(lambda: newer.ownership(3).access is Access.ACCEPT)
    assert older.ownership(3).access is Access.MOVED
    poll_until(lambda: older.state is SessionState.SUPERSEDED)
    poll_until(lambda: raises(older))
    with pytest.raises(SupersededError):
        older.check()


def test_an_error_in_a_callback_ends_the_agent_and_its_heartbeats(fleet: Fleet) -> None:
    """A node that serves half a table must not claim to be alive: its slots go to others."""

    class Broken(NodeCallbacks):
        def on_slots_gained(self, slots: Sequence[SlotGained]) -> None:
            raise ZeroDivisionError(len(slots))

    fleet.start("n1", Recorder())
    poll_until(lambda: set(fleet.world.owners().values()) == {"n1"})
    agent = fleet.start("n2", Broken())
    poll_until(lambda: raises(agent))
    with pytest.raises(ZeroDivisionError):
        agent.check()
    poll_until(lambda: set(fleet.world.owners().values()) == {"n1"})


def test_a_slow_measurement_does_not_hold_heartbeats_up(fleet: Fleet) -> None:
    """The user's measuring code may take longer than the silence limit, and the node stays a member that serves."""
    measuring, finish = threading.Event(), threading.Event()

    def measure() -> NodeLoad:
        measuring.set()
        assert finish.wait(20)
        return NodeLoad()

    agent = fleet.start("n1", Recorder(), measure)
    assert measuring.wait(20)
    poll_until(lambda: agent.ownership(3).access is Access.ACCEPT)
    beats_before = len(fleet.world.records(HEARTBEATS))
    ends_s = time.monotonic() + 2 * fleet.world.policy.silence_limit_ms / 1_000
    while time.monotonic() < ends_s:
        assert agent.ownership(3).access is Access.ACCEPT
        time.sleep(0.01)
    assert len(fleet.world.records(HEARTBEATS)) > beats_before
    assert not fleet.world.records(LOAD_REPORTS)
    finish.set()
    poll_until(lambda: fleet.world.records(LOAD_REPORTS))


def test_a_load_report_that_waits_for_a_dead_follower_holds_no_heartbeat_up(fleet: Fleet) -> None:
    """The broker acknowledges no load report. The node stays a member that serves, and the next report arrives."""
    broker, topic = fleet.world.broker, fleet.world.cluster.topic(LOAD_REPORTS)
    measured = threading.Event()

    def measure() -> NodeLoad:
        measured.set()
        return NodeLoad()

    agent = fleet.start("n1", Recorder(), measure)
    poll_until(lambda: agent.ownership(3).access is Access.ACCEPT)
    broker.lose_follower(topic, 0)
    measured.clear()
    assert measured.wait(20)
    reports_before = len(fleet.world.records(LOAD_REPORTS))
    beats_before = len(fleet.world.records(HEARTBEATS))
    ends_s = time.monotonic() + 2 * fleet.world.policy.silence_limit_ms / 1_000
    while time.monotonic() < ends_s:
        assert agent.ownership(3).access is Access.ACCEPT
        time.sleep(0.01)
    assert len(fleet.world.records(HEARTBEATS)) > beats_before
    assert len(fleet.world.records(LOAD_REPORTS)) == reports_before
    broker.drop_follower(topic, 0)
    poll_until(lambda: len(fleet.world.records(LOAD_REPORTS)) > reports_before)


def test_load_reports_are_counted_by_their_fate(fleet: Fleet) -> None:
    """Kafka takes them, and then it does not: what was given up is counted too."""

    def counted(fate: str) -> float:
        labels = {"cluster": "test", "node": "n1", "fate": fate}
        return REGISTRY.get_sample_value("controlplane_node_load_reports_total", labels) or 0

    fleet.start("n1", Recorder(), NodeLoad)
    poll_until(lambda: counted("acknowledged") > 1)
    assert counted("given_up") == 0
    fleet.world.broker.lose_leader(fleet.world.cluster.topic(LOAD_REPORTS), 0)
    poll_until(lambda: counted("given_up") > 1, 30)


def test_a_load_report_that_is_too_large_is_sent_without_what_does_not_fit(fleet: Fleet) -> None:
    """An agent that ended here would leave its bundles to others, which would end next."""
    bundles = tuple(
        BundleLoad(f"tenant/namespace/{number:032}", 1.0, 1.0, 1.0, 1.0, 1, 1, 1, 1) for number in range(10)
    )
    slots = tuple(SlotLoad(SlotId(number), 1.0, 1.0, 1) for number in range(20_000))
    loads = iter([NodeLoad(bundles=bundles, slots=slots), NodeLoad(bundles=1_000 * bundles)])
    agent = fleet.start("n1", Recorder(), lambda: next(loads, NodeLoad(bundles=bundles)))
    poll_until(lambda: len(fleet.world.records(LOAD_REPORTS)) >= 3)
    reports = [decode_input(LOAD_REPORTS, record).payload for record in fleet.world.records(LOAD_REPORTS)[:3]]
    assert [(len(each.bundles), len(each.slots)) for each in reports if isinstance(each, LoadReport)] == [
        (10, 0),
        (0, 0),
        (10, 0),
    ]
    agent.check()


def test_a_measurement_that_fails_costs_a_report_and_no_membership(fleet: Fleet) -> None:
    """The node serves on, says what failed, counts it, and reports again as soon as the measurement works."""
    fails = True

    def measure() -> NodeLoad:
        return NodeLoad(bundles=(BundleLoad("b", 1.0, 1.0, 1.0, 1.0, 1, 1, 1, 1 // (not fails)),))

    def counted() -> float:
        labels = {"cluster": "test", "node": "n1", "fate": "not_measured"}
        return REGISTRY.get_sample_value("controlplane_node_load_reports_total", labels) or 0

    with capture_logs() as lines:
        agent = fleet.start("n1", Recorder(), measure)
        poll_until(lambda: counted() > 2)
    (text,) = {line["error"] for line in lines if line["event"].startswith("load not measured")}
    assert "ZeroDivisionError" in text
    poll_until(lambda: agent.ownership(3).access is Access.ACCEPT)
    assert not fleet.world.records(LOAD_REPORTS)
    fails = False
    poll_until(lambda: fleet.world.records(LOAD_REPORTS))
    agent.check()


def test_the_load_is_reported_while_the_node_is_drained(fleet: Fleet) -> None:
    """A drain may take long, and what still runs on the node counts for those who place and shed."""
    agent = fleet.start("n1", Recorder(), NodeLoad)
    poll_until(lambda: agent.ownership(3).access is Access.ACCEPT)
    fleet.world.intent("drain-n1", "drain_node", node="n1")
    poll_until(lambda: agent.state is SessionState.DRAINING)
    before = len(fleet.world.records(LOAD_REPORTS))
    poll_until(lambda: len(fleet.world.records(LOAD_REPORTS)) > before + 1)
    assert agent.state is SessionState.DRAINING


def test_stopping_twice_is_harmless(fleet: Fleet) -> None:
    """A user's clean-up may run after a signal has stopped the agent already."""
    agent = fleet.start("n1", Recorder())
    poll_until(lambda: agent.ownership(3).access is Access.ACCEPT)
    agent.stop(drain=False)
    agent.stop(drain=True)
    assert agent.state is SessionState.LEFT


def raises(agent: NodeAgent) -> bool:
    """Whether the agent has ended by an error."""
    try:
        agent.check()
    except (SupersededError, ZeroDivisionError):
        return True
    return False
