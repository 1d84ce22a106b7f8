"""``python -m tests.kills --repetitions 20``: a cluster on parts of its own, deaths, promises, recovery times.

With ``--brokers 3 --controllers-apart`` brokers die, alone and with the controllers' leader, and are restarted; without
``--controllers-apart`` the times are quoted and not judged. With ``--slots 131072`` one of five nodes that hold so many
slots dies.
"""

import argparse
import logging
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import structlog

from controlplane.embedded.kafka_cluster import EmbeddedKafkaCluster
from controlplane.embedded.services import EmbeddedServices
from controlplane.embedded.valkey import EmbeddedValkey
from tests.helpers.fencing_bounds import Bounds
from tests.helpers.real_cluster import RealCluster
from tests.kills.broker_deaths import kill_brokers, quoted, quoted_restart, restart_brokers
from tests.kills.cluster import KvCluster
from tests.kills.killing import repeat, summary
from tests.kills.many_slots import kill_one_of_five, options_for


def main() -> int:
    """Print a line for each repetition and what they cost; 1 if a bound was broken, an error at any other promise."""
    parser = argparse.ArgumentParser(description="Kill nodes and leaders under traffic and check every promise.")
    parser.add_argument("--repetitions", type=int, default=20)
    parser.add_argument("--nodes", type=int, default=5)
    parser.add_argument("--brokers", type=int, choices=(1, 3, 4), default=1, help="more than one: kill brokers")
    parser.add_argument("--controllers-apart", action="store_true", help="Kafka's controllers are no brokers")
    parser.add_argument("--slots", type=int, help="kill one of five nodes that hold so many slots, once, and no other")
    parser.add_argument("--rate", type=float, default=100.0, help="requests a second")
    parser.add_argument("--folder", type=Path, help="data and logs, kept; a temporary one otherwise")
    options = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    with tempfile.TemporaryDirectory(prefix="kills-") as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        if options.slots is not None:
            return kill_one_with_slots(folder, options.slots)
        size = Size(options.repetitions, options.nodes, options.rate)
        if options.brokers == 1:
            return kill_processes(folder, size)
        return kill_brokers_of(folder, size, options.brokers, controllers_apart=options.controllers_apart)


class Size(NamedTuple):
    """How many repetitions and nodes, and how many requests a second."""

    repetitions: int
    nodes: int
    rate_per_s: float


def kill_processes(folder: Path, size: Size) -> int:
    """Nodes and leaders, on one broker."""
    with EmbeddedServices(folder / "parts") as parts:
        real = RealCluster("kills", parts.bootstrap_servers, parts.redis_url, folder)
        cluster = KvCluster(real, controllers=2, nodes=size.nodes, rate_per_s=size.rate_per_s, history=[])
        with cluster:
            done = []
            for repetition in repeat(cluster, size.repetitions):
                _tell(repetition)
                done.append(repetition)
            _tell(summary(done))
    return 0


def kill_one_with_slots(folder: Path, slots: int) -> int:
    """A node that holds very many slots, on one broker."""
    with EmbeddedServices(folder / "parts") as parts:
        options = options_for(slots)
        with RealCluster("kills", parts.bootstrap_servers, parts.redis_url, folder, controller_options=options) as real:
            death = kill_one_of_five(real, slots)
    costs_more = (death.fenced, death.ended) != (["n2"], [])
    _tell(f"{'BROKEN ' if costs_more else ''}{death}")
    return int(costs_more)


def kill_brokers_of(folder: Path, size: Size, brokers: int, *, controllers_apart: bool) -> int:
    """Brokers, each time alone and then with the controllers' leader, and a restart of all under load."""
    with EmbeddedValkey(folder / "valkey") as valkey:
        parts = EmbeddedKafkaCluster(folder / "kafka", brokers, controllers_apart=controllers_apart)
        with parts as kafka:
            real = RealCluster("kills", kafka.bootstrap_servers, valkey.redis_url, folder)
            with KvCluster(real, controllers=3, nodes=size.nodes, rate_per_s=size.rate_per_s, history=[]) as cluster:
                deaths = []
                for with_leader in (False, True):
                    for death in kill_brokers(cluster, kafka, size.repetitions, with_leader=with_leader):
                        _tell(death)
                        deaths.append(death)
                restarted = restart_brokers(cluster, kafka)
    lines = [*quoted(deaths, Bounds(brokers), controllers_apart=controllers_apart), quoted_restart(restarted)]
    for line in lines:
        _tell(line)
    return int(any(line.startswith("BROKEN") for line in lines))


def _tell(said: object) -> None:
    sys.stdout.write(f"{said}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
