"""How long does it take to rebuild a controller's state, and how much memory, with and without a snapshot?

    python -m benchmarks.recovery [--decisions 100000] [--slots 256] [--nodes 100] [--skip-fold]
        [--bootstrap-servers HOST:PORT] [--smallest]

A log is generated whose decisions move one slot each, a thousand in a transaction, with 10,000 decisions after the
snapshot, the most that a leader allows. Each figure is from a separate process, from before its first request to Kafka
until it has the state after the last decision. Baseline: the fold of the whole log. Target: 5 s with ten million
decisions.

Writing the snapshot is measured as well: its time, and the longest delay of another thread of the process that wakes
every millisecond, with the same delay without the writing for comparison.
"""

import argparse
import multiprocessing
import resource
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final, NamedTuple

from prometheus_client import CollectorRegistry

from benchmarks.broker import kafka_servers
from benchmarks.command_line import parsed
from benchmarks.long_logs import LongLog, founded, records_of
from benchmarks.quiet import only_warnings
from controlplane.adapters.kafka_admin import apply_topics
from controlplane.adapters.kafka_log import KafkaEventWriter, KafkaLogReader, KafkaTransactionalWriter
from controlplane.adapters.system_clock import SystemClock
from controlplane.adapters.system_threads import SystemThreads
from controlplane.bootstrap.connections import open_source
from controlplane.bootstrap.topics import topic_specs
from controlplane.config import ClusterConfig, KafkaConfig, SnapshotConfig
from controlplane.core.log.snapshots.log_point import LogPoint
from controlplane.errors import InvariantViolationError, LogUnavailableError
from controlplane.inspection.readers import read_last_decisions
from controlplane.ports import CommitOutcome, OutgoingRecord
from controlplane.service.follower import LogFollower
from controlplane.service.metrics import ControllerMetrics
from controlplane.service.snapshots import SnapshotKeeper

TARGET_S: Final = 5
LEAST_DECISIONS: Final = 4
"""Two to create the cluster, one before the snapshot, and one after it."""
PER_TRANSACTION: Final = 1_000
SMALLEST: Final = {"decisions": 8, "slots": 4, "nodes": 2}
_TOLD_EVERY_S: Final = 10
_LIMIT_MS: Final = 24 * 3_600_000
_STALL_LIMIT_MS: Final = 60_000
_QUIET_S: Final = 2
_STATUS: Final = Path("/proc/self/status")


class Recovered(NamedTuple):
    """A process's results: elapsed time, processor time, peak memory, and memory before."""

    seconds: float
    cpu_seconds: float
    peak_bytes: int
    before_bytes: int
    seq: int
    state_digest: str


