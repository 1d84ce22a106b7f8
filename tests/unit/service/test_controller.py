"""Whole controllers over the in-memory world: taking over, handing over, listening to every client, metrics."""

import threading
import time
from collections import Counter

import pytest
from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs

from controlplane.core.cluster.events import TermOpened
from controlplane.core.election.steps import TRANSITIONS, ControllerAction, ControllerPhase
from controlplane.core.membership.node import NodeStatus
from controlplane.core.operations.leader_operations import resignation_in
from controlplane.core.routing.replica import RoutingTable
from controlplane.errors import LogUnavailableError
from controlplane.ports import LogReader, PolledBatch
from controlplane.service.metrics import ControllerMetrics
from controlplane.testing import MemoryEventWriter, MemoryLeaseStore
from controlplane.testing.memory_controllers import RunningController
from tests.helpers.memory_cluster import ObservedCluster, assert_log_is_whole


def test_the_first_leader_creates_the_log_and_an_empty_table() -> None:
    """A new cluster has a log with a name, a term, and a table that routes to nobody yet."""
    with ObservedCluster() as world:
        world.start("c1")
        world.wait_until(world.table)
        (first,) = world.decisions()
        table = world.table()
        assert table is not None
        assert (first.seq, first.term, first.epoch) == (1, 1, 1)
        assert (table.epoch, table.log_id, table.term) == (1, first.log_id, 1)
        assert {slot.leader for slot in table.slots} == {None}
        world.wait_until(lambda: MemoryLeaseStore(world.leases).read_log_id() == first.log_id)


def test_every_leader_records_the_name_of_its_cluster() -> None:
    """The one in its configuration, by which tenants allow the cluster."""
    with ObservedCluster(name="eu-1") as world:
        first = world.start("c1")
        world.wait_until(world.decisions)
        world.start("c2")
        first.end()
        world.wait_until(lambda: world.decisions()[-1].term > 1)
        opened = [event for each in world.decisions() for event in each.events if isinstance(event, TermOpened)]
        assert [event.cluster for event in opened] == ["eu-1", "eu-1"]


def test_nodes_join_and_a_silent_one_loses_its_slots() -> None:
    """The main job, end to end: join, heartbeat, silence, fencing, new table."""
    with ObservedCluster() as world:
        world.start("c1")
        world.join("n1", "n2", "n3")
        world.wait_until(lambda: set(world.owners().values()) == {"n1", "n2", "n3"})
        world.silence("n2")
        world.wait_until(lambda: set(world.owners().values()) == {"n1", "n3"})
        certificate = world.decisions()[-1].certificate
        assert certificate is not None
        assert certificate.moved == certificate.least_moved
        assert_log_is_whole(world)


def test_a_second_controller_takes_over_with_everything_the_first_knew() -> None:
    """Whoever is stopped gives the lease back at once; the epoch goes on without a gap and no node is disturbed."""
    with ObservedCluster() as world:
        first = world.start("c1")
        world.join("n1", "n2")
        world.wait_until(lambda: set(world.owners().values()) == {"n1", "n2"})
        before = world.table()
        world.start("c2")
        first.end()
        world.wait_until(lambda: world.decisions()[-1].term > 1)
        after = world.table()
        assert isinstance(before, RoutingTable)
        assert isinstance(after, RoutingTable)
        assert after.slots == before.slots
        world.join("n3")
        world.wait_until(lambda: set(world.owners().values()) == {"n1", "n2", "n3"})
        assert_log_is_whole(world)


def test_a_leader_that_is_asked_to_resign_hands_over_at_once() -> None:
    """An operator moves leading away from a machine without waiting for a lease, and gets his answer first."""
    with ObservedCluster() as world:
        world.start("c1")
        world.wait_until(world.table)
        world.start("c2")
        world.join("n1")
        world.wait_until(lambda: set(world.owners().values()) == {"n1"})
        world.intent("i1", "resign_leader", controller="c1")
        world.wait_until(lambda: world.decisions()[-1].term == 2)
        resigned, opened = world.decisions()[-2:]
        assert (resigned.controller_id, opened.controller_id) == ("c1", "c2")
        assert resignation_in(resigned) is not None
        world.intent("i2", "resign_leader", controller="c1")
        world.intent("i3", "resign_leader", controller="c2")
        world.wait_until(lambda: world.decisions()[-1].term == 3)
        assert world.decisions()[-1].controller_id == "c1"
        assert [len([d for d in world.decisions() if d.term == term and resignation_in(d)]) for term in (1, 2)] == [
            1,
            1,
        ]
        assert_log_is_whole(world)


def test_a_leader_that_resigns_alone_leads_again() -> None:
    """A resignation must not end the control plane."""
    with ObservedCluster() as world:
        world.start("c1")
        world.wait_until(world.table)
        world.intent("i1", "resign_leader", controller="c1")
        world.wait_until(lambda: world.decisions()[-1].term == 2)
        world.join("n1")
        world.wait_until(lambda: set(world.owners().values()) == {"n1"})
        assert_log_is_whole(world)


def test_a_leader_that_was_asked_to_go_does_not_warn_of_it() -> None:
    """By an operator's intent or by the signal that ends its process: nobody has to look into that."""
    with ObservedCluster() as world, capture_logs() as logs:
        controller = world.start("c1")
        world.wait_until(world.table)
        world.intent("i1", "resign_leader", controller="c1")
        world.wait_until(lambda: sum(each["event"] == "leading" for each in logs) == 2)
        controller.end()
        stepping_down = [each for each in logs if each["event"] == "stepping down"]
        assert [(each["log_level"], each["reason"]) for each in stepping_down] == [
            ("info", "resigned"),
            ("info", "shutdown"),
        ]


