"""Faults of a Kafka of several brokers: each dies, lags, fills up and counts time on its own.

They come in addition to the other faults of a run, by choices of their own.
"""

import random
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from controlplane.config import DECISIONS, ROUTING_TABLE
from controlplane.core.values.identifiers import TopicPartition
from controlplane.kafka_rules.broker_sessions import BROKER_SESSION, RECOMMENDED_MS
from controlplane.testing import CommitFault
from controlplane.testing.memory_partition import MemoryPartition, MemoryTransaction, TransactionState
from tests.simulation.fault_kinds import FaultKind
from tests.simulation.world import World

WEIGHTS: Final[Mapping[FaultKind, int]] = {
    FaultKind.LEADERS_MOVED: 3,
    FaultKind.ONE_CLOCK_STEPPED: 3,
    FaultKind.ONE_CLOCK_DRIFTS: 2,
    FaultKind.ONE_BROKER_DEAD: 4,
    FaultKind.COPY_HOLDS_WRITES_BACK: 3,
    FaultKind.ONE_BROKER_OUT_OF_REACH: 4,
    FaultKind.ANY_PARTITION_WITHOUT_LEADER: 4,
    FaultKind.ENDS_STALE: 3,
    FaultKind.MARKERS_LATE: 3,
    FaultKind.COORDINATOR_FAILS_OVER: 3,
    FaultKind.TRANSACTION_HANGS: 2,
    FaultKind.CONTROLLER_DEAF: 3,
    FaultKind.DISKS_FULL: 2,
    FaultKind.TOO_FEW_COPIES: 3,
}
"""How often each kind is drawn, in proportion. Those that several parts of the product answer are drawn more often."""
MOST: Final = 3
"""Faults of brokers in a run; there is one at least."""

_SESSION_MS: Final = RECOMMENDED_MS[BROKER_SESSION]
"""After which time without a sign of life Kafka gives a broker up."""
_ELECTION_MS: Final = 300
_UNTIL_HEALED_MS: Final = 60_000
"""Longer than any run: such a fault lasts until everything is healed."""
_CLOCK_STEPS_MS: Final = (-3_600_000, -30_000, -1_500, 1_500, 30_000, 3_600_000)
_SPEEDS: Final = (0.9, 0.99, 1.005, 1.0125)
"""Nodes stop in time as long as no broker's clock is more than 1.25 % fast. A slow one lets silence count later."""
_LOG_AND_TABLE: Final = (DECISIONS, ROUTING_TABLE)

_Place = tuple[str, int]
_Heal = Callable[[random.Random, Callable[[], object], int], None]
"""Schedules what ends a fault: choices of the fault, what to do, after how many milliseconds at most."""


def choose_broker_faults(choose: random.Random) -> list[FaultKind]:
    """Some faults of brokers, by weight."""
    return choose.choices(list(WEIGHTS), list(WEIGHTS.values()), k=choose.randint(1, MOST))


