"""What goes wrong with real processes: each fault is done, held for a while, and undone."""

import os
import random
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from controlplane.config import LeaseConfig
from tests.chaos.effects import Effect
from tests.chaos.parts import Parts
from tests.chaos.proxy import LinkMode
from tests.kills.cluster import KvCluster

_LEASE_MS: Final = LeaseConfig().duration_ms
"""How long the lease of these controllers lasts, which are started with the default: pauses are longer."""


_DELAYS_MS: Final = (20, 100, 300)
_KAFKA_PAUSED_S: Final = 4.0
"""At most. Its session is 2 s long: beyond that it is fenced, and tells its clients that there is no broker at all."""


class FaultKind(Enum):
    """A way to go wrong."""

    LEADER_KILLED = "leader killed"
    LEADER_AND_NODE_KILLED = "leader and a node killed together"
    LEADER_TERMINATED = "leader asked to end"
    LEADER_PAUSED = "leader paused for longer than its lease"
    LEADER_WITHOUT_KAFKA = "leader cut off from Kafka"
    LEADER_WITHOUT_LEASE_STORE = "leader cut off from the lease store"
    LEADER_ALONE = "leader cut off from both"
    LEADER_WITHOUT_ANSWERS = "answers of Kafka to the leader lost"
    LEADER_SLOW = "leader's links slow"
    STANDBY_KILLED = "standby killed"
    NODE_KILLED = "node killed"
    NODE_RESTARTED = "node killed and started at once"
    NODE_PAUSED = "node paused"
    NODE_WITHOUT_KAFKA = "node cut off from Kafka"
    NODE_SLOW = "node's links slow"
    LEASE_STORE_EMPTIED = "lease store killed and started empty"
    LEASE_STORE_KILLED = "lease store killed and started with its data"
    LEASE_STORE_PAUSED = "lease store paused"
    KAFKA_KILLED = "Kafka killed and started"
    KAFKA_PAUSED = "Kafka paused"
    SNAPSHOTS_REFUSED = "no room for snapshots"


WEIGHTS: Mapping[Enum, int] = {
    **dict.fromkeys(FaultKind, 2),
    FaultKind.LEADER_KILLED: 24,
    FaultKind.LEADER_AND_NODE_KILLED: 8,
    FaultKind.KAFKA_KILLED: 1,
}
"""How often each comes; deaths of leaders most of all, because their time to recover is a distribution."""

_LONGEST_S: Final[Mapping[Enum, float]] = {FaultKind.KAFKA_KILLED: 2.0, FaultKind.KAFKA_PAUSED: _KAFKA_PAUSED_S}

LEADER_DEATHS = frozenset({FaultKind.LEADER_KILLED, FaultKind.LEADER_AND_NODE_KILLED})
"""A leader dies while Kafka and the lease store are reachable."""


@dataclass(frozen=True, slots=True)
class Victims:
    """The processes that a fault affects.

    Attributes:
        leader: the controller that leads.
        standby: one that does not.
        node: one of the nodes.
    """

    leader: str
    standby: str
    node: str


