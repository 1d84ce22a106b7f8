"""Very many nodes that only join and beat, in a process of their own: ``python -m tests.helpers.fleet``.

A test that polls the log would take the interpreter from a thread that has to send thousands of heartbeats a second.
"""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from controlplane.adapters.kafka_log import KafkaEventWriter
from controlplane.codec.inputs import encode_input
from controlplane.config import HEARTBEATS, MEMBERSHIP, ClusterConfig, KafkaConfig
from controlplane.core.membership.inputs import Heartbeat, NodeJoined
from controlplane.core.membership.node import NodeRole
from controlplane.core.values.identifiers import Epoch
from controlplane.errors import LogUnavailableError
from controlplane.ports import OutgoingRecord
from tests.helpers.real_cluster import RealCluster

_TURNS: Final = 20
"""Each second is cut into so many; in each of them a part of the fleet beats."""


@contextmanager
def beating_fleet(cluster: RealCluster, size: int) -> Iterator[list[str]]:
    """Let session nodes join and send a heartbeat per second until the end of the block. Yields their names."""
    arguments = cluster.cluster.name, cluster.kafka.bootstrap_servers, str(size)
    process = subprocess.Popen([sys.executable, "-m", __name__, *arguments], stdin=subprocess.DEVNULL)
    try:
        yield [_name(number) for number in range(size)]
    finally:
        process.kill()
        process.wait(10)


def main(cluster: str, bootstrap_servers: str, size: int) -> None:
    """Join, and send heartbeats until the process is killed. Failed sends are not repeated."""
    writer = KafkaEventWriter(ClusterConfig(cluster), KafkaConfig(bootstrap_servers), 2_500)
    records = []
    for number in range(size):
        name = _name(number)
        joined = NodeJoined(name, 1, NodeRole.SESSION, (), "", 1, 0, "1", 0)
        writer.send(OutgoingRecord(MEMBERSHIP, name.encode(), encode_input(joined)))
        beat = encode_input(Heartbeat(name, 1, 0, Epoch(0), NodeRole.SESSION))
        records.append(OutgoingRecord(HEARTBEATS, name.encode(), beat))
    turn = 0
    next_s = time.monotonic()
    while True:
        try:
            for record in records[turn % _TURNS :: _TURNS]:
                writer.send(record)
        except LogUnavailableError as error:
            sys.stderr.write(f"{error}\n")
        writer.poll(0)
        turn += 1
        next_s = max(next_s + 1 / _TURNS, time.monotonic() - 1)
        time.sleep(max(next_s - time.monotonic(), 0))


def _name(number: int) -> str:
    return f"u{number}"


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
