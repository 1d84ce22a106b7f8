"""Whole controllers over the in-memory world: taking over, fencing, faults of the log and of the lease store."""

import threading
import time
from collections import Counter

import pytest
from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs

from controlplane.codec.framing import SINGLE_OBJECT_HEADER_BYTES
from controlplane.codec.inputs import encode_input
from controlplane.config import DECISIONS, HEARTBEATS, MEMBERSHIP, ROUTING_TABLE
from controlplane.core.election.steps import TRANSITIONS, ControllerAction, ControllerPhase
from controlplane.core.log.decision import CauseKind
from controlplane.core.membership.inputs import NodeJoined
from controlplane.core.membership.node import NodeRole, NodeStatus
from controlplane.core.operations.leader_operations import resignation_in
from controlplane.core.routing.replica import RoutingTable
from controlplane.errors import LogContinuityError, LogUnavailableError
from controlplane.ports import LogReader, PolledBatch
from controlplane.service.metrics import ControllerMetrics
from controlplane.testing import CommitFault, MemoryEventWriter, MemoryLeaseStore, MemoryTransactionalWriter
from tests.helpers.memory_cluster import MemoryCluster, RunningController, assert_log_is_whole
from tests.helpers.polling import poll_until


def test_the_first_leader_creates_the_log_and_an_empty_table() -> None:
    """A new cluster has a log with a name, a term, and a table that routes to nobody yet."""
    with MemoryCluster() as world:
        world.start("c1")
        world.wait_until(world.table)
        (first,) = world.decisions()
        table = world.table()
        assert table is not None
        assert (first.seq, first.term, first.epoch) == (1, 1, 1)
        assert (table.epoch, table.log_id, table.term) == (1, first.log_id, 1)
        assert {slot.leader for slot in table.slots} == {None}
        world.wait_until(lambda: MemoryLeaseStore(world.leases).read_log_id() == first.log_id)


def test_nodes_join_and_a_silent_one_loses_its_slots() -> None:
    """The main job, end to end: join, heartbeat, silence, fencing, new table."""
    with MemoryCluster() as world:
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
    with MemoryCluster() as world:
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
    with MemoryCluster() as world:
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
    with MemoryCluster() as world:
        world.start("c1")
        world.wait_until(world.table)
        world.intent("i1", "resign_leader", controller="c1")
        world.wait_until(lambda: world.decisions()[-1].term == 2)
        world.join("n1")
        world.wait_until(lambda: set(world.owners().values()) == {"n1"})
        assert_log_is_whole(world)


def test_a_leader_that_was_asked_to_go_does_not_warn_of_it() -> None:
    """By an operator's intent or by the signal that ends its process: nobody has to look into that."""
    with MemoryCluster() as world, capture_logs() as logs:
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
    with MemoryCluster() as world, capture_logs() as logs:
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


def test_a_lease_store_that_lost_its_data_never_lets_the_term_fall() -> None:
    """The floor comes from the log: a store that came back empty grants term 1, which the log holds already."""
    with MemoryCluster() as world:
        first = world.start("c1")
        world.wait_until(world.table)
        world.leases.lose_data()
        world.wait_until(lambda: world.decisions()[-1].term == 2)
        first.end()
        world.leases.lose_data()
        world.start("c2")
        world.wait_until(lambda: world.decisions()[-1].term == 3)
        assert_log_is_whole(world)


def test_a_leader_goes_on_without_its_lease_store() -> None:
    """Losing the lease store stops elections, never routing: commits are fenced by Kafka."""
    with MemoryCluster() as world:
        world.start("c1")
        world.wait_until(world.table)
        world.leases.available = False
        time.sleep(0.5)  # longer than the lease
        world.join("n1")
        world.wait_until(lambda: set(world.owners().values()) == {"n1"})
        assert {decision.term for decision in world.decisions()} == {1}


def test_an_outage_of_kafka_burns_no_terms() -> None:
    """Nobody could open one: controllers that went on to stand would win the lease in turns, several times a second."""
    with MemoryCluster() as world:
        world.start("c1")
        world.start("c2")
        world.wait_until(world.table)
        world.broker.available = False
        time.sleep(2.0)  # many leases
        before = world.leases.lease.term
        world.broker.available = True
        world.join("n1")
        world.wait_until(lambda: set(world.owners().values()) == {"n1"})
        assert before <= 3


def test_a_commit_without_an_answer_is_resolved_and_never_doubled() -> None:
    """Unknown means: ask for this commit's outcome, decide nothing meanwhile."""
    for fault in CommitFault:
        with MemoryCluster() as world:
            world.start("c1")
            world.wait_until(world.table)
            world.broker.fail_next_commit(fault)
            world.join("n1")
            world.wait_until(lambda: set(world.owners().values()) == {"n1"})
            assert_log_is_whole(world)


def test_a_leader_that_is_fenced_discards_everything_and_stands_again() -> None:
    """A rival's initialisation ends this leadership; a new term begins and the log stays whole."""
    with MemoryCluster() as world:
        world.start("c1")
        world.join("n1")
        world.wait_until(lambda: set(world.owners().values()) == {"n1"})
        MemoryTransactionalWriter(world.cluster, world.broker).open()
        world.join("n2")
        world.wait_until(lambda: set(world.owners().values()) == {"n1", "n2"})
        assert world.decisions()[-1].term > 1
        assert_log_is_whole(world)