class Injector:
    """Does faults and undoes them."""

    def __init__(self, parts: Parts, cluster: KvCluster, chance: random.Random) -> None:
        """Nothing has gone wrong yet."""
        self._parts = parts
        self._cluster = cluster
        self._chance = chance
        self._undo: list[Callable[[], object]] = []
        self._looks: list[Callable[[], Effect]] = []

    def victims(self) -> Victims:
        """The processes that the next fault may affect."""
        leader = self._cluster.real.leader()
        standby = self._chance.choice(sorted(set(self._cluster.real.controllers) - {leader}))
        return Victims(leader, standby, self._chance.choice(sorted(self._cluster.nodes)))

    def begin(self, kind: Enum, victims: Victims) -> None:
        """Let it happen now."""
        assert isinstance(kind, FaultKind)
        self._actions[kind](self, victims)

    def hold_s(self, kind: Enum) -> float:
        """How long it lasts, once something was seen of it."""
        longest_s = _LONGEST_S.get(kind, 5.0)
        return self._chance.uniform(0.2, longest_s)

    def effects(self) -> list[Effect]:
        """What is seen of the fault that is held; nothing where doing it is all that it is."""
        return [look() for look in self._looks]

    def end(self) -> None:
        """Undo what there is to undo: start dead processes again, let paused ones go on, open links."""
        self._looks.clear()
        while self._undo:
            self._undo.pop()()

    # -- the faults ---------------------------------------------------------------------------------------------------

    def _kill_controller(self, name: str) -> None:
        self._signal(name, signal.SIGKILL)
        self._undo.append(lambda: self._cluster.real.start_controller(name))

    def _kill_leader(self, victims: Victims) -> None:
        self._kill_controller(victims.leader)

    def _kill_leader_and_node(self, victims: Victims) -> None:
        self._kill_controller(victims.leader)
        self._kill_node(victims)

    def _kill_standby(self, victims: Victims) -> None:
        self._kill_controller(victims.standby)

    def _terminate_leader(self, victims: Victims) -> None:
        self._signal(victims.leader, signal.SIGTERM)
        self._undo.append(lambda: self._cluster.real.start_controller(victims.leader))

    def _pause_leader(self, victims: Victims) -> None:
        self._pause(self._cluster.real.controllers[victims.leader].pid)

    def _cut_leader_from_kafka(self, victims: Victims) -> None:
        self._break_kafka_link(victims.leader, self._chance.choice((LinkMode.CUT, LinkMode.HALF_OPEN)))

    def _cut_leader_from_lease_store(self, victims: Victims) -> None:
        self._break_lease_link(victims.leader, self._chance.choice((LinkMode.CUT, LinkMode.HALF_OPEN)))

    def _cut_leader_from_both(self, victims: Victims) -> None:
        mode = self._chance.choice((LinkMode.CUT, LinkMode.HALF_OPEN))
        self._break_kafka_link(victims.leader, mode)
        self._break_lease_link(victims.leader, mode)

    def _lose_answers(self, victims: Victims) -> None:
        self._break_kafka_link(victims.leader, LinkMode.ANSWERS_LOST)

    def _slow_leader(self, victims: Victims) -> None:
        delay_ms = self._chance.choice(_DELAYS_MS)
        self._parts.set_kafka_link(victims.leader, LinkMode.OPEN, delay_ms)
        self._parts.set_lease_link(victims.leader, LinkMode.OPEN, delay_ms)
        self._undo.append(lambda: self._parts.set_kafka_link(victims.leader, LinkMode.OPEN))
        self._undo.append(lambda: self._parts.set_lease_link(victims.leader, LinkMode.OPEN))

    def _kill_node(self, victims: Victims) -> None:
        self._cluster.kill_node(victims.node)
        self._undo.append(lambda: self._cluster.start_node(victims.node))

    def _restart_node(self, victims: Victims) -> None:
        self._cluster.kill_node(victims.node)
        self._cluster.start_node(victims.node)

    def _pause_node(self, victims: Victims) -> None:
        self._pause(self._cluster.nodes[victims.node].pid)

    def _cut_node_from_kafka(self, victims: Victims) -> None:
        self._break_kafka_link(victims.node, self._chance.choice((LinkMode.CUT, LinkMode.HALF_OPEN)))

    def _slow_node(self, victims: Victims) -> None:
        """It reads of what it lost later than others read of what they gained."""
        self._parts.set_kafka_link(victims.node, LinkMode.OPEN, self._chance.choice(_DELAYS_MS))
        self._undo.append(lambda: self._parts.set_kafka_link(victims.node, LinkMode.OPEN))

    def _empty_lease_store(self, _: Victims) -> None:
        """Killed, and started without what it knew."""
        self._parts.valkey.kill()
        self._parts.valkey.erase_data()
        self._parts.valkey.start()

    def _kill_lease_store(self, _: Victims) -> None:
        self._parts.valkey.kill()
        self._undo.append(self._parts.valkey.start)

    def _pause_lease_store(self, _: Victims) -> None:
        self._parts.valkey.pause()
        self._undo.append(self._parts.valkey.resume)

    def _kill_kafka(self, _: Victims) -> None:
        self._parts.kill_kafka()
        self._undo.append(self._parts.start_kafka)

    def _pause_kafka(self, _: Victims) -> None:
        self._parts.pause_kafka()
        self._undo.append(self._parts.resume_kafka)

    def _refuse_snapshots(self, victims: Victims) -> None:
        """As a full disk would, while decisions ask for some."""
        self._cluster.real.refuse_snapshots()
        self._undo.append(self._cluster.real.take_snapshots)
        self._restart_node(victims)

    def _pause(self, pid: int) -> None:
        """Stop a process for longer than the lease lasts, and let it go on as if nothing had been."""
        os.kill(pid, signal.SIGSTOP)
        paused_s = time.monotonic()

        def go_on() -> None:
            time.sleep(max(0.0, 1.2 * _LEASE_MS / 1_000 - (time.monotonic() - paused_s)))
            os.kill(pid, signal.SIGCONT)

        self._undo.append(go_on)

    def _break_kafka_link(self, name: str, mode: LinkMode) -> None:
        self._parts.set_kafka_link(name, mode)
        self._undo.append(lambda: self._parts.set_kafka_link(name, LinkMode.OPEN))

    def _break_lease_link(self, name: str, mode: LinkMode) -> None:
        self._parts.set_lease_link(name, mode)
        self._undo.append(lambda: self._parts.set_lease_link(name, LinkMode.OPEN))

    def _signal(self, name: str, number: signal.Signals) -> None:
        process = self._cluster.real.controllers[name]
        process.send_signal(number)
        process.wait(10)

    _actions: Mapping[FaultKind, Callable[["Injector", Victims], None]] = {
        FaultKind.LEADER_KILLED: _kill_leader,
        FaultKind.LEADER_AND_NODE_KILLED: _kill_leader_and_node,
        FaultKind.LEADER_TERMINATED: _terminate_leader,
        FaultKind.LEADER_PAUSED: _pause_leader,
        FaultKind.LEADER_WITHOUT_KAFKA: _cut_leader_from_kafka,
        FaultKind.LEADER_WITHOUT_LEASE_STORE: _cut_leader_from_lease_store,
        FaultKind.LEADER_ALONE: _cut_leader_from_both,
        FaultKind.LEADER_WITHOUT_ANSWERS: _lose_answers,
        FaultKind.LEADER_SLOW: _slow_leader,
        FaultKind.STANDBY_KILLED: _kill_standby,
        FaultKind.NODE_KILLED: _kill_node,
        FaultKind.NODE_RESTARTED: _restart_node,
        FaultKind.NODE_PAUSED: _pause_node,
        FaultKind.NODE_WITHOUT_KAFKA: _cut_node_from_kafka,
        FaultKind.NODE_SLOW: _slow_node,
        FaultKind.LEASE_STORE_EMPTIED: _empty_lease_store,
        FaultKind.LEASE_STORE_KILLED: _kill_lease_store,
        FaultKind.LEASE_STORE_PAUSED: _pause_lease_store,
        FaultKind.KAFKA_KILLED: _kill_kafka,
        FaultKind.KAFKA_PAUSED: _pause_kafka,
        FaultKind.SNAPSHOTS_REFUSED: _refuse_snapshots,
    }
