"""How fast does a leader process heartbeats, compared with only reading and decoding them?

    python -m benchmarks.intake [--events 300000] [--nodes 2000] [--rounds 5] [--bootstrap-servers HOST:PORT]
        [--smallest]

Both runs read the same topic with the same reader and the same decoder, *bare* from its start, *folded* from where a
controller begins that starts: at most the last 100,000 records of each partition. *Folded* adds what a leader does with
each batch: observe, validate, check for silence, decide. Baseline: *bare*. Runs alternate; figures are medians.
Targets: 50,000 events/s on one core, and at least 0.5 of the bare rate.
"""

import argparse
import statistics
import time

from prometheus_client import CollectorRegistry

from benchmarks.broker import kafka_servers
from benchmarks.command_line import parsed
from benchmarks.quiet import only_warnings
from controlplane.adapters.kafka_admin import apply_topics
from controlplane.adapters.kafka_log import KafkaEventWriter, KafkaLogReader
from controlplane.adapters.system_clock import SystemClock
from controlplane.bootstrap.topics import topic_specs
from controlplane.codec.inputs import decode_input, encode_input
from controlplane.config import HEARTBEATS, MEMBERSHIP, ClusterConfig, KafkaConfig
from controlplane.core.cluster.policy import ClusterPolicy
from controlplane.core.deciding.decide import Opening, decide, open_term
from controlplane.core.deciding.observations import Observations, observe
from controlplane.core.log.state import State
from controlplane.core.membership.inputs import Heartbeat, NodeJoined, Tick
from controlplane.core.membership.node import NodeRole
from controlplane.core.slots.reports import grouped
from controlplane.core.values.identifiers import Coordinates, Epoch, SlotId, Term, TopicPartition
from controlplane.core.values.inputs import InputRecord
from controlplane.core.values.replica_status import ReplicaStatus
from controlplane.errors import InvariantViolationError, LogUnavailableError
from controlplane.ports import OutgoingRecord
from controlplane.service.input_reader import InputReader
from controlplane.service.metrics import ControllerMetrics

TICK_EVERY = 500
"""Heartbeats between two rounds of ticks: 5,000 nodes with one heartbeat per second, and a tick each 100 ms."""
_SIZE_OF_16 = 3
"""The size of a heartbeat with sixteen slots relative to a bare one, so that both topics have the same size."""
TARGET_RATE_PER_S = 50_000
TARGET_RATIO = 0.5
SMALLEST = {"events": 2_000, "nodes": 10, "rounds": 1}