def test_a_preferred_controller_that_lasts_is_handed_the_lease() -> None:
    """It comes later and leads in the end; nobody has to be killed, and the log shows one more term."""
    with ObservedCluster() as world, capture_logs() as logs:
        world.start("c1", handover_after_ms=1_000)
        world.join("n1")
        world.wait_until(lambda: set(world.owners().values()) == {"n1"})
        world.start("c2", priority=5)
        world.start("c3", priority=3)
        world.wait_until(lambda: world.decisions()[-1].controller_id == "c2")
        time.sleep(1.5)
        assert {decision.controller_id for decision in world.decisions()} == {"c1", "c2"}
        assert_log_is_whole(world)
        (handing_over,) = [each for each in logs if each["event"] == "handing the lease over to a preferred controller"]
        assert (handing_over["log_level"], handing_over["preferred"], handing_over["priority"]) == ("info", "c2", 5)
        (stepping_down,) = [each for each in logs if each["event"] == "stepping down"]
        assert (stepping_down["log_level"], stepping_down["reason"]) == ("info", "lease handed over")


def test_a_standby_that_cannot_read_the_log_listens_as_well() -> None:
    """The leader and Kafka may go together: it wins the lease, has no reader any more, and tries for hours."""
    polled: Counter[str] = Counter()
    away = threading.Event()

    class Watched(MemoryEventWriter):
        def poll(self, timeout_ms: int) -> None:
            polled["letters"] += 1
            super().poll(timeout_ms)

    with ObservedCluster() as world, capture_logs() as logs:
        open_reader, letters = world.reader, Watched(world.cluster, world.broker)

        def reader() -> LogReader:
            if away.is_set():
                raise LogUnavailableError("Kafka is away")
            opened = open_reader()
            poll = opened.poll

            def counted(max_records: int, timeout_ms: int) -> PolledBatch:
                polled["a reader"] += 1
                return poll(max_records, timeout_ms)

            opened.poll = counted  # type: ignore[method-assign]
            return opened

        leader = world.start("c1")
        world.wait_until(world.table)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(world, "reader", reader)
            ticks = world.event_writer()
            patch.setattr(world, "event_writer", lambda: letters)
            world.start("c2", ticks, snapshot_writer=ticks)
        world.wait_until(lambda: polled["letters"] > 2)
        away.set()
        leader.end()
        world.wait_until(
            lambda: any(each["event"] == "take-over failed, backing off so that others can try" for each in logs)
        )
        polled.clear()
        world.wait_until(lambda: min(polled["letters"], polled["a reader"]) > 2)


def test_leader_and_standby_show_the_state_in_their_metrics() -> None:
    """Alerts on a gauge that nobody sets would never come."""
    with ObservedCluster() as world:
        controllers = [world.start("c1"), world.start("c2")]
        world.join("n1", "n2")
        world.wait_until(lambda: set(world.owners().values()) == {"n1", "n2"})
        world.intent("drain", "drain_node", node="n2")
        world.intent("pause", "pause_reconciliation")

        def shown(each: RunningController) -> dict[str, float | None]:
            names = ("seq", "epoch", "term", "reconciliation_paused", "evictions_frozen")
            nodes = {status.value: each.metric("controlplane_nodes", status=status.value) for status in NodeStatus}
            return nodes | {name: each.metric(f"controlplane_{name}") for name in names}

        def expected() -> dict[str, float | None]:
            last = world.decisions()[-1]
            state = {"seq": last.seq, "epoch": last.epoch, "term": last.term, "reconciliation_paused": 1}
            return {"active": 1, "draining": 1, "fenced": 0, "left": 0, "evictions_frozen": 0, **state}

        world.wait_until(lambda: [shown(each) for each in controllers] == [expected()] * 2)
        assert sorted(each.metric("controlplane_leading") or 0 for each in controllers) == [0, 1]


def test_the_metric_names_every_reason_to_step_down() -> None:
    """Alerts are written by these words, and only here do they stand together."""
    reasons = {
        trigger.value
        for (step, trigger), row in TRANSITIONS.items()
        if step in {ControllerPhase.LEADING, ControllerPhase.AWAITING_ANSWER}
        and ControllerAction.DISCARD in row.actions
    }
    (metric,) = ControllerMetrics(CollectorRegistry()).steps_down.describe()
    told = metric.documentation
    assert len(reasons) > 6
    assert [reason for reason in reasons if reason not in told] == []


def test_a_standby_listens_to_every_client() -> None:
    """What librdkafka has to say of a broker that is away gathers in each client until somebody polls it."""
    polled: Counter[int] = Counter()

    class Watched(MemoryEventWriter):
        def poll(self, timeout_ms: int) -> None:
            polled[id(self)] += 1
            super().poll(timeout_ms)

    with ObservedCluster() as world:
        ticks, letters, snapshots = writers = [Watched(world.cluster, world.broker) for _ in range(3)]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(world, "event_writer", lambda: letters)
            world.start("c1", ticks, follow_only=True, snapshot_writer=snapshots)
        world.wait_until(lambda: all(polled[id(writer)] > 2 for writer in writers))
