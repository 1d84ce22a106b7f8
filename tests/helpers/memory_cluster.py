"""Whole controllers in threads over the in-memory Kafka and lease store, in real time with short leases."""

import itertools
import random
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Self

from prometheus_client import CollectorRegistry

from controlplane.adapters.system_clock import SystemClock
from controlplane.adapters.system_threads import SystemThreads
from controlplane.bootstrap.controllers import compose_controller
from controlplane.codec.inputs import encode_input
from controlplane.codec.outputs import decode_dead_letter
from controlplane.config import (
    DEAD_LETTERS,
    DECISIONS,
    HEARTBEATS,
    INTENTS,
    MEMBERSHIP,
    ROUTING_TABLE,
    SNAPSHOTS,
    ClusterConfig,
    ControllerConfig,
    KafkaConfig,
    LeaseConfig,
    SnapshotConfig,
    SofaLeaseConfig,
)
from controlplane.core.cluster.policy import ClusterPolicy
from controlplane.core.intents.intent import Intent
from controlplane.core.log.decision import Decision
from controlplane.core.membership.inputs import Heartbeat, NodeJoined
from controlplane.core.membership.node import NodeRole
from controlplane.core.routing.replica import RoutingTable
from controlplane.core.slots.policies import BUILT_IN_POLICIES
from controlplane.core.slots.policy_contract import SlotPolicies
from controlplane.core.values.dead_letter import DeadLetter
from controlplane.core.values.identifiers import Epoch
from controlplane.errors import InvalidInputError
from controlplane.inspection.readers import read_routing_table
from controlplane.ports import EventWriter, LogReader, OutgoingRecord, PolledBatch, RawRecord
from controlplane.service.controller import Controller
from controlplane.service.metrics import ControllerMetrics
from controlplane.testing import (
    MemoryBroker,
    MemoryEventWriter,
    MemoryLeaseServer,
    MemoryLeaseStore,
    MemoryLockServer,
    MemoryLockStore,
    MemoryLogReader,
    MemoryTransactionalWriter,
)
from controlplane.topic_reading.decision_stream import DecisionStream
from tests.helpers.sources import source_of

HEARTBEAT_PARTITIONS = 2
DEADLINE_S = 20.0


class WaitingReader:
    """A reader that waits a little when there is nothing, as Kafka's does."""

    def __init__(self, reader: LogReader) -> None:
        """Wrap a reader."""
        self._reader = reader

    def __getattr__(self, name: str) -> object:
        """Everything else is the wrapped reader's."""
        return getattr(self._reader, name)

    def poll(self, max_records: int, timeout_ms: int) -> PolledBatch:
        """Wait at most 5 ms for the first record."""
        batch = self._reader.poll(max_records, timeout_ms)
        if not batch.records and timeout_ms:
            time.sleep(0.005)
        return batch


class RunningController:
    """A controller in a thread. It keeps the error that ended the thread."""

    def __init__(self, controller: Controller, registry: CollectorRegistry) -> None:
        """Start it; ``registry`` has its metrics."""
        self._registry = registry
        self.stop = threading.Event()
        self.failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, args=(controller,), daemon=True)
        self._thread.start()

    def _run(self, controller: Controller) -> None:
        try:
            controller.run(self.stop)
        except Exception as failure:  # noqa: BLE001 - handed to the test
            self.failure = failure

    @property
    def alive(self) -> bool:
        """Whether it still runs."""
        return self._thread.is_alive()

    def metric(self, name: str, **labels: str) -> float | None:
        """What one of its metrics shows; None if there is none of these labels."""
        return self._registry.get_sample_value(name, labels)

    def end(self) -> None:
        """Stop it and wait."""
        self.stop.set()
        self._thread.join(DEADLINE_S)
        assert not self._thread.is_alive()


