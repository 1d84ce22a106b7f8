"""How long two processes believe at the same moment that they serve the same key, for each cause of the loss.

Services show their fencing tokens to each other, and so accept no write twice whatever their agents say. What the
agents say is looked at here: when another process accepts, a former owner has to refuse. A process that does not run
serves nothing, whatever its agent would say.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from controlplane.config import HEARTBEATS
from controlplane.core.log.decision import Decision
from controlplane.core.log.state import State
from controlplane.core.membership.events import FencingCause, NodeAdmitted, NodeFenced
from controlplane.core.routing.hashing import slot_of
from controlplane.core.session.node_session import TABLE_GOOD_FOR_AT_LEAST_MS, SessionSettings
from controlplane.core.values.identifiers import NodeId, TopicPartition
from controlplane.core.values.positions import position_key
from controlplane.node import Access, NodeAgent
from tests.simulation.invariants.bounds import BoundsWatch
from tests.simulation.invariants.fencing import FencingWatch
from tests.simulation.invariants.table_readings import TableReadings
from tests.simulation.invariants.verdicts import Verdicts
from tests.simulation.service import KEYS
from tests.simulation.world import World

_SLOWEST_CLOCK: Final = 0.9
_LEAST_MARGIN_DIVISOR: Final = 9


class Cause(Enum):
    """Why a process is no longer the owner; the value is the invariant."""

    SILENCE = "a node that is fenced for silence has stopped before its heirs begin"
    MOVED = "a node that is heard after it was decided to take its slot stops when its reading of the table ends"
    REPLACED = "a process that another one of its node has replaced stops when its reading of the table ends"


class _Loss:
    """A key that a node has lost."""

    def __init__(self, at_ms: int, cause: Cause, allowed_ms: int) -> None:
        self.at_ms, self.cause, self.allowed_ms = at_ms, cause, allowed_ms


@dataclass
class OverlapWatch:
    """Looks at intervals, and after each write; knows from the log who lost what and why."""

    world: World
    verdicts: Verdicts
    fencing: FencingWatch
    bounds: BoundsWatch
    readings: TableReadings
    _owners: dict[str, NodeId | None] = field(default_factory=dict)
    _lost: dict[tuple[str, NodeId], _Loss] = field(default_factory=dict)
    _admitted_at_ms: dict[NodeId, int] = field(default_factory=dict)
    _longest_limit_ms: int = 0

    def see(self, before: State, decision: Decision, after: State) -> None:
        """A decision was committed."""
        now_ms = self.world.scheduler.now_ms
        self._longest_limit_ms = max(self._longest_limit_ms, before.cluster.silence_limit_ms)
        silent = {
            event.node_id
            for event in decision.events
            if isinstance(event, NodeFenced) and event.cause is FencingCause.SILENCE
        }
        for event in decision.events:
            if isinstance(event, NodeAdmitted):
                self._admitted_at_ms[event.node.node_id] = now_ms
        table, hash_function = after.slots.table, after.cluster.policy.hash_function
        for key in KEYS:
            former, owner = (
                self._owners.get(key),
                table[slot_of(key, len(table), hash_function)].leader if table else None,
            )
            if former is not None and owner != former:
                self._lost[key, former] = self._loss(former, decision, is_silent=former in silent)
            if owner is not None:
                self._lost.pop((key, owner), None)
            self._owners[key] = owner

    def _loss(self, node_id: NodeId, decision: Decision, *, is_silent: bool) -> _Loss:
        now_ms = self.world.scheduler.now_ms
        if is_silent:
            number, offset = self.bounds.last_beat(node_id)
            place = position_key(TopicPartition(HEARTBEATS, number))
            if offset < decision.positions.get(place, 0):
                return _Loss(now_ms, Cause.SILENCE, self.fencing.overcounted_ms.get(node_id, 0))
        return _Loss(now_ms, Cause.MOVED, self._reading_is_good_for_ms)

    @property
    def _reading_is_good_for_ms(self) -> int:
        """The longest time for which a reading of the table is valid, by a slow clock."""
        limit_ms = self._longest_limit_ms
        # Not by `core.session.silence`: a bug in its margin must not become a longer time that is allowed here.
        good_for_ms = limit_ms - max(SessionSettings().self_fencing_margin_ms, -(-limit_ms // _LEAST_MARGIN_DIVISOR))
        return int(max(good_for_ms, TABLE_GOOD_FOR_AT_LEAST_MS) / _SLOWEST_CLOCK)

    def look(self) -> None:
        """Compare what the processes believe of the keys that have changed hands."""
        now_ms = self.world.scheduler.now_ms
        running = list(self._running())
        believers: dict[str, list[str]] = {}
        for (key, node_id), loss in self._lost.items():
            if key not in believers:
                believers[key] = [place for place, _, agent in running if _accepts(agent, key)]
            mine = [place for place, of, _ in running if of == node_id and place in believers[key]]
            is_silent = loss.cause is Cause.SILENCE
            passed_ms = now_ms - loss.at_ms if is_silent else self.readings.known_for_ms(node_id, loss.at_ms)
            self.verdicts.judge(
                loss.cause.value,
                not mine or len(believers[key]) == 1 or passed_ms <= loss.allowed_ms,
                f"{mine} would accept {key} {now_ms - loss.at_ms} ms after the loss, and so would {believers[key]}",
            )
        self._judge_twins(now_ms)

    def _judge_twins(self, now_ms: int) -> None:
        """Two processes of one node: the one that is not in the table has read it in time."""
        for twin in self.world.twins:
            name = twin.removesuffix("-again")
            both = [agent for _, node_id, agent in self._running() if node_id == name]
            keys = [key for key in KEYS if len(both) > 1 and all(_accepts(agent, key) for agent in both)]
            since_ms = self.readings.known_for_ms(name, self._admitted_at_ms.get(name, now_ms))
            self.verdicts.judge(
                Cause.REPLACED.value,
                not keys or since_ms <= self._reading_is_good_for_ms,
                f"two processes of {name} would accept {keys} {since_ms} ms after one was admitted",
            )

    def _running(self) -> Iterator[tuple[str, NodeId, NodeAgent]]:
        for agents in (self.world.agents, self.world.twins):
            for place, agent in agents.items():
                if self.world.machines[place].runs:
                    yield place, place.removesuffix("-again"), agent


def _accepts(agent: NodeAgent, key: str) -> bool:
    return agent.slot_of(key).access is Access.ACCEPT
