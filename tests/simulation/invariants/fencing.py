"""Which nodes may be fenced and which have to be, by a count of silence that shares no code with the product's.

Whether a node was heard in time is judged by virtual time, the only clock that is never stepped. Whether it was silent
for too long is judged by the log's ticks, because a leader has no other time.
"""

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from controlplane.codec.inputs import decode_input
from controlplane.config import HEARTBEATS
from controlplane.core.cluster.events import FormerSilenceLimitEnded, TermOpened
from controlplane.core.log.decision import Decision
from controlplane.core.log.state import State
from controlplane.core.membership.events import FencingCause, NodeAdmitted, NodeFenced
from controlplane.core.membership.inputs import Heartbeat
from controlplane.core.values.identifiers import Incarnation, NodeId
from controlplane.errors import InvalidInputError
from controlplane.ports import RawRecord
from tests.simulation.clients import TICK_KEYS
from tests.simulation.invariants.verdicts import Verdicts
from tests.simulation.world import World

HEARD_IN_TIME = "a node that heartbeats in time is never fenced"
DEAD_ARE_FENCED = "a node silent beyond the limit is fenced by the next decision, declared freezes excepted"

_LONGEST_GAP_MS = 200
_SLACK_MS = 250
"""A heartbeat counts from its own time, which lies up to one gap after the tick before it; and one tick of doubt."""


@dataclass
class _Partition:
    """The ticks and heartbeats of one partition, up to an offset.

    ``ahead_ms`` is what was counted and did not pass in virtual time: a broker's clock that is set forward makes a gap
    between ticks seem longer, by one gap that counts at most. ``added_at_ms`` is when a decision first knew of
    it, in virtual time; 0 for those that were there from the beginning. ``ticks`` are the offset of each tick and the
    clock after it; ``observed_from`` is the offset at which the leader began by its *term opened*.
    """

    next_offset: int = 0
    clock_ms: int = 0
    last_tick_ms: int | None = None
    last_tick_at_ms: int = 0
    ahead_ms: int = 0
    added_at_ms: int = 0
    heard: dict[tuple[NodeId, Incarnation], int] = field(default_factory=dict)
    ticks: list[tuple[int, int]] = field(default_factory=list)
    observed_from: int = 0

    def observed_ms(self) -> int:
        """How much log time the leader has seen here: from its first tick on."""
        index = bisect_left(self.ticks, (self.observed_from, 0))
        return self.clock_ms - self.ticks[index][1] if index < len(self.ticks) else 0


class _Sign(NamedTuple):
    """The last sign of life of a member: where, when in virtual time, how far ahead, whether it is its admission."""

    partition: int
    at_ms: int
    ahead_ms: int
    is_admission: bool = False