def main() -> None:
    """Make the log, recover from it both ways, and print the figures."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.recovery",
        description=(__doc__ or "").splitlines()[0],
    )
    parser.add_argument(
        "--decisions",
        type=_at_least(LEAST_DECISIONS),
        default=100_000,
        help="how many the log holds in all (default: %(default)s)",
    )
    parser.add_argument("--slots", type=_at_least(1), default=256, help="of the table (default: %(default)s)")
    parser.add_argument("--nodes", type=_at_least(2), default=100, help="that hold them (default: %(default)s)")
    parser.add_argument("--skip-fold", action="store_true", help="only measure with the snapshot")
    parser.add_argument("--bootstrap-servers", metavar="HOST:PORT", help="a running Kafka; without it one is started")
    options = parsed(parser, SMALLEST)
    only_warnings()
    multiprocessing.set_start_method("spawn")
    with kafka_servers(options.bootstrap_servers) as bootstrap_servers:
        cluster, kafka = ClusterConfig(f"recovery-{time.time_ns():x}"), KafkaConfig(bootstrap_servers)
        apply_topics(bootstrap_servers, cluster.name, topic_specs(), kafka.security, least_copies=1)
        point = _fill(cluster, kafka, options.decisions, options.slots, options.nodes)
        fold = None if options.skip_fold else _print_recovered("without a snapshot", cluster, kafka)
        _write_snapshot(cluster, kafka, point)
        begun = _print_recovered("with a snapshot", cluster, kafka)
        print(f"  target {TARGET_S} s")
        if fold is not None:
            if fold.state_digest != begun.state_digest:
                message = "the two ways lead to different states"
                raise InvariantViolationError(message)
            print(f"  ratio without / with: {fold.seconds / begun.seconds:.1f}")


def _at_least(least: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not text.isdecimal() or int(text) < least:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of {least} or more")
        return int(text)

    return parse


def _fill(cluster: ClusterConfig, kafka: KafkaConfig, decisions: int, slots: int, nodes: int) -> LogPoint:
    """Write the log. Returns the place before the last 10,000 decisions, for the snapshot."""
    writer = KafkaTransactionalWriter(cluster, kafka, transaction_timeout_ms=60_000, commit_timeout_ms=60_000)
    writer.open()
    first = founded(slots, nodes)
    for sealed in first:
        _commit(writer, records_of(sealed.decision))
    log = LongLog(first[-1].state)
    tail = min(SnapshotConfig().after_decisions, decisions // 2)
    _write(writer, log, decisions - tail - len(first), f"{decisions:,} decisions")
    source = open_source(cluster, kafka)
    (last,) = read_last_decisions(source, 1)
    source.close()
    point = LogPoint(log.state(), last.offset, last.offset + 1)
    _write(writer, log, tail, f"the last {tail:,} of them")
    writer.close()
    return point


def _write(writer: KafkaTransactionalWriter, log: LongLog, count: int, what: str) -> None:
    print(f"writing {what} of one moved slot each, {PER_TRANSACTION:,} to a transaction ...", flush=True)
    began_s = told_s = time.monotonic()
    written = 0
    while written < count:
        size = min(PER_TRANSACTION, count - written)
        _commit(writer, list(log.records(size)))
        written += size
        if time.monotonic() - told_s > _TOLD_EVERY_S:
            told_s = time.monotonic()
            print(f"  {written:,} ({written / (told_s - began_s):,.0f}/s)", flush=True)


def _commit(writer: KafkaTransactionalWriter, records: list[OutgoingRecord]) -> None:
    outcome = writer.commit(records)
    while outcome is CommitOutcome.UNKNOWN:
        outcome = writer.resolve(10_000)
    if outcome is not CommitOutcome.COMMITTED:
        message = f"a transaction of the log ended as {outcome.value}"
        raise LogUnavailableError(message)


def _write_snapshot(cluster: ClusterConfig, kafka: KafkaConfig, point: LogPoint) -> None:
    """Write the snapshot with a leader's keeper, and measure the delays of another thread."""
    metrics = ControllerMetrics(CollectorRegistry())
    writer = KafkaEventWriter(cluster, kafka, message_timeout_ms=30_000)
    keeper = SnapshotKeeper(
        writer,
        lambda: KafkaLogReader(cluster, kafka),
        SystemClock(),
        SystemThreads(),
        SnapshotConfig(after_decisions=1),
        metrics,
    )
    quiet_s, _ = _longest_wait_s(lambda elapsed_s: elapsed_s > _QUIET_S)
    keeper.start()
    keeper.look(point)
    busy_s, elapsed_s = _longest_wait_s(lambda _: metrics.snapshots._value.get() > 0)  # noqa: SLF001
    keeper.stop()
    writer.close()
    size_bytes = metrics.snapshot_bytes._value.get()  # noqa: SLF001
    print(f"snapshot of {len(point.state.slots.table):,} slots and {len(point.state.membership.nodes):,} nodes")
    print(f"  {size_bytes / 1e6:.1f} MB, written in {elapsed_s:.1f} s beside the leader")
    print(f"  longest wait of another thread: {1e3 * busy_s:.1f} ms (without the writing {1e3 * quiet_s:.1f} ms)")


def _longest_wait_s(over: Callable[[float], bool]) -> tuple[float, float]:
    """Wake every millisecond until the end. Returns the longest time between two wake-ups, and the whole time."""
    began_s = woke_s = time.perf_counter()
    longest_s = 0.0
    while not over(woke_s - began_s):
        time.sleep(0.001)
        now_s = time.perf_counter()
        longest_s = max(longest_s, now_s - woke_s)
        woke_s = now_s
    return longest_s, woke_s - began_s


def _print_recovered(label: str, cluster: ClusterConfig, kafka: KafkaConfig) -> Recovered:
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.Process(target=_recover, args=(theirs, cluster.name, kafka.bootstrap_servers))
    process.start()
    theirs.close()
    found: Recovered = ours.recv()
    process.join()
    print(f"{label}: state of decision {found.seq:,} back in {found.seconds:.2f} s")
    print(f"  processor time {found.cpu_seconds:.2f} s")
    print(f"  peak memory {found.peak_bytes / 1e6:.0f} MB, {found.before_bytes / 1e6:.0f} MB before", flush=True)
    return found


def _recover(pipe: Connection, cluster: str, bootstrap_servers: str) -> None:
    only_warnings()
    before_bytes = _peak_bytes()
    began_s, cpu_began_s = time.perf_counter(), time.process_time()
    reader_of = ClusterConfig(cluster), KafkaConfig(bootstrap_servers)
    follower = LogFollower(lambda: KafkaLogReader(*reader_of), SystemClock())
    follower.read_to_end(_LIMIT_MS, _STALL_LIMIT_MS)
    seconds, cpu_seconds = time.perf_counter() - began_s, time.process_time() - cpu_began_s
    state = follower.state
    pipe.send(Recovered(seconds, cpu_seconds, _peak_bytes(), before_bytes, state.seq, state.digest()))
    follower.close()


def _peak_bytes() -> int:
    """The peak resident memory of this program. ``ru_maxrss`` would be its parent's if that was greater."""
    try:
        status = _STATUS.read_text(encoding="ascii")
    except FileNotFoundError:  # not Linux: the nearest that the standard library has
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM:"))


if __name__ == "__main__":
    main()
