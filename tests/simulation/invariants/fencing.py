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
from controlplane.core.intents.events import IntentAnswered
from controlplane.core.intents.intent import IntentKind
from controlplane.core.log.decision import Decision
from controlplane.core.log.state import State
from controlplane.core.membership.events import FencingCause, NodeAdmitted, NodeFenced
from controlplane.core.membership.inputs import Heartbeat, Tick
from controlplane.core.values.identifiers import Incarnation, NodeId, Seq
from controlplane.core.values.partitioning import partition_of
from controlplane.errors import InvalidInputError
from controlplane.ports import RawRecord
from controlplane.testing.memory_partition import StoredRecord
from tests.simulation.invariants.verdicts import Verdicts
from tests.simulation.world import World

HEARD_IN_TIME = "a node that heartbeats in time is never fenced"
TIME_PASSES = "log time passes no faster than time does, whatever brokers' clocks say"
KEEPS_ITS_PROMISE = "within a window no more nodes are fenced for silence than self-preservation promises"
DEAD_ARE_FENCED = "a node silent beyond the limit is fenced by the next decision, declared freezes excepted"

_LONGEST_GAP_MS = 200
_SLACK_MS = 250
"""A heartbeat counts from its own time, which lies up to one gap after the tick before it; and one tick of doubt."""


@dataclass
class _Partition:
    """The ticks and heartbeats of one partition, up to an offset.

    ``ahead_ms`` is what was counted and did not pass in virtual time: a broker's clock that is set forward makes a gap
    between ticks seem longer, by one gap that counts at most, and one that runs fast each gap. ``ahead_before_ms`` is
    the same at the decision before. ``added_at_ms`` is when a decision first knew of it, in virtual time; 0 for those
    that were there from the beginning. ``is_timed`` says whether log time counts it. ``ticks`` are the offset of each
    tick and the clock after it; ``dated`` are the clock at each tick that names a later decision than those before it,
    and that decision; ``observed_from`` is the offset at which the leader began by its *term opened*.
    """

    next_offset: int = 0
    clock_ms: int = 0
    last_tick_ms: int | None = None
    last_tick_at_ms: int = 0
    ahead_ms: int = 0
    ahead_before_ms: int = 0
    added_at_ms: int = 0
    is_timed: bool = False
    heard: dict[tuple[NodeId, Incarnation], int] = field(default_factory=dict)
    ticks: list[tuple[int, int]] = field(default_factory=list)
    dated: list[tuple[Seq, int]] = field(default_factory=list)
    observed_from: int = 0

    def observed_ms(self) -> int:
        """How much log time the leader has seen here: from its first tick on."""
        index = bisect_left(self.ticks, (self.observed_from, 0))
        return self.clock_ms - self.ticks[index][1] if index < len(self.ticks) else 0

    def since_ms(self, seq: Seq) -> int:
        """The time since a tick named a decision, or a later one; 0 if none has."""
        index = bisect_left(self.dated, (seq, 0))
        return self.clock_ms - self.dated[index][1] if index < len(self.dated) else 0


class _Sign(NamedTuple):
    """The last sign of life of a member: where, when in virtual time, how far ahead, whether it is its admission.

    ``seq`` is the last decision that ticks before it name.
    """

    partition: int
    at_ms: int
    ahead_ms: int
    is_admission: bool = False
    seq: Seq = Seq(0)


def living_at(before: State, decision: Decision) -> set[NodeId]:
    """The members before a decision, and those that it admits: fencings are its last step."""
    admitted = {event.node.node_id for event in decision.events if isinstance(event, NodeAdmitted)}
    return admitted | {node_id for node_id, node in before.membership.nodes.items() if node.lives}


