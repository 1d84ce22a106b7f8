"""Controllers in threads, on a Kafka, a lease store and a lock in memory: short leases and ticks, in real time."""

import random
import threading
import time
from collections.abc import Callable, Mapping
from typing import Final, Self

from prometheus_client import CollectorRegistry

from controlplane.adapters.system_clock import SystemClock
from controlplane.adapters.system_threads import SystemThreads
from controlplane.bootstrap.controllers import compose_controller
from controlplane.bootstrap.topics import topic_specs
from controlplane.config import (
    HEARTBEATS,
    ClusterConfig,
    ControllerConfig,
    KafkaConfig,
    LeaseConfig,
    SnapshotConfig,
    SofaLeaseConfig,
)
from controlplane.core.cluster.policy import ClusterPolicy
from controlplane.core.slots.policies import BUILT_IN_POLICIES
from controlplane.core.slots.policy_contract import SlotPolicies
from controlplane.ports import EventWriter, LogReader, PolledBatch
from controlplane.service.controller import Controller
from controlplane.service.metrics import ControllerMetrics
from controlplane.testing.memory_broker import MemoryBroker
from controlplane.testing.memory_lease import MemoryLeaseServer, MemoryLeaseStore
from controlplane.testing.memory_lock import MemoryLockServer, MemoryLockStore
from controlplane.testing.memory_log import MemoryEventWriter, MemoryLogReader
from controlplane.testing.memory_topics import MemoryTopicInspector
from controlplane.testing.memory_transactions import MemoryTransactionalWriter

QUICK_POLICY: Final = ClusterPolicy(slot_count=8, join_linger_ms=50, silence_limit_ms=800)
"""The policy of a cluster of few slots that admits nodes at once and declares silent ones dead within a second."""

_HEARTBEAT_PARTITIONS: Final = 2
_END_TIMEOUT_S: Final = 20.0
_IDLE_POLL_S: Final = 0.005
_CONDITION_POLL_S: Final = 0.02


class WaitingLogReader(MemoryLogReader):
    """A reader for threads in real time: it waits a little when there is nothing to read, as Kafka's client does."""

    def poll(self, max_records: int, timeout_ms: int) -> PolledBatch:
        """See :meth:`controlplane.ports.LogReader.poll`; an empty poll takes 5 ms, unless ``timeout_ms`` is 0."""
        batch = super().poll(max_records, timeout_ms)
        if not batch.records and timeout_ms:
            time.sleep(_IDLE_POLL_S)
        return batch


class RunningController:
    """A controller in a thread, started at once.

    Args:
        controller: the controller to run.
        registry: the registry that has its metrics.

    Attributes:
        failure: the error that ended the controller; None if there was none.
    """

    def __init__(self, controller: Controller, registry: CollectorRegistry) -> None:
        self._registry = registry
        self.stop = threading.Event()
        self.failure: Exception | None = None
        self._thread = threading.Thread(target=self._run, args=(controller,), daemon=True)
        self._thread.start()

    def _run(self, controller: Controller) -> None:
        try:
            controller.run(self.stop)
        except Exception as failure:  # noqa: BLE001 - raised in the thread that waits for something
            self.failure = failure

    @property
    def alive(self) -> bool:
        """Whether the thread has not ended."""
        return self._thread.is_alive()

    def metric(self, name: str, **labels: str) -> float | None:
        """The value of one of the controller's metrics; None if there is none with these labels."""
        return self._registry.get_sample_value(name, labels)

    def end(self) -> None:
        """Stop the controller and wait for its end.

        Raises:
            TimeoutError: the controller did not end within 20 s.
        """
        self.stop.set()
        self._thread.join(_END_TIMEOUT_S)
        if self._thread.is_alive():
            raise TimeoutError(f"a controller that was asked to stop still runs after {_END_TIMEOUT_S:.0f} s")


class MemoryControllers:
    """The servers of a cluster in memory, and its controllers in threads. A context manager: leaving it ends them.

    Args:
        name: the cluster's name.
        policy: the first policy of the cluster.
        schema_ids: what the ids of a schema registry mean to the controllers, see :class:`KafkaConfig`.

    Attributes:
        controllers: every controller that was started.
        policy: the first policy of the cluster, for controllers that are started from now on.
    """

    def __init__(
        self, name: str = "test", policy: ClusterPolicy = QUICK_POLICY, schema_ids: Mapping[int, str] | None = None
    ) -> None:
        self.kafka = KafkaConfig("memory", schema_ids=schema_ids or {})
        self.clock = SystemClock()
        self.cluster = ClusterConfig(name)
        self.broker = MemoryBroker(self.clock)
        self.leases = MemoryLeaseServer(self.clock)
        self.locks = MemoryLockServer(self.clock)
        self.controllers: list[RunningController] = []
        self.policy = policy
        for spec in topic_specs():
            partition_count = _HEARTBEAT_PARTITIONS if spec.name == HEARTBEATS else 1
            self.broker.create_topic(self.cluster.topic(spec.name), partition_count, spec.settings_for(brokers=1))

    def __enter__(self) -> Self:
        """The cluster itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """End every controller."""
        for controller in self.controllers:
            controller.end()

    def start(  # noqa: PLR0913 - all but one with defaults
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
        """Start a controller with a lease of 300 ms and ticks every 20 ms. It runs until the context ends.

        Settings are those of :class:`ControllerConfig` and :class:`LeaseConfig`. Writers that are not given are made,
        and ``transactions`` is the class of the transactional ones.
        """
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
            lock_store=self._lock_store(sofa_lease),
            open_reader=self.reader,
            open_transactions=lambda: transactions(self.cluster, self.broker),
            open_inspector=lambda: MemoryTopicInspector(self.broker),
            event_writers=(
                tick_writer or self.event_writer(),
                self.event_writer(),
                snapshot_writer or self.event_writer(),
            ),
            random_source=random.Random(controller_id),  # noqa: S311 - spreads waits and names logs, no secret
        )
        running = RunningController(controller, registry)
        self.controllers.append(running)
        return running

    def event_writer(self) -> MemoryEventWriter:
        """A writer of single records."""
        return MemoryEventWriter(self.cluster, self.broker)

    def reader(self) -> LogReader:
        """A reader of the cluster's topics."""
        return WaitingLogReader(self.cluster, self.broker)

    def becomes_true(self, condition: Callable[[], object], timeout_ms: int) -> bool:
        """Whether a condition, evaluated every 20 ms, is true within a time; an error ends the waiting.

        Raises:
            Exception: the error that ended a controller, or the condition's own.
        """
        deadline_ms = self.clock.monotonic_ms() + timeout_ms
        while not condition():
            for controller in self.controllers:
                if controller.failure is not None:
                    raise controller.failure
            if self.clock.monotonic_ms() >= deadline_ms:
                return False
            time.sleep(_CONDITION_POLL_S)
        return True

    def _lock_store(self, lock: SofaLeaseConfig | None) -> MemoryLockStore | None:
        return None if lock is None else MemoryLockStore(self.locks, lock.data_center, lock.lock_name)