class MemoryCluster:
    """The world of some controllers. Use it as a context manager: it ends them."""

    def __init__(self, schema_ids: Mapping[int, str] | None = None, name: str = "test") -> None:
        """A broker with the cluster's topics and a lease store, without running processes.

        Args:
            schema_ids: what a registry's ids mean to the controllers.
            name: the cluster's.
        """
        self.kafka = KafkaConfig("memory", schema_ids=schema_ids or {})
        self.clock = SystemClock()
        self.cluster = ClusterConfig(name)
        self.broker = MemoryBroker(self.clock)
        self.leases = MemoryLeaseServer(self.clock)
        self.locks = MemoryLockServer(self.clock)
        self.controllers: list[RunningController] = []
        self.policy = ClusterPolicy(slot_count=8, join_linger_ms=50, silence_limit_ms=800)
        for topic in (MEMBERSHIP, INTENTS, DECISIONS, ROUTING_TABLE, SNAPSHOTS, DEAD_LETTERS):
            self.broker.create_topic(self.cluster.topic(topic))
        self.broker.create_topic(self.cluster.topic(HEARTBEATS), HEARTBEAT_PARTITIONS)
        self._writer = MemoryEventWriter(self.cluster, self.broker)
        self._stop_beating = threading.Event()
        self._beating: set[str] = set()
        self._beater = threading.Thread(target=self._beat, daemon=True)
        self._beater.start()

    def __enter__(self) -> Self:
        """The cluster itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """End every controller."""
        self._stop_beating.set()
        for controller in self.controllers:
            controller.end()
        self._beater.join(DEADLINE_S)

    def start(
        self,
        controller_id: str,
        tick_writer: EventWriter | None = None,
        slot_policies: SlotPolicies = BUILT_IN_POLICIES,
        *,
        follow_only: bool = False,
        stop_when_lease_store_is_lost: bool = False,
        sofa_lease: SofaLeaseConfig | None = None,
        priority: int = 0,
        handover_after_ms: int = 60_000,
        snapshots: SnapshotConfig = SnapshotConfig(),  # noqa: B008 - it never changes
        snapshot_writer: EventWriter | None = None,
        transactions: type[MemoryTransactionalWriter] = MemoryTransactionalWriter,
    ) -> RunningController:
        """A controller that runs until the end of the test; it ticks through ``tick_writer`` if one is given."""
        config = ControllerConfig(
            self.cluster,
            self.kafka,
            "memory",
            controller_id,
            LeaseConfig(300, 80, 50, priority, handover_after_ms),
            tick_interval_ms=20,
            follow_only=follow_only,
            stop_when_lease_store_is_lost=stop_when_lease_store_is_lost,
            sofa_lease=sofa_lease,
            snapshots=snapshots,
        )
        lock_store = (
            None if sofa_lease is None else MemoryLockStore(self.locks, sofa_lease.data_center, sofa_lease.lock_name)
        )
        process = f"process {len(self.controllers)}"
        registry = CollectorRegistry()
        controller = compose_controller(
            config,
            self.policy,
            slot_policies=slot_policies,
            clock=self.clock,
            threads=SystemThreads(),
            metrics=ControllerMetrics(registry),
            lease_stores=(MemoryLeaseStore(self.leases, process), MemoryLeaseStore(self.leases, process)),
            lock_store=lock_store,
            open_reader=self.reader,
            open_transactions=lambda: transactions(self.cluster, self.broker),
            event_writers=(
                tick_writer or self.event_writer(),
                self.event_writer(),
                snapshot_writer or self.event_writer(),
            ),
            random_source=random.Random(controller_id),
        )
        running = RunningController(controller, registry)
        self.controllers.append(running)
        return running

    def event_writer(self) -> MemoryEventWriter:
        """A writer of single records."""
        return MemoryEventWriter(self.cluster, self.broker)

    def reader(self) -> LogReader:
        """A reader of the cluster's topics."""
        return WaitingReader(MemoryLogReader(self.cluster, self.broker))  # type: ignore[return-value]

    def join(self, *node_ids: str, incarnation: int = 1) -> None:
        """Nodes join and send heartbeats from now on."""
        for node_id in node_ids:
            joined = NodeJoined(node_id, incarnation, NodeRole.DATA, (), "", 1, 0, "1", 0)
            self.send(MEMBERSHIP, node_id, encode_input(joined))
            self._beating.add(node_id)

    def silence(self, node_id: str) -> None:
        """A node sends no more heartbeats."""
        self._beating.discard(node_id)

    def intent(self, intent_id: str, kind: str, **arguments: str) -> None:
        """An operator asks for something."""
        self.send(INTENTS, intent_id, encode_input(Intent(intent_id, kind, "tester", arguments)))

    def send(self, topic: str, key: str, value: bytes | None, partition: int | None = None) -> None:
        """Append any bytes."""
        self._writer.send(OutgoingRecord(topic, key.encode(), value, partition))
        self._writer.poll(0)

    def records(self, topic: str) -> list[RawRecord]:
        """Everything committed in a topic."""
        reader = MemoryLogReader(self.cluster, self.broker)
        reader.assign(reader.start_offsets(topic))
        records: list[RawRecord] = []
        while batch := reader.poll(10_000, 0).records:
            records.extend(batch)
        return records

    def decisions(self) -> list[Decision]:
        """The decision log."""
        stream = DecisionStream()
        assembled = [stream.take(record) for record in self.records(DECISIONS)]
        return [decision for decision in assembled if decision is not None]

    def dead_letters(self) -> list[DeadLetter]:
        """The dead letters."""
        letters = []
        for record in self.records(DEAD_LETTERS):
            with suppress(InvalidInputError):
                letters.append(decode_dead_letter(record.value or b""))
        return letters

    def table(self) -> RoutingTable | None:
        """The routing table as a reader that begins now sees it."""
        return read_routing_table(source_of(MemoryLogReader(self.cluster, self.broker)))

    def owners(self) -> Mapping[int, str | None]:
        """Slot leaders in the newest table; empty before the first."""
        table = self.table()
        return {slot.slot_id: slot.leader for slot in table.slots} if table else {}

    def wait_until(self, condition: Callable[[], object]) -> None:
        """Poll a condition; a controller that failed ends the waiting."""
        deadline_s = time.monotonic() + DEADLINE_S
        while not condition():
            for controller in self.controllers:
                if controller.failure is not None:
                    raise controller.failure
            assert time.monotonic() < deadline_s, "the condition did not come true in time"
            time.sleep(0.02)

    def _beat(self) -> None:
        while not self._stop_beating.wait(0.1):
            for node_id in sorted(self._beating):
                beat = Heartbeat(node_id, 1, 0, Epoch(0), NodeRole.DATA)
                self.send(HEARTBEATS, node_id, encode_input(beat))


def assert_log_is_whole(world: MemoryCluster) -> None:
    """No seq is missing or doubled, no epoch is skipped, no term falls, and the table is the last epoch's."""
    decisions = world.decisions()
    assert [decision.seq for decision in decisions] == list(range(1, len(decisions) + 1))
    for before, after in itertools.pairwise(decisions):
        assert after.epoch - before.epoch in (0, 1)
        assert after.term >= before.term
        assert after.previous_digest == before.digest()
    table = world.table()
    assert table is not None
    assert table.epoch == decisions[-1].epoch
