"""A fleet whose heartbeats are spread over their interval, without I/O: what is fenced when nodes fall silent."""

import random
from collections.abc import Collection, Mapping
from typing import Final

from controlplane.config import HEARTBEATS, MEMBERSHIP
from controlplane.core.cluster.policy import FEATURE_LEVEL, ClusterPolicy
from controlplane.core.deciding.decide import Opening, decide, open_term
from controlplane.core.deciding.observations import Observations, observe
from controlplane.core.log.inputs import DECIDED_TOPICS, InputPayload
from controlplane.core.log.state import State
from controlplane.core.membership.events import FencingCause, NodeFenced
from controlplane.core.membership.inputs import Heartbeat, NodeJoined, Tick
from controlplane.core.membership.node import NodeRole
from controlplane.core.values.identifiers import Coordinates, Epoch, NodeId, Term, TopicPartition
from controlplane.core.values.inputs import InputRecord
from controlplane.core.values.partitioning import partition_of

_STEP_MS: Final = 50
TICK_MS: Final = 100
_PARTITIONS: Final = 2
_EARLIER_MS: Final = 3_000


class CutFleet:
    """One leader, and nodes that send a heartbeat each second, each at a time of its own.

    Attributes:
        now_ms: virtual time, 0 at first.
        fenced: the nodes fenced for silence so far, each with the time.
        names: the nodes.
    """

    def __init__(
        self,
        seed: int,
        node_count: int,
        ahead_ms: Mapping[int, int] | None = None,
    ) -> None:
        """All nodes are members, and have been heard for three seconds.

        ``ahead_ms`` says by how much the clock of a partition's broker is ahead.
        """
        self._ahead_ms = ahead_ms or {}
        self._memberships = 0
        self._last_beat_ms: dict[NodeId, int] = {}
        choose = random.Random(seed)
        self.names: tuple[NodeId, ...] = tuple(f"n{number:02}" for number in range(node_count))
        self._phase_ms = {name: choose.randrange(0, 1_000, _STEP_MS) for name in self.names}
        self._offsets = dict.fromkeys(range(_PARTITIONS), 0)
        places = [TopicPartition(HEARTBEATS, number) for number in range(_PARTITIONS)]
        places += [TopicPartition(topic, 0) for topic in DECIDED_TOPICS]
        self._observations = Observations(positions=dict.fromkeys(places, 0))
        self.now_ms = 0
        self.fenced: list[tuple[NodeId, int]] = []
        self.state = State()
        self._observe([self._record(number, Tick("c1", 0)) for number in range(_PARTITIONS)])
        opening = Opening(("log", ClusterPolicy(slot_count=8)), FEATURE_LEVEL, observed_from=dict.fromkeys(places, 0))
        self.state = open_term(self.state, self._observations, Term(1), "c1", "test", opening).state
        for name in self.names:
            self.join(name)
        self.run(_EARLIER_MS + choose.randrange(0, 1_000, _STEP_MS))

    def join(self, name: NodeId) -> None:
        """A node asks to be admitted."""
        join = NodeJoined(name, 1, NodeRole.DATA, (), "", 1, 0, "1", 0)
        self._observe([InputRecord(Coordinates(MEMBERSHIP, 0, self._memberships, 0), join, b"")])
        self._memberships += 1

    def last_beat_ms(self, name: NodeId) -> int:
        """The time at which a node has sent its last heartbeat so far."""
        return self._last_beat_ms[name]

    def run(self, elapsed_ms: int, silent: Collection[NodeId] = (), joined: Collection[NodeId] = ()) -> None:
        """Let virtual time pass; the silent nodes send no heartbeat, and those that joined since do."""
        for _ in range(0, elapsed_ms, _STEP_MS):
            self.now_ms += _STEP_MS
            records = []
            if self.now_ms % TICK_MS == 0:
                tick = Tick("c1", self.now_ms, self.state.seq, self.state.epoch)
                records += [self._record(number, tick) for number in range(_PARTITIONS)]
            for name in (*self.names, *joined):
                if self.now_ms % 1_000 == self._phase_ms.get(name, 0) and name not in silent:
                    beat = Heartbeat(name, 1, self.now_ms, Epoch(0), NodeRole.DATA)
                    records.append(self._record(partition_of(name.encode(), _PARTITIONS), beat))
                    self._last_beat_ms[name] = self.now_ms
            self._observe(records)
            self._decide()

    def _record(self, partition: int, payload: InputPayload) -> InputRecord:
        offset = self._offsets[partition]
        self._offsets[partition] += 1
        appended_ms = 10_000_000 + self.now_ms + self._ahead_ms.get(partition, 0)
        return InputRecord(Coordinates(HEARTBEATS, partition, offset, appended_ms), payload, b"")

    def _observe(self, records: list[InputRecord]) -> None:
        self._observations = observe(self._observations, records)

    def _decide(self) -> None:
        result = decide(self.state, self._observations)
        self._observations = result.observations
        if result.sealed is None:
            return
        self.state = result.sealed.state
        self.fenced += [
            (event.node_id, self.now_ms)
            for event in result.sealed.decision.events
            if isinstance(event, NodeFenced) and event.cause is FencingCause.SILENCE
        ]