class FencingWatch:
    """Checks each decision against the records of ``heartbeats`` before its positions.

    Attributes:
        overcounted_ms: by how much the silence for which a node was last fenced was less in virtual time, because the
            clock of a broker was set forward.
    """

    def __init__(self, world: World, verdicts: Verdicts) -> None:
        """Nothing was heard."""
        self.overcounted_ms: dict[NodeId, int] = {}
        self._world = world
        self._verdicts = verdicts
        self._topic = world.cluster.topic(HEARTBEATS)
        self._partitions: list[_Partition] = []
        self._last_sign: dict[tuple[NodeId, Incarnation], _Sign] = {}
        self._admitted_by: dict[tuple[NodeId, Incarnation], Seq] = {}
        self._observed_from: Mapping[str, int] = {}
        self._fenced_at_ms: dict[tuple[NodeId, Incarnation], int] = {}
        self._added_ms = self._was_read_until_ms = 0
        self._timed: tuple[int, int, int] | None = None

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
                home = partition_of(event.node.node_id.encode(), len(self._partitions))
                self._last_sign[member] = _Sign(
                    home, self._read_until_ms(), self._partitions[home].ahead_ms, is_admission=True
                )
                self._admitted_by[member] = decision.seq
                for partition in self._partitions:
                    partition.heard[member] = partition.clock_ms
        self._time_new_partitions()
        self._judge_log_time(before, decision)
        self._judge_promise(before, decision)
        if not after.membership.evictions_frozen:
            self._judge_living(decision, after)

    def _time_new_partitions(self) -> None:
        """Note how much of a new partition was unread at the last decision before its first ticks were read.

        The other partitions have counted that time already, and it is counted again as the new one is read.
        """
        unread_ms = [0]
        for number, partition in enumerate(self._partitions):
            if partition.clock_ms and not partition.is_timed:
                partition.is_timed = True
                if partition.added_at_ms:
                    unread_ms.append(self._was_read_until_ms - self._appended_ms(number, 0))
        self._added_ms += max(unread_ms)
        self._was_read_until_ms = self._read_until_ms()

    def _judge_log_time(self, before: State, decision: Decision) -> None:
        """No more than virtual time has passed, and what brokers' clocks added: one gap for each step, and a drift.

        A decision's log time adds the mean of what has passed in the partitions, of which another one may be ahead each
        time. So the most that one of them added counts for every decision.
        """
        self._added_ms += max(each.ahead_ms - each.ahead_before_ms for each in self._partitions)
        for partition in self._partitions:
            partition.ahead_before_ms = partition.ahead_ms
        if self._timed is not None:
            decided_at_ms, read_until_ms, added_ms = self._timed
            passed_ms = decision.decided_at_ms - decided_at_ms
            most_ms = self._read_until_ms() - read_until_ms + self._added_ms - added_ms + _SLACK_MS
            self._verdicts.judge(
                TIME_PASSES,
                passed_ms <= most_ms,
                f"decision {decision.seq} is {passed_ms} ms after the first one by log time, {most_ms} ms have passed",
            )
        elif before.decided_at_ms:
            self._timed = decision.decided_at_ms, self._read_until_ms(), self._added_ms

    def _judge_promise(self, before: State, decision: Decision) -> None:
        """Processes count once each, living ones included; an operator may override what a window allows."""
        fenced = [
            (event.node_id, event.incarnation)
            for event in decision.events
            if isinstance(event, NodeFenced) and event.cause is FencingCause.SILENCE
        ]
        if not fenced:
            return
        policy = before.cluster.policy
        since_ms = decision.decided_at_ms - policy.protection_window_ms
        self._fenced_at_ms = {each: at_ms for each, at_ms in self._fenced_at_ms.items() if at_ms >= since_ms}
        self._fenced_at_ms.update(dict.fromkeys(fenced, decision.decided_at_ms))
        lived = living_at(before, decision) | {node_id for node_id, _ in self._fenced_at_ms}
        answers = [event.kind for event in decision.events if isinstance(event, IntentAnswered)]
        if IntentKind.OVERRIDE_SELF_PRESERVATION.value in answers:
            return
        self._verdicts.judge(
            KEEPS_ITS_PROMISE,
            len(self._fenced_at_ms) <= max(1, int(policy.protected_ratio * len(lived))),
            f"decision {decision.seq} makes {sorted(self._fenced_at_ms)} fenced of {sorted(lived)}",
        )

    def _last_fencings_delay_ms(self, decision: Decision, after: State) -> int:
        """How much later than at its limit a node is due, because another one was fenced within the window."""
        since_ms = decision.decided_at_ms - after.cluster.policy.protection_window_ms
        is_first = all(at_ms < since_ms for at_ms in self._fenced_at_ms.values())
        return 0 if is_first else after.cluster.heartbeat_interval_ms

    def _judge_fencing(self, decision: Decision, event: NodeFenced, limit_ms: int) -> None:
        """The node was not heard for a limit before the last record of its partition that the decision knows."""
        number, last_ms, ahead_ms, is_admission, _ = self._last_sign[event.node_id, event.incarnation]
        last_read_ms = self._appended_ms(number, self._partitions[number].next_offset - 1)
        self.overcounted_ms[event.node_id] = self._partitions[number].ahead_ms - ahead_ms
        silence_ms = (self._read_until_ms() if is_admission else last_read_ms) - last_ms
        self._verdicts.judge(
            HEARD_IN_TIME,
            silence_ms >= limit_ms - (self._partitions[number].ahead_ms - ahead_ms),
            f"decision {decision.seq} fences {event.node_id}, heard {silence_ms} ms before",
        )

    def _judge_living(self, decision: Decision, after: State) -> None:
        """The silence of a node that was heard counts in the partition of its last heartbeat, else in the least silent.

        No silence counts before ticks name the decision that admitted the node: a commit may be long in coming. A
        partition that was added since counts from its beginning, because the node's heartbeats may have moved there. If
        they certainly have, it counts from the tick that names a decision later than that heartbeat: nothing else dates
        both partitions, and there may have been no decision for long.
        If the leader began after the last heartbeat by its *term opened*, silence counts from there: its clock was
        ahead, or a partition unavailable, when it started.
        """
        limit_ms = after.cluster.silence_limit_ms + self._last_fencings_delay_ms(decision, after)
        for node_id, node in after.membership.nodes.items():
            if not node.lives:
                continue
            member = node_id, node.incarnation
            last = self._last_sign[member]
            where = self._partitions if last.is_admission else [self._partitions[last.partition]]
            silences_ms = [p.clock_ms - p.heard[member] for p in where if member in p.heard]
            silences_ms += [p.since_ms(self._admitted_by[member]) for p in self._partitions]
            silences_ms += [p.clock_ms for p in self._partitions if p.added_at_ms > last.at_ms]
            home = partition_of(node_id.encode(), len(self._partitions))
            if not last.is_admission and home != last.partition:
                silences_ms.append(self._partitions[home].since_ms(Seq(last.seq + 1)))
            if not any(p.heard.get(member, -1) > p.clock_ms - p.observed_ms() for p in where):
                silences_ms += [p.observed_ms() for p in self._partitions]
            silence_ms = min(silences_ms)
            self._verdicts.judge(
                DEAD_ARE_FENCED,
                silence_ms <= limit_ms + _SLACK_MS,
                f"decision {decision.seq} leaves {node_id} a member after {silence_ms} ms of silence",
            )

    def _read(self, number: int, partition: _Partition, until: int) -> None:
        stored = self._world.broker.partitions(self._topic)[number].read(partition.next_offset, until)
        for record in stored.records:
            if record.offset >= until:
                break
            partition.next_offset = record.offset + 1
            raw = RawRecord(HEARTBEATS, number, record.offset, record.append_time_ms, record.key, record.value)
            try:
                payload = decode_input(HEARTBEATS, raw).payload
            except InvalidInputError:
                continue
            if isinstance(payload, Tick):
                self._take_tick(number, partition, record, payload.seq)
            elif isinstance(payload, Heartbeat):
                member = payload.node_id, payload.incarnation
                partition.heard[member] = partition.clock_ms
                named = partition.dated[-1][0] if partition.dated else Seq(0)
                sign = _Sign(number, self._appended_ms(number, record.offset), partition.ahead_ms, seq=named)
                if member not in self._last_sign or self._last_sign[member].at_ms <= sign.at_ms:
                    self._last_sign[member] = sign

    def _take_tick(self, number: int, partition: _Partition, record: StoredRecord, seq: Seq) -> None:
        at_ms = self._appended_ms(number, record.offset)
        if partition.last_tick_ms is not None:
            counted_ms = min(max(record.append_time_ms - partition.last_tick_ms, 0), _LONGEST_GAP_MS)
            partition.clock_ms += counted_ms
            partition.ahead_ms += max(counted_ms - (at_ms - partition.last_tick_at_ms), 0)
        partition.last_tick_ms, partition.last_tick_at_ms = record.append_time_ms, at_ms
        partition.ticks.append((record.offset, partition.clock_ms))
        if not partition.dated or partition.dated[-1][0] < seq:
            partition.dated.append((seq, partition.clock_ms))

    def _read_until_ms(self) -> int:
        """The virtual time at which the last record before the decision's positions was appended, in any partition."""
        return max(self._appended_ms(number, each.next_offset - 1) for number, each in enumerate(self._partitions))

    def _appended_ms(self, number: int, offset: int) -> int:
        """When a record was appended, in virtual time."""
        return self._world.appended_ms[number][offset] if offset >= 0 else 0
