"""The effect of each fault on a world, and its end."""

import copy
import random
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Final

from controlplane.config import HEARTBEATS
from controlplane.core.values.identifiers import TopicPartition
from controlplane.testing import CommitFault
from tests.simulation.broker_faults import BrokerFaults
from tests.simulation.fault_kinds import FaultKind
from tests.simulation.foreign_records import throw_foreign_records
from tests.simulation.machine import Machine
from tests.simulation.network import ALL_THAT_A_CONTROLLER_FOLLOWS, TABLE
from tests.simulation.node_faults import NodeFaults
from tests.simulation.setting import CLIENTS, CONTROLLERS, LEASE, MOST_ADDED_AT_ONCE
from tests.simulation.world import World

HEALED_MS: Final = 13_000
"""By when everything works again."""
_USUAL_SLOWEST_MS: Final = 3
_HEARTBEAT_INTERVAL_MS: Final = 1_000
"""The longest; it is half of that under the shortest silence limit."""
_LONGEST_WITHOUT_READS_MS: Final = 6 * LEASE.duration_ms
"""A leader leads on for half of that."""


_OF_PROCESSES: Final = ("CONTROLLER", "NODE", "CLIENT", "FLEET")
"""How the names of faults begin that hit processes, and leave Kafka and the lease store whole."""