def test_bad_records_become_dead_letters_and_harm_no_neighbour() -> None:
    """Each bad record is named by topic, partition and offset; the good ones around it count."""
    with MemoryCluster() as world:
        world.start("c1")
        world.send(MEMBERSHIP, "x", b"no avro at all")
        world.join("n1")
        world.send(HEARTBEATS, "x", b"\xc3\x01" + b"\x00" * 12, 1)
        world.send(MEMBERSHIP, "x", None)
        world.join("n2")
        world.wait_until(lambda: set(world.owners().values()) == {"n1", "n2"})
        world.wait_until(lambda: len(world.dead_letters()) >= 3)
        places = {(letter.topic, letter.reason) for letter in world.dead_letters()}
        assert {topic for topic, _ in places} == {MEMBERSHIP, HEARTBEATS}
        assert len(places) == 3


def test_records_in_confluents_framing_count_where_their_ids_are_named() -> None:
    """A node whose producer uses a schema registry takes part; an id that nobody named is a dead letter."""
    joined = encode_input(NodeJoined("n1", 1, NodeRole.DATA, (), "", 1, 0, "1", 0))[SINGLE_OBJECT_HEADER_BYTES:]
    with MemoryCluster(schema_ids={17: "NodeJoined.v1"}) as world:
        world.start("c1")
        world.send(MEMBERSHIP, "n1", b"\x00\x00\x00\x00\x12" + joined)
        world.send(MEMBERSHIP, "n1", b"\x00\x00\x00\x00\x11" + joined)
        world.wait_until(lambda: set(world.owners().values()) == {"n1"})
        world.wait_until(world.dead_letters)
        assert [(letter.reason, letter.offset) for letter in world.dead_letters()] == [("unknown_schema_id", 0)]


def test_refusals_that_a_dead_leader_did_not_write_are_written_by_its_successor() -> None:
    """At least once: positions are committed only after the dead letters, and standbys keep what is not passed."""
    with MemoryCluster() as world:
        world.send(MEMBERSHIP, "x", b"garbage")
        world.start("c1")
        world.wait_until(world.dead_letters)
        world.send(MEMBERSHIP, "x", b"garbage too")
        second = world.start("c2")
        world.wait_until(lambda: len(world.dead_letters()) >= 2)
        assert second.alive


def test_an_empty_log_beside_a_table_stops_every_controller() -> None:
    """A decision log that was deleted must never be led on in silence."""
    with MemoryCluster() as world:
        first = world.start("c1")
        world.join("n1")
        world.wait_until(lambda: set(world.owners().values()) == {"n1"})
        first.end()
        world.broker.create_topic(world.cluster.topic(DECISIONS))
        second = world.start("c2")
        wait_for_failure(second)
        assert isinstance(second.failure, LogContinuityError)
        told = str(second.failure)
        assert "recreated; make sure that Kafka and the lease store are this cluster's" in told
        assert "restore the decision log, or begin a new cluster" in told


def test_a_log_recreated_under_a_running_leader_is_noticed() -> None:
    """Kafka accepts its commits, so the leader reads its own decisions back."""
    with MemoryCluster() as world, capture_logs() as logs:
        leader = world.start("c1")
        world.join("n1")
        world.wait_until(lambda: set(world.owners().values()) == {"n1"})
        time.sleep(1.2)
        world.broker.create_topic(world.cluster.topic(DECISIONS))
        world.join("n2")
        wait_for_failure(leader)
        assert isinstance(leader.failure, LogContinuityError)
        (stepping_down,) = [each for each in logs if each["event"] == "stepping down"]
        assert (stepping_down["log_level"], stepping_down["reason"]) == ("warning", "failed"), "nobody asked it to go"


def test_a_standby_that_cannot_read_the_log_listens_as_well() -> None:
    """The leader and Kafka may go together: it wins the lease, has no reader any more, and tries for hours."""
    polled: Counter[str] = Counter()
    away = threading.Event()

    class Watched(MemoryEventWriter):
        def poll(self, timeout_ms: int) -> None:
            polled["letters"] += 1
            super().poll(timeout_ms)

    with MemoryCluster() as world, capture_logs() as logs:
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
    with MemoryCluster() as world:
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

    with MemoryCluster() as world:
        ticks, letters, snapshots = writers = [Watched(world.cluster, world.broker) for _ in range(3)]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(world, "event_writer", lambda: letters)
            world.start("c1", ticks, follow_only=True, snapshot_writer=snapshots)
        world.wait_until(lambda: all(polled[id(writer)] > 2 for writer in writers))


def test_a_table_topic_that_lost_its_rows_is_written_again() -> None:
    """The table follows from the log, so a new leader mends it under a new epoch."""
    with MemoryCluster() as world:
        first = world.start("c1")
        world.join("n1")
        world.wait_until(lambda: set(world.owners().values()) == {"n1"})
        first.end()
        world.broker.create_topic(world.cluster.topic(ROUTING_TABLE))
        world.start("c2")
        world.wait_until(lambda: set(world.owners().values()) == {"n1"})
        last = world.decisions()[-1]
        assert CauseKind.TABLE_REPUBLISHED in [cause.kind for cause in last.causes]
        assert_log_is_whole(world)


def wait_for_failure(controller: RunningController) -> None:
    """Wait until a controller has ended by itself."""
    poll_until(lambda: not controller.alive)
