"""The environment of a simulated process: a network with delays and faults, and an inexact clock."""

import random
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Final

from controlplane.adapters.system_clock import ElapsedTime
from controlplane.config import DECISIONS, HEARTBEATS, INTENTS, MEMBERSHIP, ROUTING_TABLE, ClusterConfig
from controlplane.core.values.identifiers import ControllerId, Term, TopicPartition
from controlplane.testing import MemoryBroker, MemoryLeaseServer
from controlplane.testing.memory_partition import LeadingBroker
from tests.simulation.scheduler import News, Scheduler
from tests.simulation.setting import MOST_HEARTBEAT_PARTITIONS

TABLE: Final = frozenset({TopicPartition(ROUTING_TABLE, 0)})
"""What a node reads."""
ALL_THAT_A_CONTROLLER_FOLLOWS: Final = TABLE.union(
    (TopicPartition(topic, 0) for topic in (DECISIONS, INTENTS, MEMBERSHIP)),
    (TopicPartition(HEARTBEATS, number) for number in range(MOST_HEARTBEAT_PARTITIONS)),
)
"""Snapshots it reads when it starts only."""


@dataclass
class Network:
    """The connections of one process.

    Attributes:
        kafka: whether it reaches Kafka.
        lease_store: whether it reaches the lease store.
        peers: whether other nodes reach it, and it them.
        slowest_ms: how long a request takes at most.
        patience_ms: how long a reader repeats a query that Kafka does not answer.
        held_back: partitions of which no record arrives here, while others do.
        unreachable: brokers that this process cannot reach, while others can.
        stale_ends: partitions of which this process asks a broker that leads them no longer, with the end it knows.
    """

    kafka: bool = True
    lease_store: bool = True
    peers: bool = True
    slowest_ms: int = 3
    patience_ms: int = 0
    held_back: set[TopicPartition] = field(default_factory=set)
    unreachable: set[LeadingBroker] = field(default_factory=set)
    stale_ends: dict[TopicPartition, int] = field(default_factory=dict)

    def hold_back(self, places: Collection[TopicPartition]) -> None:
        """Records of these topics no longer arrive; writes still succeed."""
        self.held_back.update(places)

    def let_through(self, places: Collection[TopicPartition]) -> None:
        """They arrive again."""
        self.held_back.difference_update(places)


class SimulatedClock:
    """Implements :class:`controlplane.ports.Clock` for one machine: it drifts, its wall clock is stepped.

    The machine can be suspended: one of its two monotonic clocks stands still then, as Linux's CLOCK_MONOTONIC does.

    Attributes:
        wall_step_ms: what its wall clock is off.
    """

    def __init__(self, scheduler: Scheduler) -> None:
        """It goes right."""
        self.wall_step_ms = 0
        self._scheduler = scheduler
        self._speed = 1.0
        self._since_ms = self._read_ms = 0
        self._suspended_at_ms: int | None = None
        self._asleep_ms = 0
        self._elapsed: ElapsedTime | None = None
        self._compared_from_ms = 0

    def drift(self, speed: float) -> None:
        """Set the clock's rate, in its milliseconds per millisecond of virtual time."""
        self._read_ms, self._since_ms = self._boot_ms(), self._scheduler.now_ms
        self._speed = speed

    def suspend(self) -> None:
        """From now on time passes that only one of the clocks counts."""
        if self._suspended_at_ms is None:
            if self._elapsed is None:  # a machine that was never suspended need not compare its clocks
                self._elapsed = ElapsedTime([self._awake_ns, lambda: self._boot_ms() * 1_000_000])
                self._compared_from_ms = self._boot_ms()
            self._suspended_at_ms = self._boot_ms()

    def resume(self) -> None:
        """Both count again."""
        if self._suspended_at_ms is not None:
            self._asleep_ms += self._boot_ms() - self._suspended_at_ms
            self._suspended_at_ms = None

    def monotonic_ms(self) -> int:
        """See :meth:`controlplane.ports.Clock.monotonic_ms`."""
        return self._boot_ms() if self._elapsed is None else self._compared_from_ms + self._elapsed.ms

    def wall_ms(self) -> int:
        """See :meth:`controlplane.ports.Clock.wall_ms`."""
        return 1_700_000_000_000 + self._boot_ms() + self.wall_step_ms

    def _boot_ms(self) -> int:
        return self._read_ms + int((self._scheduler.now_ms - self._since_ms) * self._speed)

    def _awake_ns(self) -> int:
        awake_ms = self._boot_ms() if self._suspended_at_ms is None else self._suspended_at_ms
        return (awake_ms - self._asleep_ms) * 1_000_000


@dataclass
class Stores:
    """The parts that all processes share.

    Attributes:
        cluster: the cluster's name.
        broker: Kafka.
        leases: the lease store.
        other_leases: another lease store, used only by controllers that are directed to it.
        news: threads that wait for new records.
        on_grant: told of each grant of a lease: to whom, whose it was just before if it was another process's, the
            floor that was named, the term.
        fetch_records: how many records one answer of the broker holds at most.
    """

    cluster: ClusterConfig
    broker: MemoryBroker
    leases: MemoryLeaseServer
    other_leases: MemoryLeaseServer
    news: News
    fetch_records: int = 10_000
    on_grant: Callable[[ControllerId, ControllerId, Term, Term], None] = lambda *_: None


class Link:
    """How the clients of one process reach the stores.

    Attributes:
        leases: the lease store that it takes for the right one.
        clock: that of its machine.
        lease_store_answered: a lease store has done what this process asked for, at least once.
    """

    def __init__(self, scheduler: Scheduler, stores: Stores, random_source: random.Random) -> None:
        """Everything reachable."""
        self.scheduler = scheduler
        self.stores = stores
        self.leases = stores.leases
        self.clock = SimulatedClock(scheduler)
        self.lease_store_answered = False
        self.network = Network()
        self.random = random_source

    def travel_ms(self) -> int:
        """How long the next message takes."""
        return int(self.random.random() * (self.network.slowest_ms + 1))

    def latency(self) -> None:
        """A request is under way."""
        self.scheduler.sleep(self.travel_ms())
