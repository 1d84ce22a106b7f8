"""Whole controllers over the in-memory world: faults of the log, of the table's topic and of the lease store."""

import time

from structlog.testing import capture_logs

from controlplane.config import DECISIONS, ROUTING_TABLE
from controlplane.core.log.decision import CauseKind
from controlplane.errors import LogContinuityError
from controlplane.testing import CommitFault, MemoryTransactionalWriter
from controlplane.testing.memory_controllers import RunningController
from tests.helpers.memory_cluster import ObservedCluster, assert_log_is_whole
from tests.helpers.polling import poll_until


def test_a_lease_store_that_lost_its_data_never_lets_the_term_fall() -> None:
    """The floor comes from the log: a store that came back empty grants term 1, which the log holds already."""
    with ObservedCluster() as world:
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
    with ObservedCluster() as world:
        world.start("c1")
        world.wait_until(world.table)
        world.leases.available = False
        time.sleep(0.5)  # longer than the lease
        world.join("n1")
        world.wait_until(lambda: set(world.owners().values()) == {"n1"})
        assert {decision.term for decision in world.decisions()} == {1}


def test_an_outage_of_kafka_burns_no_terms() -> None:
    """Nobody could open one: controllers that went on to stand would win the lease in turns, several times a second."""
    with ObservedCluster() as world:
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
        with ObservedCluster() as world:
            world.start("c1")
            world.wait_until(world.table)
            world.broker.fail_next_commit(fault)
            world.join("n1")
            world.wait_until(lambda: set(world.owners().values()) == {"n1"})
            assert_log_is_whole(world)


def test_a_leader_that_is_fenced_discards_everything_and_stands_again() -> None:
    """A rival's initialisation ends this leadership; a new term begins and the log stays whole."""
    with ObservedCluster() as world:
        world.start("c1")
        world.join("n1")
        world.wait_until(lambda: set(world.owners().values()) == {"n1"})
        MemoryTransactionalWriter(world.cluster, world.broker).open()
        world.join("n2")
        world.wait_until(lambda: set(world.owners().values()) == {"n1", "n2"})
        assert world.decisions()[-1].term > 1
        assert_log_is_whole(world)


def test_an_empty_log_beside_a_table_stops_every_controller() -> None:
    """A decision log that was deleted must never be led on in silence."""
    with ObservedCluster() as world:
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
    with ObservedCluster() as world, capture_logs() as logs:
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


def test_a_table_topic_that_lost_its_rows_is_written_again() -> None:
    """The table follows from the log, so a new leader mends it under a new epoch."""
    with ObservedCluster() as world:
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
