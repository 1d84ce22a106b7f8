"""How long does it take from a leader's commit until routing clients have swapped to the new table?

    python -m benchmarks.propagation [--changes 100] [--clients 1 10 100] [--bootstrap-servers HOST:PORT]
        [--smallest]

A leader's transactional writer commits epochs of a table of 256 slots, 8 rows changed each time. The clients are the
package's own routing clients, spread over two processes beside the writer's. A change counts from just before its
transaction begins (*begin*) and from the moment the commit returned (*commit*) to the moment a client calls back with
the new table; the clock is the machine's monotonic one, which its processes share.
Baseline: a bare read_committed consumer in the same run that only notes when the epoch's marker arrives.
Targets, from the commit: p50 10 ms, p99 50 ms with up to 100 clients.
"""

import argparse
import itertools
import multiprocessing
import statistics
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import TypeAlias

from prometheus_client import CollectorRegistry

from benchmarks.broker import kafka_servers
from benchmarks.command_line import parsed
from benchmarks.quiet import only_warnings
from controlplane.adapters.kafka_admin import apply_topics
from controlplane.adapters.kafka_log import KafkaLogReader, KafkaTransactionalWriter
from controlplane.adapters.system_threads import SystemThreads
from controlplane.bootstrap.topics import topic_specs
from controlplane.codec.table import decode_row, encode_row
from controlplane.config import ROUTING_TABLE, ClusterConfig, KafkaConfig
from controlplane.core.cluster.policy import ClusterPolicy, HashFunction
from controlplane.core.cluster.rows import TableSettings
from controlplane.core.routing.replica import RoutingTable
from controlplane.core.routing.rows import EpochMarker, TableRow, key_of
from controlplane.core.slots.table import Slot
from controlplane.core.values.digests import add_hashes, format_digest, row_hash
from controlplane.core.values.identifiers import Epoch, Seq, Term
from controlplane.errors import LogUnavailableError
from controlplane.ports import CommitOutcome, OutgoingRecord
from controlplane.routing import RoutingClient

SLOTS = 256
ROWS_PER_CHANGE = 8
PAUSE_S = 0.1
TARGET_P50_MS = 10
TARGET_P99_MS = 50
SMALLEST = {"changes": 5, "clients": [2]}
"""One client in each process, and enough changes for percentiles if one is not seen in time."""
_PROCESSES = 2
_READY_DEADLINE_S = 120

Arrivals: TypeAlias = list[tuple[int, float]]
"""Pairs of epoch and monotonic second."""

_ClientRun: TypeAlias = Callable[[Connection, str, str, int], None]
"""The function of a child process, with its end of the pipe, the broker, the cluster's name, the number of clients."""


