"""What nodes, operators and leaders write while the pipeline is killed: reports, joins, intents, decisions."""

import math
import random
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from itertools import count
from typing import Final

from confluent_kafka import Producer

from controlplane.codec.decisions import encode_decision
from controlplane.codec.inputs import encode_input
from controlplane.config import DECISIONS, HEARTBEATS, INTENTS, LOAD_REPORTS, MEMBERSHIP
from controlplane.core.intents.intent import Intent
from controlplane.core.log.decision import Decision
from controlplane.core.membership.inputs import Heartbeat, NodeJoined
from controlplane.core.membership.node import NodeRole
from controlplane.core.values.identifiers import Epoch
from tests.helpers.eventful import eventful_decisions
from tests.helpers.pipeline_world import PipelineWorld, random_report

NODES: Final = 12
BUNDLES_EACH: Final = 8
_FLUSH_S: Final = 60.0
_INTENT_EVERY: Final = 3
_DECISION_EVERY: Final = 8
_DECISIONS_OF_A_DRAIN: Final = 2


class Traffic:
    """Sends from a thread until it is stopped.

    A bundle is reported by one node, whose records are in one partition: the order of a bundle's samples is that of its
    log, wherever batches are cut.

    Args:
        world: the cluster.
        seed: of all choices.
        minutes: for how long there are decisions to be sent, at least.
        rounds_per_s: how often each node reports, and sends a heartbeat.
    """

    def __init__(self, world: PipelineWorld, seed: int, minutes: float, rounds_per_s: float = 5.0) -> None:
        self._world = world
        self._source = random.Random(seed)
        self._interval_s = 1 / rounds_per_s
        self._producer = Producer(
            {"bootstrap.servers": world.kafka.bootstrap_servers, "linger.ms": 5, "enable.idempotence": True}
        )
        self._incarnations = dict.fromkeys((f"n{number}" for number in range(NODES)), 1)
        decisions = math.ceil(minutes * 60 * rounds_per_s / _DECISION_EVERY)
        self._decisions: Iterator[Decision] = iter(eventful_decisions(math.ceil(decisions / _DECISIONS_OF_A_DRAIN)))
        self._stop = threading.Event()
        self._executor = ThreadPoolExecutor(1, "traffic")
        self._sending: Future[None] | None = None
        self._sent: Counter[str] = Counter()

    def start(self) -> None:
        """Begin to send."""
        self._sending = self._executor.submit(self._send_until_stopped)

    def stop(self) -> Mapping[str, int]:
        """Send no more, and wait until Kafka has all of it; how many records of each topic it has.

        Raises:
            Exception: what ended the sending before.
        """
        self._stop.set()
        with self._executor:
            if self._sending is not None:
                self._sending.result()
        assert self._producer.flush(_FLUSH_S) == 0
        return self._sent

    def _send_until_stopped(self) -> None:
        for number in count():
            if self._stop.wait(self._interval_s):
                return
            for place, node_id in enumerate(self._incarnations):
                self._of_node(node_id, place, number)
            if number % _INTENT_EVERY == 0:
                intent = Intent(f"asked-{number}", "drain_node", "chaos", {"node": "n1"})
                self._send(INTENTS, intent.intent_id, encode_input(intent))
            decision = next(self._decisions, None) if number % _DECISION_EVERY == 0 else None
            if decision is not None:
                for part in encode_decision(decision):
                    self._send(DECISIONS, "", part)
            self._producer.poll(0)

    def _of_node(self, node_id: str, place: int, number: int) -> None:
        if number == 0 or self._source.random() < 0.01:  # a new process
            self._incarnations[node_id] += 1
            joined = NodeJoined(node_id, self._incarnations[node_id], NodeRole.DATA, (), "", 1, 0, "1", 0)
            self._send(MEMBERSHIP, node_id, encode_input(joined))
        incarnation = self._incarnations[node_id]
        bundle_ids = [f"kv/0x{place * BUNDLES_EACH + bundle:08x}_0x{100 + place:08x}" for bundle in range(BUNDLES_EACH)]
        report = replace(random_report(self._source, node_id, bundle_ids, number), incarnation=incarnation)
        self._send(LOAD_REPORTS, node_id, encode_input(report))
        if self._source.random() < 0.02:
            self._send(LOAD_REPORTS, node_id, b"junk")
        beat = Heartbeat(node_id, incarnation, number, Epoch(0), NodeRole.DATA)
        self._send(HEARTBEATS, node_id, encode_input(beat))

    def _send(self, topic: str, key: str, value: bytes) -> None:
        self._producer.produce(self._world.cluster.topic(topic), value=value, key=key.encode() or None)
        self._sent[topic] += 1
