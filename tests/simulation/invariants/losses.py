"""The owner of each write by the log: a node may serve a slot that it has lost for a limited time only."""

from collections.abc import Sequence
from typing import Final

from controlplane.core.log.decision import Decision
from controlplane.core.log.state import State
from controlplane.core.routing.hashing import slot_of
from controlplane.core.session.node_session import TABLE_GOOD_FOR_AT_LEAST_MS
from controlplane.core.values.identifiers import NodeId
from tests.simulation.invariants.table_readings import TableReadings
from tests.simulation.invariants.verdicts import Verdicts
from tests.simulation.world import World

STOPS_IN_TIME: Final = "no node accepts a write for longer after it lost the slot than a reading of the table is good"
_SLOWEST_CLOCK: Final = 0.9
"""Nodes count by clocks of their own."""


class LossWatch:
    """Remembers since when the slots of some keys are no longer a node's."""

    def __init__(self, world: World, verdicts: Verdicts, keys: Sequence[str], readings: TableReadings) -> None:
        """Begin without owners."""
        self._world = world
        self._verdicts = verdicts
        self._keys = keys
        self._readings = readings
        self._longest_limit_ms = TABLE_GOOD_FOR_AT_LEAST_MS
        self._owners: dict[str, NodeId | None] = dict.fromkeys(keys)
        self._lost_at_ms: dict[tuple[str, NodeId], int] = {}

    def see(self, _before: State, _decision: Decision, after: State) -> None:
        """A decision was committed."""
        # A node goes by the limit of the table that it knows, which may be an earlier one.
        self._longest_limit_ms = max(self._longest_limit_ms, after.cluster.silence_limit_ms)
        for key in self._keys:
            former = self._owners[key]
            owner = after.slots.table[slot_of(key, len(after.slots.table), after.cluster.policy.hash_function)].leader
            if owner == former:
                continue
            if former is not None:
                self._lost_at_ms[key, former] = self._world.scheduler.now_ms
            if owner is not None:
                self._lost_at_ms.pop((key, owner), None)
            self._owners[key] = owner

    def accepted(self, node_id: NodeId, key: str) -> None:
        """A node has accepted a write."""
        now_ms = self._world.scheduler.now_ms
        since_ms = self._readings.known_for_ms(node_id, self._lost_at_ms.get((key, node_id), now_ms))
        holds = since_ms <= self._longest_limit_ms / _SLOWEST_CLOCK
        self._verdicts.judge(STOPS_IN_TIME, holds, f"{node_id} accepts {key}, which is not its own for {since_ms} ms")