def main() -> None:
    """Commit changes for each number of clients and print the distributions of their delays."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--changes", type=int, default=100)
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 10, 100])
    parser.add_argument("--bootstrap-servers")
    options = parsed(parser, SMALLEST)
    only_warnings()
    multiprocessing.set_start_method("spawn")
    with kafka_servers(options.bootstrap_servers) as bootstrap_servers:
        print(f"targets from the commit: p50 {TARGET_P50_MS} ms, p99 {TARGET_P99_MS} ms")
        for clients in options.clients:
            _measure(bootstrap_servers, clients, options.changes)


def _measure(bootstrap_servers: str, clients: int, changes: int) -> None:
    name = f"propagation-{time.time_ns():x}"
    apply_topics(bootstrap_servers, name, topic_specs(), {}, least_copies=1)
    writer = KafkaTransactionalWriter(ClusterConfig(name), KafkaConfig(bootstrap_servers), 5_000)
    writer.open()
    table = _Table()
    writer.commit(table.next_epoch(range(SLOTS)))
    shares = [clients // _PROCESSES + (1 if index < clients % _PROCESSES else 0) for index in range(_PROCESSES)]
    children = [_Child(_run_clients, bootstrap_servers, name, share) for share in shares if share]
    children.append(_Child(_run_bare, bootstrap_servers, name, 1))
    for child in children:
        child.wait_ready()
    began, committed = {}, {}
    for _ in range(changes):
        began_s = time.monotonic()
        records = table.next_epoch(
            [(table.epoch * ROWS_PER_CHANGE + index) % SLOTS for index in range(ROWS_PER_CHANGE)]
        )
        if writer.commit(records) is not CommitOutcome.COMMITTED:
            continue
        committed[table.epoch], began[table.epoch] = time.monotonic(), began_s
        time.sleep(PAUSE_S)
    time.sleep(1)
    arrivals = [child.stop() for child in children]
    writer.close()
    print(f"{clients} clients, {len(committed)} changes")
    for label, collected in (
        ("clients", list(itertools.chain.from_iterable(arrivals[:-1]))),
        ("bare consumer", arrivals[-1]),
    ):
        for since, start in (("commit", committed), ("begin", began)):
            delays_ms = [1_000 * (at_s - start[epoch]) for epoch, at_s in collected if epoch in start]
            _print(f"  {label:14} from {since:6}", delays_ms, len(committed) * (clients if label == "clients" else 1))


def _print(label: str, delays_ms: list[float], expected: int) -> None:
    cuts = statistics.quantiles(delays_ms, n=100)
    print(
        f"{label}: p50 {statistics.median(delays_ms):7.1f} ms   p99 {cuts[98]:7.1f} ms   max {max(delays_ms):7.1f} ms"
        f"   ({len(delays_ms)} of {expected} swaps seen)",
        flush=True,
    )


class _Table:
    """A table as a leader publishes it."""

    def __init__(self) -> None:
        self.epoch = 0
        self._hashes: dict[str, int] = {}
        self._digest = 0

    def next_epoch(self, slots: list[int] | range) -> list[OutgoingRecord]:
        self.epoch += 1
        leaders = [f"n{(slot_id + self.epoch) % 7}" for slot_id in range(SLOTS)]
        rows: list[TableRow] = [Slot(slot_id, leaders[slot_id], (), Epoch(self.epoch)) for slot_id in slots]
        if self.epoch == 1:
            rows.append(TableSettings(SLOTS, 1, HashFunction.CRC32C, ClusterPolicy().silence_limit_ms))
        records = []
        for row in rows:
            key, value = key_of(row), encode_row(row)
            share = row_hash(key.encode(), value)
            self._digest = add_hashes(self._digest, share, self._hashes.get(key, 0))
            self._hashes[key] = share
            records.append(OutgoingRecord(ROUTING_TABLE, key.encode(), value, 0))
        marker = EpochMarker(
            Term(1), Epoch(self.epoch), Seq(self.epoch), "log", len(self._hashes), "bench", format_digest(self._digest)
        )
        return [*records, OutgoingRecord(ROUTING_TABLE, key_of(marker).encode(), encode_row(marker), 0)]


class _Child:
    """A process that records arrivals until it is stopped."""

    def __init__(self, target: _ClientRun, bootstrap_servers: str, name: str, count: int) -> None:
        self._pipe, other = multiprocessing.Pipe()
        self._process = multiprocessing.Process(
            target=target, args=(other, bootstrap_servers, name, count), daemon=True
        )
        self._process.start()

    def wait_ready(self) -> None:
        if not self._pipe.poll(_READY_DEADLINE_S):
            message = "the clients did not start in time"
            raise LogUnavailableError(message)
        self._pipe.recv()

    def stop(self) -> Arrivals:
        self._pipe.send("stop")
        arrivals: Arrivals = self._pipe.recv()
        self._process.join(30)
        return arrivals


def _run_clients(pipe: Connection, bootstrap_servers: str, name: str, count: int) -> None:
    only_warnings()
    arrivals: Arrivals = []
    cluster, kafka = ClusterConfig(name), KafkaConfig(bootstrap_servers)

    def note(_: RoutingTable | None, table: RoutingTable) -> None:
        arrivals.append((table.epoch, time.monotonic()))

    clients = [
        RoutingClient(KafkaLogReader(cluster, kafka), SystemThreads(), cluster=name, registry=CollectorRegistry())
        for _ in range(count)
    ]
    for client in clients:
        client.on_change(note)
        client.start()
    for client in clients:
        client.wait_for(timeout_ms=1_000 * _READY_DEADLINE_S)
    pipe.send("ready")
    pipe.recv()
    for client in clients:
        client.close()
    pipe.send(arrivals)


def _run_bare(pipe: Connection, bootstrap_servers: str, name: str, _: int) -> None:
    only_warnings()
    arrivals: Arrivals = []
    reader = KafkaLogReader(ClusterConfig(name), KafkaConfig(bootstrap_servers))
    reader.assign(reader.start_offsets(ROUTING_TABLE))
    stop = threading.Event()

    def read() -> None:
        while not stop.is_set():
            for record in reader.poll(500, 20).records:
                row = decode_row(record.key or b"", record.value or b"")
                if isinstance(row, EpochMarker):
                    arrivals.append((row.epoch, time.monotonic()))

    thread = threading.Thread(target=read)
    thread.start()
    pipe.send("ready")
    pipe.recv()
    stop.set()
    thread.join()
    reader.close()
    pipe.send(arrivals)


if __name__ == "__main__":
    main()