class FencingWatch:
    """Checks each decision against the records of ``heartbeats`` before its positions."""

    def __init__(self, world: World, verdicts: Verdicts) -> None:
        """Nothing was heard."""
        self._world = world
        self._verdicts = verdicts
        self._topic = world.cluster.topic(HEARTBEATS)
        self._partitions: list[_Partition] = []
        self._last_sign: dict[tuple[NodeId, Incarnation], _Sign] = {}
        self._observed_from: Mapping[str, int] = {}

    def see(self, before: State, decision: Decision, after: State) -> None:
        """A decision was committed."""
        for event in decision.events:
            if isinstance(event, TermOpened):
                self._observed_from = event.observed_from
                return  # it takes up no input
        added_at_ms = self._world.scheduler.now_ms if self._partitions else 0
        for _ in self._world.broker.partitions(self._topic)[len(self._partitions) :]:
            self._partitions.append(_Partition(added_at_ms=added_at_ms))
        for number, partition in enumerate(self._partitions):
            self._read(number, partition, decision.positions.get(f"{HEARTBEATS}[{number}]", 0))
            partition.observed_from = self._observed_from.get(f"{HEARTBEATS}[{number}]", 0)
        for event in decision.events:
            if isinstance(event, NodeFenced) and event.cause is FencingCause.SILENCE:
                # A decision that ends a former limit goes by it already, one that lengthens the limit not yet.
                ended = [each.silence_limit_ms for each in decision.events if isinstance(each, FormerSilenceLimitEnded)]
                self._judge_fencing(decision, event, (ended or [before.cluster.silence_limit_ms])[0])
            elif isinstance(event, NodeAdmitted):
                member = event.node.node_id, event.node.incarnation
                # When it was decided, not when it was committed: an answer may be long in coming.
                self._last_sign[member] = _Sign(
                    0, self._read_until_ms(), self._partitions[0].ahead_ms, is_admission=True
                )
                for partition in self._partitions:
                    partition.heard[member] = partition.clock_ms
        if not after.membership.evictions_frozen:
            self._judge_living(decision, after)

    def _judge_fencing(self, decision: Decision, event: NodeFenced, limit_ms: int) -> None:
        """The node was not heard for a limit before the last record of its partition that the decision knows."""
        number, last_ms, ahead_ms, is_admission = self._last_sign[event.node_id, event.incarnation]
        last_read_ms = self._appended_ms(number, self._partitions[number].next_offset - 1)
        silence_ms = (self._read_until_ms() if is_admission else last_read_ms) - last_ms
        self._verdicts.judge(
            HEARD_IN_TIME,
            silence_ms >= limit_ms - (self._partitions[number].ahead_ms - ahead_ms),
            f"decision {decision.seq} fences {event.node_id}, heard {silence_ms} ms before",
        )

    def _judge_living(self, decision: Decision, after: State) -> None:
        """The silence of a node that was heard counts in the partition of its last heartbeat, else in the least silent.

        A partition that was added since counts from its beginning, because the node's heartbeats may have moved there.
        If the leader began after the last heartbeat by its *term opened*, silence counts from there: its clock was
        ahead, or a partition unavailable, when it started.
        """
        for node_id, node in after.membership.nodes.items():
            if not node.lives:
                continue
            member = node_id, node.incarnation
            last = self._last_sign[member]
            where = self._partitions if last.is_admission else [self._partitions[last.partition]]
            silences_ms = [p.clock_ms - p.heard[member] for p in where if member in p.heard]
            silences_ms += [p.clock_ms for p in self._partitions if p.added_at_ms > last.at_ms]
            if not any(p.heard.get(member, -1) > p.clock_ms - p.observed_ms() for p in where):
                silences_ms += [p.observed_ms() for p in self._partitions]
            silence_ms = min(silences_ms)
            self._verdicts.judge(
                DEAD_ARE_FENCED,
                silence_ms <= after.cluster.silence_limit_ms + _SLACK_MS,
                f"decision {decision.seq} leaves {node_id} a member after {silence_ms} ms of silence",
            )

    def _read(self, number: int, partition: _Partition, until: int) -> None:
        stored = self._world.broker.partitions(self._topic)[number].read(partition.next_offset, until)
        for record in stored.records:
            if record.offset >= until:
                break
            partition.next_offset = record.offset + 1
            if (record.key or b"").startswith(TICK_KEYS):
                at_ms = self._appended_ms(number, record.offset)
                if partition.last_tick_ms is not None:
                    counted_ms = min(max(record.append_time_ms - partition.last_tick_ms, 0), _LONGEST_GAP_MS)
                    partition.clock_ms += counted_ms
                    partition.ahead_ms += max(counted_ms - (at_ms - partition.last_tick_at_ms), 0)
                partition.last_tick_ms, partition.last_tick_at_ms = record.append_time_ms, at_ms
                partition.ticks.append((record.offset, partition.clock_ms))
                continue
            raw = RawRecord(HEARTBEATS, number, record.offset, record.append_time_ms, record.key, record.value)
            try:
                payload = decode_input(HEARTBEATS, raw).payload
            except InvalidInputError:
                continue
            if isinstance(payload, Heartbeat):
                member = payload.node_id, payload.incarnation
                partition.heard[member] = partition.clock_ms
                sign = _Sign(number, self._appended_ms(number, record.offset), partition.ahead_ms)
                if member not in self._last_sign or self._last_sign[member].at_ms <= sign.at_ms:
                    self._last_sign[member] = sign

    def _read_until_ms(self) -> int:
        """The virtual time at which the last record before the decision's positions was appended, in any partition."""
        return max(self._appended_ms(number, each.next_offset - 1) for number, each in enumerate(self._partitions))

    def _appended_ms(self, number: int, offset: int) -> int:
        """When a record was appended, in virtual time."""
        return self._world.appended_ms[number][offset] if offset >= 0 else 0
