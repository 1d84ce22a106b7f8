"""Kill one broker of several again and again, and quote what the worst death cost beside what is promised."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from controlplane.core.cluster.events import TermOpened
from controlplane.core.log.decision import Decision
from controlplane.embedded.kafka_cluster import EmbeddedKafkaCluster
from controlplane.kafka_rules.broker_sessions import BROKER_SESSION, RECOMMENDED_MS
from examples.kv.client import Counts
from tests.helpers.fencing_bounds import Bounds
from tests.helpers.partition_leaders import PartitionLeaders
from tests.kills.cluster import KvCluster
from tests.kills.killing import assert_promises
from tests.kills.watching import Watch

_AFTERWARDS_S = 2.0
"""How long is watched beyond the session of a dead broker, for what comes late."""
_SYNC_S = 120.0


@dataclass(frozen=True, slots=True)
class BrokerDeath:
    """What one death cost.

    Attributes:
        number: from 1.
        broker: the one that was killed.
        with_leader: whether the controllers' leader was killed in the same moment.
        leader_changed: whether another controller led afterwards, or a term was opened.
        gap_ms: the longest time without a decision, from the death on.
        refused_ms: the longest time for which no answer shows that a node served.
        first_commit_ms: kill to the first commit of the next term, 0 without one.
        late_ms: how late the machine woke the watch at worst.
        disk_ms: how long its disk took to keep what was written at worst.
        counts: what became of the traffic meanwhile.
    """

    number: int
    broker: int
    with_leader: bool
    leader_changed: bool
    gap_ms: float
    refused_ms: float
    first_commit_ms: float
    late_ms: float
    disk_ms: float
    counts: Counts

    def __str__(self) -> str:
        """One line."""
        leader = "with leader" if self.with_leader else "leader changed" if self.leader_changed else "same leader"
        return (
            f"{self.number:3d} broker {self.broker}, {leader}: {self.gap_ms:.0f} ms without decisions, nodes refused "
            f"{self.refused_ms:.0f} ms, first commit of a term {self.first_commit_ms:.0f} ms, machine late by "
            f"{self.late_ms:.0f} ms, its disk by {self.disk_ms:.0f} ms | answered {self.counts.answered}, "
            f"failed {self.counts.failed}, longest {self.counts.longest_ms:.0f} ms"
        )


def kill_brokers(
    cluster: KvCluster, kafka: EmbeddedKafkaCluster, repetitions: int, *, with_leader: bool
) -> Iterator[BrokerDeath]:
    """Kill each broker in turn; every repetition ends with all back, in sync and complete.

    Raises:
        AssertionError: a promise other than a bound was not kept.
    """
    leaders = PartitionLeaders(kafka.bootstrap_servers)
    ids = sorted(kafka.brokers)
    for number in range(1, repetitions + 1):
        broker = ids[number % len(ids)]
        cluster.client.take_counts()
        with Watch(cluster) as watch:
            before = watch.arrivals[-1].decision
            seen = len(watch.arrivals)
            killed_s = time.monotonic()
            kafka.brokers[broker].kill()
            if with_leader:
                cluster.real.controllers[before.controller_id].kill()
                opened = watch.wait_for(_opens_term, "the next leader's first commit", seen)
                first_commit_ms = (opened.at_s - killed_s) * 1_000
            else:
                first_commit_ms = 0.0
            time.sleep(max(0.0, killed_s + RECOMMENDED_MS[BROKER_SESSION] / 1_000 + _AFTERWARDS_S - time.monotonic()))
            watch.wait_for(lambda _: True, "a decision after the death", len(watch.arrivals))
        after = watch.arrivals[-1].decision
        counts = cluster.client.take_counts()
        if with_leader:
            cluster.real.controllers[before.controller_id].wait(10)
            cluster.real.start_controller(before.controller_id)
        kafka.brokers[broker].start()
        leaders.wait_until_in_sync(_SYNC_S)
        cluster.wait_until_complete()
        assert_promises(cluster, number + 1_000 * with_leader)
        yield BrokerDeath(
            number,
            broker,
            with_leader,
            (before.controller_id, before.term) != (after.controller_id, after.term),
            watch.longest_gap_s(killed_s) * 1_000,
            watch.longest_refusal_s() * 1_000,
            first_commit_ms,
            watch.late_s * 1_000,
            watch.disk.longest_s * 1_000,
            counts,
        )


def restart_brokers(cluster: KvCluster, kafka: EmbeddedKafkaCluster) -> Counts:
    """Stop and start each broker under load, one after the other when all are in sync; what became of requests."""
    leaders = PartitionLeaders(kafka.bootstrap_servers)
    cluster.client.take_counts()
    for broker in kafka.brokers.values():
        broker.stop()
        broker.start()
        leaders.wait_until_in_sync(_SYNC_S)
    cluster.wait_until_complete()
    return cluster.client.take_counts()


def quoted(deaths: list[BrokerDeath], bounds: Bounds, *, controllers_apart: bool) -> list[str]:
    """Median, 95th percentile and greatest of each figure beside its bound; BROKEN begins a line that is above it.

    The bounds are promised where Kafka's controllers are no brokers. Otherwise one of three deaths takes the active
    controller along, and another one has to be elected before the dead broker is given up: the figures are quoted.
    """
    alone = [each for each in deaths if not each.with_leader]
    together = [each for each in deaths if each.with_leader]
    changed = sum(each.leader_changed for each in alone)
    quote = partial(_quote, is_promised=controllers_apart)
    lines = [
        *quote("without decisions", [each.gap_ms for each in alone], bounds.without_decisions_ms),
        *quote("nodes refuse", [each.refused_ms for each in alone], bounds.refusal_ms),
        *quote(
            "first commit if the leader dies too",
            [each.first_commit_ms for each in together],
            bounds.failover_with_broker_ms,
        ),
    ]
    if alone:
        lines.append(
            f"{'BROKEN ' if changed else ''}leader changed in {changed} of {len(alone)} where it was not killed"
        )
    failed = sum(each.counts.failed for each in deaths)
    late_ms, disk_ms = max(each.late_ms for each in deaths), max(each.disk_ms for each in deaths)
    lines.append(f"machine late by at most {late_ms:.0f} ms, its disk by {disk_ms:.0f} ms")
    return [*lines, f"requests answered {sum(each.counts.answered for each in deaths)}, given up after 20 s {failed}"]


def quoted_restart(counts: Counts) -> str:
    """What became of requests while all brokers were restarted; none may be given up."""
    broken = "BROKEN " if counts.failed else ""
    return (
        f"{broken}rolling restart: answered {counts.answered}, asked again {counts.retried}, given up after 20 s "
        f"{counts.failed}, longest {counts.longest_ms:.0f} ms"
    )


def _quote(what: str, times_ms: list[float], bound_ms: int | None, *, is_promised: bool) -> Iterator[str]:
    if times_ms and bound_ms is not None:
        broken = "BROKEN " if is_promised and max(times_ms) > bound_ms else ""
        where = "" if is_promised else " where Kafka's controllers are apart"
        p50_ms, p95_ms = (_percentile(times_ms, percent) for percent in (50, 95))
        yield (
            f"{broken}{what}: p50 {p50_ms:.0f}, p95 {p95_ms:.0f}, greatest of {len(times_ms)} {max(times_ms):.0f} ms, "
            f"promised {bound_ms} ms{where}"
        )


def _percentile(times_ms: list[float], percent: int) -> float:
    """The least time that so many percent of all do not exceed."""
    return sorted(times_ms)[-(-percent * len(times_ms) // 100) - 1]


def _opens_term(decision: Decision) -> bool:
    return any(isinstance(event, TermOpened) for event in decision.events)
