"""Nodes that hold very many slots: the death of one of them costs this one node, whatever the others then hold."""

import time
from typing import Final, NamedTuple

from controlplane.adapters.kafka_log import KafkaLogReader
from controlplane.config import DECISIONS, HEARTBEATS
from controlplane.core.cluster.policy import ClusterPolicy
from controlplane.core.routing.replica import RoutingTable
from tests.helpers.node_processes import NodeProcesses
from tests.helpers.real_cluster import RealCluster
from tests.helpers.sources import everything_in

_NODES: Final = 5
_REPLICAS: Final = 2
_HEARD_S: Final = 2 * ClusterPolicy().silence_limit_ms / 1_000
"""An heir that ended, or that is not heard, is fenced within the silence limit."""


class DeathAmongMany(NamedTuple):
    """What the death of one of five nodes cost.

    Attributes:
        slots: of the cluster, each with two replicas.
        placed_s: from the death to the commit with which the others hold all replicas, by the broker's clock.
        largest_heartbeat_bytes: of any node, before and after.
        fenced: the nodes that were ever fenced, in order.
        ended: the nodes whose process ended, but for the dead one.
    """

    slots: int
    placed_s: float
    largest_heartbeat_bytes: int
    fenced: list[str]
    ended: list[str]

    def __str__(self) -> str:
        """One line."""
        ended = ", ".join(self.ended) or "none"
        return (
            f"{self.slots:,} slots: the others hold them {self.placed_s:.1f} s after a death, largest heartbeat "
            f"{self.largest_heartbeat_bytes:,} bytes, fenced {', '.join(self.fenced)}, ended {ended}"
        )


def options_for(slots: int) -> tuple[str, ...]:
    """What the controllers of such a cluster are told."""
    return "--policy", f"slot_count={slots}", "--policy", f"replica_count={_REPLICAS}"


def kill_one_of_five(cluster: RealCluster, slots: int) -> DeathAmongMany:
    """Two controllers and five nodes, of which ``n2`` is killed when all hold equally many replicas.

    Args:
        cluster: its controllers are told :func:`options_for` these slots; none runs yet.
        slots: their number.

    Raises:
        AssertionError: the replicas were not spread evenly in time, or the log is not whole.
    """
    names = [f"n{number}" for number in range(1, _NODES + 1)]
    with NodeProcesses(cluster) as nodes:
        for controller_id in ("c1", "c2"):
            cluster.start_controller(controller_id)
        for name in names:
            nodes.start(name)
        least = _REPLICAS * slots // _NODES
        cluster.wait_until(lambda: min(_held(cluster.table(), names).values()) >= least, "an even table")
        nodes.kill("n2")
        killed_s = time.time()
        heirs = dict.fromkeys(names, _REPLICAS * slots // (_NODES - 1)) | {"n2": 0}
        cluster.wait_until(lambda: _held(cluster.table(), names) == heirs, "a table without the dead node")
        placed_s = cluster.records(DECISIONS)[-1].append_time_ms / 1_000 - killed_s
        time.sleep(_HEARD_S)
        beats = everything_in(KafkaLogReader(cluster.cluster, cluster.kafka), HEARTBEATS)
        ended = [name for name, process in nodes.running.items() if process.poll() is not None]
        cluster.assert_log_is_whole()
    return DeathAmongMany(slots, placed_s, max(len(record.value or b"") for record in beats), cluster.fenced(), ended)


def _held(table: RoutingTable | None, names: list[str]) -> dict[str, int]:
    """The number of replicas of each node."""
    held = dict.fromkeys(names, 0)
    for slot in table.slots if table is not None else ():
        for node_id in slot.replicas:
            held[node_id] += 1
    return held