class BrokerFaults:
    """Does the faults of brokers to a world."""

    def __init__(self, world: World, heal: _Heal, at_transaction: Callable[[Callable[[str], None]], None]) -> None:
        """Nothing is broken.

        Args:
            world: what they are done to.
            heal: see :data:`_Heal`.
            at_transaction: lets something happen when the next transaction is open.
        """
        self._world = world
        self._kafka = world.broker
        self._brokers = world.brokers
        self._heal = heal
        self._at_transaction = at_transaction

    def actions(self) -> Mapping[FaultKind, Callable[[random.Random, str], None]]:
        """What each kind does, with its choices and the controller that it meets."""
        kinds = FaultKind
        return {
            kinds.LEADERS_MOVED: lambda choose, _: self._move_leaders(choose),
            kinds.ONE_CLOCK_STEPPED: lambda choose, _: self._step_clock(choose),
            kinds.ONE_CLOCK_DRIFTS: lambda choose, _: self._drift(choose),
            kinds.ONE_BROKER_DEAD: lambda choose, _: self._kill_broker(choose),
            kinds.COPY_HOLDS_WRITES_BACK: lambda choose, _: self._hold_writes_back(choose),
            kinds.ONE_BROKER_OUT_OF_REACH: self._cut_from_one,
            kinds.ANY_PARTITION_WITHOUT_LEADER: lambda choose, _: self._lose_leader(choose),
            kinds.ENDS_STALE: self._ask_former_leaders,
            kinds.MARKERS_LATE: lambda choose, _: self._hold_markers_back(choose, 6_000),
            kinds.COORDINATOR_FAILS_OVER: lambda choose, _: self._at_transaction(lambda _: self._fail_over(choose)),
            kinds.TRANSACTION_HANGS: lambda choose, _: self._hang(choose),
            kinds.CONTROLLER_DEAF: self._deafen,
            kinds.DISKS_FULL: lambda choose, _: self._refuse_writes(choose, self._brokers.places()),
            kinds.TOO_FEW_COPIES: lambda choose, _: self._refuse_writes(choose, self._partitions_of_a_topic(choose)),
        }

    # -- clocks and leaders --------------------------------------------------------------------------------------------

    def _move_leaders(self, choose: random.Random) -> None:
        """Some partitions move, as in a reassignment; each is without a leader for a moment."""
        places = self._brokers.places()
        for place in choose.sample(places, choose.randint(1, len(places))):
            self._kafka.lose_leader(*place)
            self._heal(choose, partial(self._elect, place, choose.random()), _ELECTION_MS)

    def _step_clock(self, choose: random.Random) -> None:
        choose.choice(self._brokers.each).clock.wall_step_ms += choose.choice(_CLOCK_STEPS_MS)

    def _drift(self, choose: random.Random) -> None:
        choose.choice(self._brokers.each).clock.drift(choose.choice(_SPEEDS))

    def _lose_leader(self, choose: random.Random) -> None:
        place = choose.choice(self._brokers.places())
        self._kafka.lose_leader(*place)
        self._heal(choose, partial(self._elect, place, choose.random()), 4_000)

    def _elect(self, place: _Place, chance: float) -> None:
        self._brokers.move(place, random.Random(chance))
        self._kafka.elect_leader(*place)

    # -- dead and distant brokers --------------------------------------------------------------------------------------

    def _kill_broker(self, choose: random.Random) -> None:
        """Its partitions have no leader, and its copies hold back what others append, until its session ends."""
        dead = choose.choice(self._brokers.each)
        led = self._brokers.led_by(dead)
        followed = [place for place in self._brokers.places() if place not in led]
        session_ms = choose.randint(_SESSION_MS // 2, _SESSION_MS)
        for place in led:
            self._kafka.lose_leader(*place)
        for place in followed:
            self._kafka.lose_follower(*place)
        if self._kafka.coordinator is dead:
            self._kafka.coordinator_available = False

        def give_up() -> None:
            for place in led:
                self._elect(place, choose.random())
            for place in followed:
                self._kafka.drop_follower(*place)
            if self._kafka.coordinator is dead:
                self._coordinate_elsewhere(choose)

        self._heal(choose, give_up, session_ms)

    def _hold_writes_back(self, choose: random.Random) -> None:
        """A broker that leads none of these partitions dies."""
        places = self._brokers.places()
        held = choose.sample(places, choose.randint(1, len(places)))
        for place in held:
            self._kafka.lose_follower(*place)
            self._heal(choose, partial(self._kafka.drop_follower, *place), _SESSION_MS)

    def _cut_from_one(self, choose: random.Random, controller: str) -> None:
        """One process cannot reach one broker, and everybody else can."""
        name = controller if choose.random() < 0.7 else choose.choice(sorted(self._world.machines))
        network, broker = self._world.machines[name].network, choose.choice(self._brokers.each)
        network.unreachable.add(broker)
        self._heal(choose, partial(network.unreachable.discard, broker), 6_000)

    def _refuse_writes(self, choose: random.Random, places: list[_Place]) -> None:
        for place in places:
            self._kafka.set_read_only(*place, read_only=True)

        def take_again() -> None:
            for place in places:
                self._kafka.set_read_only(*place, read_only=False)

        self._heal(choose, take_again, 4_000)

    def _partitions_of_a_topic(self, choose: random.Random) -> list[_Place]:
        places = self._brokers.places()
        topic = choose.choice(sorted({topic for topic, _ in places}))
        return [place for place in places if place[0] == topic]

    # -- what readers get ----------------------------------------------------------------------------------------------

    def _ask_former_leaders(self, choose: random.Random, controller: str) -> None:
        """A process asks brokers that lead log and table, or one of them, no longer and were not told."""
        name = controller if choose.random() < 0.8 else choose.choice(sorted(self._world.machines))
        ends = self._world.machines[name].network.stale_ends
        for topic in choose.sample(_LOG_AND_TABLE, choose.randint(1, 2)):
            place = TopicPartition(topic, 0)
            ends[place] = self._partition(topic).last_stable_offset
            self._heal(choose, partial(ends.pop, place, None), 6_000)

    def _deafen(self, choose: random.Random, controller: str) -> None:
        """No record of one partition reaches a controller any more; it can write there."""
        prefix = self._world.cluster.topic("")
        topic, number = choose.choice(self._brokers.places())
        network = self._world.machines[controller].network
        places = {TopicPartition(topic.removeprefix(prefix), number)}
        network.hold_back(places)
        self._heal(choose, lambda: network.let_through(places), _UNTIL_HEALED_MS)

    # -- transactions --------------------------------------------------------------------------------------------------

    def _hold_markers_back(self, choose: random.Random, longest_ms: int) -> None:
        """Transactions end, and the markers are written later: of both topics, or of one."""
        for topic in choose.sample(_LOG_AND_TABLE, choose.randint(1, 2)):
            name = self._world.cluster.topic(topic)
            self._kafka.hold_markers_back(name, 0)
            self._heal(choose, partial(self._kafka.write_markers, name, 0), longest_ms)

    def _fail_over(self, choose: random.Random) -> None:
        """The coordinator dies before or after it notes the end of the open transaction, and writes some markers."""
        ends = choose.choice((CommitFault.ANSWER_LOST_AFTER_COMMIT, CommitFault.ANSWER_LOST_BEFORE_COMMIT))
        self._kafka.fail_next_commit(ends)
        self._hold_markers_back(choose, _SESSION_MS)

        def die() -> None:
            self._kafka.coordinator_available = False
            self._heal(choose, partial(self._coordinate_elsewhere, choose), _SESSION_MS)

        self._world.scheduler.at(self._world.scheduler.now_ms + 10, die)

    def _coordinate_elsewhere(self, choose: random.Random) -> None:
        self._brokers.move_coordinator(choose)
        self._kafka.coordinator_available = True

    def _hang(self, choose: random.Random) -> None:
        """A late record reopens an aborted transaction (KIP-890), until an operator has the marker written again."""
        topic = choose.choice(_LOG_AND_TABLE)
        transaction = MemoryTransaction(0, self._kafka.now_ms(), TransactionState.ABORTED)
        self._partition(topic).append(b"late", b"", self._world.clock.wall_ms(), transaction)
        name = self._world.cluster.topic(topic)
        self._kafka.on_change(name)

        def abort() -> None:
            self._partition(topic).end_transaction(transaction, self._world.clock.wall_ms())
            self._kafka.on_change(name)

        self._heal(choose, abort, 6_000)

    def _partition(self, topic: str) -> MemoryPartition:
        (partition,) = self._kafka.partitions(self._world.cluster.topic(topic))
        return partition
