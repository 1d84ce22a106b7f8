"""The brokers of a simulated Kafka: each has a clock of its own, and leads some of the partitions."""

import random
from collections.abc import Sequence
from typing import Final

from controlplane.testing import MemoryBroker
from controlplane.testing.memory_partition import LeadingBroker, MemoryPartition
from tests.simulation.network import SimulatedClock
from tests.simulation.scheduler import Scheduler

BROKERS: Final = 3


class SimulatedBroker(LeadingBroker):
    """One broker.

    Attributes:
        clock: its own; append times in the partitions that it leads are by this clock.
    """

    def __init__(self, scheduler: Scheduler) -> None:
        """Its clock goes right."""
        self.clock = SimulatedClock(scheduler)
        self._scheduler = scheduler

    def ahead_ms(self) -> int:
        """See :class:`controlplane.testing.memory_partition.LeadingBroker`."""
        return self.clock.monotonic_ms() + self.clock.wall_step_ms - self._scheduler.now_ms


class Brokers:
    """The brokers together, and which of them leads which partition.

    Attributes:
        each: all of them. The first one coordinates transactions as long as nothing moves.
    """

    def __init__(self, scheduler: Scheduler, kafka: MemoryBroker, topics: Sequence[str]) -> None:
        """Let the brokers lead the partitions in turn; ``topics`` are the full names."""
        self.each = [SimulatedBroker(scheduler) for _ in range(BROKERS)]
        self._scheduler = scheduler
        self._kafka = kafka
        self._topics = topics
        kafka.coordinator = self.each[0]
        self.lead_new_partitions()

    def places(self) -> list[tuple[str, int]]:
        """Full name of the topic and number of each partition."""
        return [(topic, number) for topic in self._topics for number in range(len(self._kafka.partitions(topic)))]

    def led_by(self, broker: LeadingBroker) -> list[tuple[str, int]]:
        """The partitions that a broker leads."""
        return [place for place in self.places() if self._partition(place).leader is broker]

    def lead_new_partitions(self) -> None:
        """Partitions that were just created get leaders."""
        for turn, place in enumerate(self.places()):
            if not isinstance(self._partition(place).leader, SimulatedBroker):
                self._partition(place).leader = self.each[turn % BROKERS]

    def lead_by_clock(self, place: tuple[str, int], ahead_ms: int) -> None:
        """A further broker leads a partition from now on, whose clock is ahead by this, or behind; 0: one of these."""
        leader = self.each[0]
        if ahead_ms:
            leader = SimulatedBroker(self._scheduler)
            leader.clock.wall_step_ms = ahead_ms
        self._partition(place).leader = leader

    def move(self, place: tuple[str, int], choose: random.Random) -> None:
        """Another broker leads a partition from now on."""
        partition = self._partition(place)
        partition.leader = choose.choice([broker for broker in self.each if broker is not partition.leader])

    def move_coordinator(self, choose: random.Random) -> None:
        """Another broker coordinates transactions from now on."""
        self._kafka.coordinator = choose.choice([each for each in self.each if each is not self._kafka.coordinator])

    def _partition(self, place: tuple[str, int]) -> MemoryPartition:
        topic, number = place
        return self._kafka.partitions(topic)[number]
