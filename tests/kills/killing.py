"""Kill a node or the leader again and again, and look after each death whether every promise was kept."""

import itertools
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

from controlplane.core.cluster.events import TermOpened
from controlplane.core.routing.replica import RoutingTable
from controlplane.core.values.identifiers import Epoch
from controlplane.routing import RoutingClient
from examples.kv.client import Counts
from tests.kills.cluster import KvCluster

_PROBES = 40


@dataclass(frozen=True, slots=True)
class Repetition:
    """What one death cost.

    Attributes:
        number: from 1.
        victim: the process that was killed.
        kind: ``node``; ``restart``, a node that is started again at once, before anybody has missed it; or ``leader``.
        decided_ms: kill to the table without the node (with its successor), or to the new leader's first commit, as a
            reader saw it.
        served_ms: kill to the first acknowledged PUT where the dead node led; for a leader, to the next PUT.
        keys: how many keys were read back.
        counts: what became of the traffic meanwhile.
    """

    number: int
    victim: str
    kind: str
    decided_ms: float
    served_ms: float
    keys: int
    counts: Counts

    def __str__(self) -> str:
        """One line."""
        counts = self.counts
        return (
            f"{self.number:3d} {self.kind:7s} {self.victim}: decided {self.decided_ms:6.0f} ms, "
            f"served {self.served_ms:6.0f} ms | {self.keys} keys hold | answered {counts.answered}, "
            f"refused {counts.refused}, retried {counts.retried}, failed {counts.failed}, "
            f"longest {counts.longest_ms:.0f} ms"
        )


def repeat(cluster: KvCluster, repetitions: int) -> Iterator[Repetition]:
    """Kill a node and the leader in turns; each repetition ends with every process back and every replica complete.

    Raises:
        AssertionError: a promise was not kept.
    """
    victims = itertools.cycle(sorted(cluster.nodes))
    for number in range(1, repetitions + 1):
        cluster.client.take_counts()
        if number % 2:
            victim, kind = next(victims), "restart" if number % 4 == 3 else "node"
            decided_ms, served_ms = _kill_node(cluster, victim, number, at_once=kind == "restart")
        else:
            kind = "leader"
            victim, decided_ms, served_ms = _kill_leader(cluster, number)
            cluster.real.start_controller(victim)
        cluster.wait_until_complete()
        counts = cluster.client.take_counts()
        keys = assert_promises(cluster, number)
        yield Repetition(number, victim, kind, decided_ms, served_ms, keys, counts)


def summary(done: list[Repetition]) -> str:
    """The distribution of the recovery times."""
    lines = []
    for kind in ("node", "restart", "leader"):
        for name in ("decided_ms", "served_ms"):
            times = sorted(getattr(each, name) for each in done if each.kind == kind)
            if times:
                median = statistics.median(times)
                lines.append(
                    f"{kind:7s} {name:10s} of {len(times)}: {times[0]:.0f} to {times[-1]:.0f}, median {median:.0f}"
                )
    failed = sum(each.counts.failed for each in done)
    answered = sum(each.counts.answered for each in done)
    return "\n".join([*lines, f"requests answered {answered}, failed {failed}"])


def assert_promises(cluster: KvCluster, number: int) -> int:
    """Look at the log, the readers, the data, and whether writes go on; returns how many keys were read back."""
    cluster.traffic.rest()
    cluster.real.assert_log_is_whole()
    _assert_readers_agree(cluster)
    keys = _read_back(cluster)
    for probe in range(_PROBES):
        key = f"kv:later-{number}-{probe}"
        cluster.client.put(key, str(number))
        assert cluster.client.get(key) == str(number)
    cluster.traffic.resume()
    return keys


def _has_reached(reader: RoutingClient, epoch: Epoch) -> bool:
    return reader.table is not None and reader.table.epoch >= epoch


def _assert_readers_agree(cluster: KvCluster) -> None:
    """Every reader was shown every epoch, and shows what the topic says of the epoch that it shows."""
    readers = [cluster.client.routing, *(witness.client for witness in cluster.witnesses)]
    newest = cluster.real.tables()[-1]
    for reader in readers:
        cluster.wait_until(partial(_has_reached, reader, newest.epoch), "a reader at the end")
    shown = [reader.table for reader in readers]
    tables = cluster.real.tables()  # the table goes on: what readers show is in here by now
    assert all(after.epoch == before.epoch + 1 for before, after in pairwise(tables)), "the topic skips an epoch"
    by_epoch = {table.epoch: table for table in tables}
    assert all(table == by_epoch[table.epoch] for table in shown if table is not None), "readers disagree"
    for witness in cluster.witnesses:
        witness.assert_no_gap()


def _read_back(cluster: KvCluster) -> int:
    keys = 0
    contradictions = []
    for ledger in cluster.traffic.ledgers:
        for key in sorted(ledger.attempted):
            contradiction = ledger.contradiction(key, cluster.client.get(key))
            contradictions += [contradiction] if contradiction else []
            keys += 1
    assert not contradictions, contradictions
    return keys


def _kill_node(cluster: KvCluster, victim: str, number: int, *, at_once: bool) -> tuple[float, float]:
    key = next(
        key
        for key in (f"kv:probe-{number}-{attempt}" for attempt in itertools.count())
        if cluster.client.routing.route(key).node_id == victim
    )
    incarnation = cluster.client.routing.wait_for().nodes[victim].incarnation

    def is_decided(table: RoutingTable) -> bool:
        node = table.nodes.get(victim)
        succeeded = node is not None and node.incarnation > incarnation
        return succeeded or all(victim not in slot.replicas for slot in table.slots)

    killed_s = time.monotonic()
    cluster.kill_node(victim)
    if at_once:
        cluster.start_node(victim)
    cluster.client.routing.wait_for(is_decided, timeout_ms=60_000)
    decided_ms = _since(killed_s)
    cluster.client.put(key, "1")
    served_ms = _since(killed_s)
    if not at_once:
        cluster.start_node(victim)
    return decided_ms, served_ms


def _kill_leader(cluster: KvCluster, number: int) -> tuple[str, float, float]:
    decisions = cluster.decisions_from_now()
    killed_s = time.monotonic()
    victim = cluster.real.kill_leader()
    cluster.client.put(f"kv:probe-{number}", "1")
    served_ms = _since(killed_s)
    opened = decisions.wait_for(
        lambda logged: any(isinstance(event, TermOpened) for event in logged.decision.events), timeout_ms=60_000
    )
    assert opened is not None, "nobody took the lead over within 60 s"
    assert opened.decision.controller_id != victim
    return victim, _since(killed_s), served_ms


def _since(began_s: float) -> float:
    return (time.monotonic() - began_s) * 1_000