def main() -> None:
    """Fill a topic for each size of heartbeat, read it in both ways, and print the rates and their ratio."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--events", type=int, default=300_000)
    parser.add_argument("--nodes", type=int, default=2_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--bootstrap-servers")
    options = parsed(parser, SMALLEST)
    only_warnings()
    with kafka_servers(options.bootstrap_servers) as bootstrap_servers:
        for statuses, events in ((0, options.events), (16, options.events // _SIZE_OF_16)):
            _measure(KafkaConfig(bootstrap_servers), events, options.nodes, statuses, options.rounds)


def _measure(kafka: KafkaConfig, events: int, nodes: int, statuses: int, rounds: int) -> None:
    cluster = ClusterConfig(f"intake{statuses}-{time.time_ns():x}")
    apply_topics(kafka.bootstrap_servers, cluster.name, topic_specs(), kafka.security, least_copies=1)
    print(f"writing {events:,} heartbeats of {nodes:,} nodes with {statuses} slots each ...", flush=True)
    _fill(cluster, kafka, events, nodes, statuses)
    state = joined_state(nodes)
    bare, folded = [], []
    for number in range(rounds):
        print(f"  round {number + 1} of {rounds} ...", flush=True)
        bare.append(_rate_per_s(cluster, kafka, events, None))
        folded.append(_rate_per_s(cluster, kafka, events, state))
    rate_per_s, baseline_per_s = statistics.median(folded), statistics.median(bare)
    ratio = statistics.median(one / other for one, other in zip(folded, bare, strict=True))
    print(f"  bare read and decode: {baseline_per_s:10,.0f} events/s")
    print(f"  folded by a leader:   {rate_per_s:10,.0f} events/s   target {TARGET_RATE_PER_S:,}")
    print(f"  ratio folded / bare:  {ratio:10.2f}            target {TARGET_RATIO}")


def _fill(cluster: ClusterConfig, kafka: KafkaConfig, events: int, nodes: int, statuses: int) -> None:
    writer = KafkaEventWriter(cluster, kafka, message_timeout_ms=120_000)
    partitions = writer.partition_count(HEARTBEATS)
    held = grouped((SlotId(2 * number), ReplicaStatus.HEALTHY, 0) for number in range(statuses))
    for index in range(events):
        if index % TICK_EVERY == 0:
            tick = encode_input(Tick("bench", 0))
            for partition in range(partitions):
                _send(writer, OutgoingRecord(HEARTBEATS, b"bench", tick, partition))
        node_id = f"node-{index % nodes}"
        beat = Heartbeat(node_id, 1, 0, Epoch(1), NodeRole.DATA, slot_groups=held)
        _send(writer, OutgoingRecord(HEARTBEATS, node_id.encode(), encode_input(beat)))
    if left := writer.flush(120_000):
        message = f"{left} heartbeats were not written in time"
        raise LogUnavailableError(message)
    writer.close()


def _send(writer: KafkaEventWriter, record: OutgoingRecord) -> None:
    while True:
        try:
            writer.send(record)
        except LogUnavailableError:
            writer.poll(50)  # the queue is full: wait until some are delivered
        else:
            writer.poll(0)
            return


def joined_state(nodes: int) -> State:
    """A cluster in which all nodes are members, created by decisions of the leader's code.

    It begins now, with the longest silence limit and interval between decisions. Nothing is therefore due while its
    heartbeats are read, and only their processing is measured.
    """
    policy = ClusterPolicy(positions_interval_ms=1 << 40, silence_limit_ms=20_000)
    state = open_term(State(), Observations(), Term(1), "bench", "bench", Opening(new_log=("log", policy))).state
    joins = [
        InputRecord(
            Coordinates(MEMBERSHIP, 0, index, 0),
            NodeJoined(f"node-{index}", 1, NodeRole.DATA, (), "", 1, 0, "1", 0),
            b"",
        )
        for index in range(nodes)
    ]
    tick = InputRecord(Coordinates(HEARTBEATS, 0, 0, SystemClock().wall_ms()), Tick("bench", 0), b"")
    sealed = decide(state, observe(Observations(), [*joins, tick])).sealed
    if sealed is None:
        message = "the joins were not decided on"
        raise InvariantViolationError(message)
    return sealed.state


def _rate_per_s(cluster: ClusterConfig, kafka: KafkaConfig, events: int, state: State | None) -> float:
    """Events per second over the whole topic. With a state they are folded and decided on, otherwise only decoded."""
    if state is None:
        return _bare_rate_per_s(cluster, kafka, events)
    metrics = ControllerMetrics(CollectorRegistry())
    input_reader = InputReader(lambda: KafkaLogReader(cluster, kafka), SystemClock(), metrics)
    # By a broker whose time is ten seconds after 1970 began, the whole topic is within the look-back.
    input_reader.start(State(), {TopicPartition(HEARTBEATS, 0): 10_000})
    try:
        # A start leaves the oldest records out where a partition has very many.
        left_out = sum(at for place, at in input_reader.observed_from.items() if place.topic == HEARTBEATS)
        began_s, done = time.perf_counter(), 0
        while done < events - left_out:
            done += input_reader.poll(100)
            result = decide(state, input_reader.observations)
            input_reader.decided(result, {})
            if result.sealed is not None:
                causes = [cause.kind.value for cause in result.sealed.decision.causes]
                message = f"heartbeats alone led to a decision ({causes}): its cost would count as that of the intake"
                raise InvariantViolationError(message)
        return done / (time.perf_counter() - began_s)
    finally:
        input_reader.close()


def _bare_rate_per_s(cluster: ClusterConfig, kafka: KafkaConfig, events: int) -> float:
    reader = KafkaLogReader(cluster, kafka)
    try:
        reader.assign(reader.start_offsets(HEARTBEATS))
        began_s, done = time.perf_counter(), 0
        while done < events:
            records = reader.poll(2_000, 100).records
            decoded = [decode_input(record.topic, record) for record in records]
            done += len(decoded)
        return done / (time.perf_counter() - began_s)
    finally:
        reader.close()


if __name__ == "__main__":
    main()