class Injector:
    """Does faults to a world.

    Attributes:
        leader: the present leader by the log; set by the run.
        on_cut: told when all nodes are cut off at one moment.
    """

    def __init__(self, world: World) -> None:
        """Nothing is broken."""
        self.leader = ""
        self.on_cut: Callable[[], None] = lambda: None
        self._kind = FaultKind.BROKER_DOWN
        self._unhealed = 0
        self._world = world
        self._in_transaction: list[Callable[[str], None]] = []
        world.in_transaction = self._on_transaction
        self._lease_copy = copy.copy(world.leases.lease)
        self._actions: Mapping[FaultKind, Callable[[random.Random, str], None]] = self._table()

    def remember_leases(self) -> None:
        """Make the copy from which the lease store is restored one day."""
        self._lease_copy = copy.copy(self._world.leases.lease)

    def inject(self, kind: FaultKind, choose: random.Random, controller: str = "") -> None:
        """Let a fault happen; ``controller`` is whom it hits if it hits one."""
        self._kind = kind
        self._actions[kind](choose, controller or self.choose_controller(choose))

    @property
    def is_whole(self) -> bool:
        """Whether all faults that are not of one process are healed."""
        return not self._unhealed

    def choose_controller(self, choose: random.Random) -> str:
        """One that runs; the leader more often than not."""
        running = [name for name in CONTROLLERS if name in self._world.running]
        if self.leader in running and choose.random() < 0.6:
            return self.leader
        return choose.choice(running or CONTROLLERS)

    def _table(self) -> Mapping[FaultKind, Callable[[random.Random, str], None]]:
        kinds, world = FaultKind, self._world
        return {
            kinds.CONTROLLER_KILLED: self._kill_controller,
            kinds.CONTROLLER_STOPPED: self._stop_controller,
            kinds.CONTROLLER_PAUSED: lambda choose, name: self._pause(choose, name, 50, LEASE.duration_ms),
            kinds.CONTROLLER_PAUSED_BEYOND_ITS_LEASE: lambda choose, name: self._pause(
                choose, name, LEASE.duration_ms, 3 * LEASE.duration_ms
            ),
            kinds.CONTROLLER_WITHOUT_KAFKA: partial(self._cut, ("kafka",)),
            kinds.CONTROLLER_WITHOUT_LEASE_STORE: partial(self._cut, ("lease_store",)),
            kinds.CONTROLLER_ALONE: partial(self._cut, ("kafka", "lease_store")),
            kinds.CONTROLLER_CLOCK_STEPPED: self._step_clock,
            kinds.CONTROLLER_CLOCK_DRIFTS: self._drift,
            kinds.CONTROLLER_SLOW: self._slow,
            kinds.CONTROLLER_READS_REORDERED: self._hold_one_back,
            kinds.KILLED_IN_TRANSACTION: lambda choose, _: self._at_transaction(
                lambda name: world.scheduler.at(world.scheduler.now_ms, lambda: self._kill_controller(choose, name))
            ),
            kinds.PAUSED_IN_TRANSACTION: lambda choose, _: self._at_transaction(
                lambda name: self._pause(choose, name, LEASE.duration_ms, 3 * LEASE.duration_ms)
            ),
            kinds.LEASE_STORE_DOWN: self._lease_store_down,
            kinds.LEASE_STORE_EMPTIED: lambda *_: world.leases.lose_data(),
            kinds.LEASE_STORE_RESTORED: lambda *_: self._restore_leases(),
            kinds.LEASE_STORE_SPLIT: self._split_leases,
            kinds.BROKER_DOWN: lambda choose, _: self._broker_down(choose),
            kinds.BROKER_FROZEN: lambda choose, _: self._at_transaction(lambda _: self._freeze(choose)),
            kinds.BROKER_SLOW: self._slow_everybody,
            kinds.BROKER_CLOCK_STEPPED: self._step_broker,
            kinds.PARTITION_WITHOUT_LEADER: self._lose_leader,
            kinds.PARTITION_ON_ANOTHER_CLOCK: self._change_clock,
            kinds.DELIVERIES_DELAYED: self._delay,
            kinds.ACKS_LOST: lambda choose, _: world.broker.lose_next_acks(choose.randint(1, 30)),
            kinds.SENDS_DOUBLED: lambda choose, _: world.broker.double_next_sends(choose.randint(1, 40)),
            kinds.ANSWER_LOST_AFTER_COMMIT: self._fail_commit(CommitFault.ANSWER_LOST_AFTER_COMMIT),
            kinds.TRANSACTION_LEFT_HANGING: self._fail_commit(CommitFault.ANSWER_LOST_BEFORE_COMMIT),
            kinds.COMMIT_ABORTED: self._fail_commit(CommitFault.ABORTED),
            kinds.TRANSACTION_TIMED_OUT: self._fail_commit(CommitFault.FENCED),
            kinds.TABLE_COMPACTED: self._compact,
            kinds.LEASE_STORE_CLOCK_STEPPED: self._step_leases,
            kinds.PARTITIONS_ADDED: self._add_partitions,
            kinds.CONTROLLER_READS_NOTHING: partial(
                self._hold_back, ALL_THAT_A_CONTROLLER_FOLLOWS, _LONGEST_WITHOUT_READS_MS
            ),
            kinds.NODE_WITHOUT_TABLE: lambda choose, _: self._hold_back(TABLE, 6_000, choose, self._node(choose)),
            kinds.LEASE_STORE_REFUSES: self._refuse_leases,
            kinds.FOREIGN_RECORDS: lambda choose, _: throw_foreign_records(world, choose),
            **self._of_nodes_and_clients(),
            **BrokerFaults(world, self._heal, self._at_transaction).actions(),
            **NodeFaults(world, self._until_ms, self._heal).actions(),
        }

    def _of_nodes_and_clients(self) -> Mapping[FaultKind, Callable[[random.Random, str], None]]:
        kinds = FaultKind
        return {
            kinds.CLIENT_PAUSED: lambda choose, _: self._pause(choose, choose.choice(CLIENTS), 50, 4_000),
            kinds.CLIENT_WITHOUT_KAFKA: lambda choose, _: self._cut(("kafka",), choose, choose.choice(CLIENTS)),
            kinds.CLIENT_RESTARTED: self._restart_client,
            kinds.NODE_KILLED: self._kill_node,
            kinds.NODE_PAUSED: lambda choose, _: self._pause(choose, self._node(choose), 50, 4_000),
            kinds.NODE_WITHOUT_KAFKA: lambda choose, _: self._cut(("kafka",), choose, self._node(choose), 6_000),
            kinds.FLEET_WITHOUT_KAFKA: lambda choose, _: self._cut_fleet(choose),
            kinds.NODE_WITHOUT_PEERS: lambda choose, _: self._cut(("peers",), choose, self._node(choose)),
            kinds.NODE_CLOCK_STEPPED: lambda choose, _: self._step_clock(choose, self._node(choose)),
            kinds.NODE_CLOCK_DRIFTS: lambda choose, _: self._drift(choose, self._node(choose)),
            kinds.NODE_SLOW: lambda choose, _: self._slow(choose, self._node(choose)),
        }

    # -- processes ---------------------------------------------------------------------------------------------------

    def _kill_controller(self, choose: random.Random, name: str) -> None:
        self._world.kill(name)
        self._heal(choose, lambda: self._world.start_controller(name))

    def _stop_controller(self, choose: random.Random, name: str) -> None:
        self._world.stop_controller(name)
        self._heal(choose, lambda: self._world.start_controller(name))
        self._world.scheduler.at(HEALED_MS, lambda: self._world.start_controller(name))  # it may take long to end

    def _kill_node(self, choose: random.Random, _: str) -> None:
        name = self._node(choose)
        self._world.kill(name)
        self._heal(choose, lambda: self._world.start_node(name))

    def _restart_client(self, choose: random.Random, _: str) -> None:
        name = choose.choice(CLIENTS)
        self._world.kill(name)
        self._world.start_client(name)

    def _pause(self, choose: random.Random, name: str, shortest_ms: int, longest_ms: int) -> None:
        self._machine(name).process.paused_until_ms = self._until_ms(choose, longest_ms, shortest_ms)

    def _cut(self, links: tuple[str, ...], choose: random.Random, name: str, longest_ms: int = 4_000) -> None:
        network = self._machine(name).network
        for link in links:
            setattr(network, link, False)
            self._heal(choose, partial(setattr, network, link, True), longest_ms)

    def _cut_fleet(self, choose: random.Random, longest_ms: int = 6_000) -> None:
        """Cut all nodes off at one moment, after their heartbeats were spread over the interval by short pauses."""
        now_ms = self._world.scheduler.now_ms
        fleet = sorted(self._world.agents)
        for name in fleet:
            pause_ms = choose.randint(_HEARTBEAT_INTERVAL_MS // 2, _HEARTBEAT_INTERVAL_MS)
            process = self._machine(name).process
            process.paused_until_ms = max(process.paused_until_ms, now_ms + pause_ms)
        cut_at_ms = now_ms + 2 * _HEARTBEAT_INTERVAL_MS
        until_ms = min(cut_at_ms + choose.randint(50, longest_ms), HEALED_MS)
        if cut_at_ms < until_ms:
            self._world.scheduler.at(cut_at_ms, self.on_cut)
            for at_ms, whole in ((cut_at_ms, False), (until_ms, True)):
                for name in fleet:
                    self._world.scheduler.at(at_ms, partial(setattr, self._machine(name).network, "kafka", whole))

    def _step_clock(self, choose: random.Random, name: str) -> None:
        self._machine(name).clock.wall_step_ms += choose.choice((-3_600_000, -5_000, 5_000, 3_600_000))

    def _drift(self, choose: random.Random, name: str) -> None:
        self._machine(name).clock.drift(choose.choice((0.9, 0.98, 1.02, 1.1)))

    def _slow(self, choose: random.Random, name: str) -> None:
        network = self._machine(name).network
        network.slowest_ms = choose.choice((50, 200))
        self._heal(choose, lambda: setattr(network, "slowest_ms", _USUAL_SLOWEST_MS))

    def _hold_one_back(self, choose: random.Random, name: str) -> None:
        place = TopicPartition(HEARTBEATS, choose.randrange(self._world.heartbeat_partitions))
        self._hold_back({place}, 2_000, choose, name)

    def _hold_back(self, places: Collection[TopicPartition], longest_ms: int, choose: random.Random, name: str) -> None:
        network = self._machine(name).network
        network.hold_back(places)
        self._heal(choose, lambda: network.let_through(places), longest_ms)

    # -- the lease store ----------------------------------------------------------------------------------------------

    def _lease_store_down(self, choose: random.Random, _: str) -> None:
        self._world.leases.available = False
        self._heal(choose, lambda: setattr(self._world.leases, "available", True))

    def _refuse_leases(self, choose: random.Random, _: str) -> None:
        self._world.leases.refusal = choose.choice(("login refused", "request denied"))
        self._heal(choose, lambda: setattr(self._world.leases, "refusal", ""))

    def _restore_leases(self) -> None:
        self._world.leases.lease = copy.copy(self._lease_copy)

    def _step_leases(self, choose: random.Random, _: str) -> None:
        self._world.lease_clock.wall_step_ms += choose.choice((-3_600_000, -1_000, 1_000, 3_600_000))

    def _split_leases(self, choose: random.Random, _: str) -> None:
        misled = choose.sample(CONTROLLERS, choose.randint(1, 2))
        for name in misled:
            machine = self._machine(name)
            machine.leases = self._world.other_leases
            self._heal(choose, partial(setattr, machine, "leases", self._world.leases))

    # -- the broker --------------------------------------------------------------------------------------------------

    def _broker_down(self, choose: random.Random, longest_ms: int = 1_500) -> None:
        self._world.broker.available = False
        self._heal(choose, lambda: setattr(self._world.broker, "available", True), longest_ms)

    def _freeze(self, choose: random.Random) -> None:
        """The running commit succeeds, and then the broker answers nothing for a while."""
        self._world.broker.fail_next_commit(CommitFault.ANSWER_LOST_AFTER_COMMIT)
        self._world.scheduler.at(self._world.scheduler.now_ms + 10, lambda: self._broker_down(choose, 4_000))

    def _slow_everybody(self, choose: random.Random, _: str) -> None:
        slowest_ms = choose.choice((30, 120))
        for machine in self._world.machines.values():
            machine.network.slowest_ms = slowest_ms
            self._heal(choose, partial(setattr, machine.network, "slowest_ms", _USUAL_SLOWEST_MS), 2_000)

    def _step_broker(self, choose: random.Random, _: str) -> None:
        self._world.clock.wall_step_ms += choose.choice((-60_000, -1_000, 1_000, 60_000))

    def _lose_leader(self, choose: random.Random, _: str) -> None:
        number = choose.randrange(self._world.heartbeat_partitions)
        self._world.lose_leader(HEARTBEATS, number)
        self._heal(choose, lambda: self._world.elect_leader(HEARTBEATS, number), 1_500)

    def _change_clock(self, choose: random.Random, _: str) -> None:
        number = choose.randrange(self._world.heartbeat_partitions)
        ahead_ms = choose.choice((-3_600_000, -30_000, -1_500, 1_500, 30_000, 3_600_000))
        self._world.set_clock_of(HEARTBEATS, number, ahead_ms)
        if choose.random() < 0.5:  # otherwise that broker leads the partition to the end
            self._heal(choose, lambda: self._world.set_clock_of(HEARTBEATS, number, 0))

    def _add_partitions(self, choose: random.Random, _: str) -> None:
        """Once, and in half of the runs once more."""
        now_ms = self._world.scheduler.now_ms
        for at_ms in (now_ms, now_ms + choose.randint(10, 3_000))[: choose.randint(1, 2)]:
            count = choose.randint(1, MOST_ADDED_AT_ONCE)
            self._world.scheduler.at(at_ms, partial(self._world.add_partitions, count))

    def _delay(self, choose: random.Random, _: str) -> None:
        self._world.broker.delivery_delay_ms = choose.choice((20, 100, 400))
        self._heal(choose, lambda: setattr(self._world.broker, "delivery_delay_ms", 0))

    def _fail_commit(self, fault: CommitFault) -> Callable[[random.Random, str], None]:
        return lambda *_: self._world.broker.fail_next_commit(fault)

    def _compact(self, choose: random.Random, _: str) -> None:
        lagging = choose.choice((*CLIENTS, self._node(choose)))
        self._cut(("kafka",), choose, lagging)
        drop_tombstones = choose.random() < 0.5
        later_ms = self._world.scheduler.now_ms + choose.randint(1, 1_500)
        self._world.scheduler.at(later_ms, lambda: self._world.compact_table(drop_tombstones=drop_tombstones))

    # -- inside ------------------------------------------------------------------------------------------------------

    def _at_transaction(self, happens: Callable[[str], None]) -> None:
        """Let it happen when the next transaction is open."""
        kind = self._kind

        def as_this_kind(name: str) -> None:
            self._kind = kind
            happens(name)

        self._in_transaction.append(as_this_kind)

    def _on_transaction(self, name: str) -> None:
        waiting, self._in_transaction = self._in_transaction, []
        for happens in waiting:
            happens(name)

    def _node(self, choose: random.Random) -> str:
        return choose.choice(sorted(self._world.agents) or ["n0"])

    def _machine(self, name: str) -> Machine:
        return self._world.machines[name]

    def _until_ms(self, choose: random.Random, longest_ms: int, shortest_ms: int = 50) -> int:
        now_ms = self._world.scheduler.now_ms
        return min(now_ms + choose.randint(shortest_ms, longest_ms), max(HEALED_MS, now_ms))

    def _heal(self, choose: random.Random, heals: Callable[[], object], longest_ms: int = 4_000) -> None:
        if self._kind.name.startswith(_OF_PROCESSES):
            self._world.scheduler.at(self._until_ms(choose, longest_ms), heals)
            return
        self._unhealed += 1

        def heals_it() -> None:
            self._unhealed -= 1
            heals()

        self._world.scheduler.at(self._until_ms(choose, longest_ms), heals_it)
