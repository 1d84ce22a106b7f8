"""A simulated process with its clock and its network; it makes its clients."""

import random
from typing import Final

from controlplane.core.values.identifiers import ProcessId
from tests.simulation.clients import (
    SimulatedEventWriter,
    SimulatedLeaseStore,
    SimulatedReader,
    SimulatedTopicInspector,
    SimulatedTransactionalWriter,
)
from tests.simulation.network import Link, SimulatedClock, Stores
from tests.simulation.scheduler import Process, Scheduler

MESSAGE_TIMEOUT_MS: Final = 2_500
"""After which time without an acknowledgement a record is given up, as with Kafka's clients."""


class Machine(Link):
    """A process with its clock and its network."""

    def __init__(
        self,
        scheduler: Scheduler,
        process: Process,
        stores: Stores,
        random_source: random.Random,
        clock: SimulatedClock | None = None,
    ) -> None:
        """Everything reachable; the clock is a right one, or that of the process that ran here before."""
        super().__init__(scheduler, stores, random_source)
        self.process = process
        self.clock = clock or SimulatedClock(scheduler)
        self.writers: list[SimulatedEventWriter] = []

    def reader(self) -> SimulatedReader:
        """A reader of the log."""
        return SimulatedReader(self)

    def transactional_writer(self) -> SimulatedTransactionalWriter:
        """A writer under the cluster's transactional id."""
        return SimulatedTransactionalWriter(self)

    def topic_inspector(self) -> SimulatedTopicInspector:
        """An inspector of topics."""
        return SimulatedTopicInspector(self)

    def event_writer(self, message_timeout_ms: int = MESSAGE_TIMEOUT_MS) -> SimulatedEventWriter:
        """A writer of single records."""
        writer = SimulatedEventWriter(self, message_timeout_ms)
        self.writers.append(writer)
        return writer

    def lease_store(self, timeout_ms: int, process: ProcessId) -> SimulatedLeaseStore:
        """A connection to the lease store for the process of that name."""
        return SimulatedLeaseStore(self, timeout_ms, process)

    def die(self) -> None:
        """Records that its writers have not sent are lost with it. Records in transit arrive or are lost."""
        for writer in self.writers:
            if not self.network.kafka or self.random.random() < 0.5:
                writer.close()

    @property
    def runs(self) -> bool:
        """Whether the process lives and is not paused."""
        return not self.process.dead and self.process.paused_until_ms <= self.scheduler.now_ms
