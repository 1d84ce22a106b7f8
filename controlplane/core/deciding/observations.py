"""Observations: what a reader has read of the inputs so far. They are soft state, which each reader builds for itself.

Observations are never part of the decision log. ``observe`` is a fold that commutes across partitions. Its result
depends only on the last ``WINDOW_MS`` of each partition's log time (see :mod:`controlplane.core.membership.log_time`).
A reader that began that long ago therefore observes the same as one that has run for weeks, and an audit need not know
when the leader was started. A reader that began later knows less, so a leader records in the log where it began.
"""

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from controlplane.config import HEARTBEATS
from controlplane.core.membership.inputs import Heartbeat
from controlplane.core.membership.log_time import (
    FRESH_PARTITION_MS,
    NOTHING_READ,
    SILENCE_MEMORY_MS,
    TICK_VALIDITY_MS,
    UNDATED_OFFSET,
    WINDOW_MS,
    Heard,
    PartitionView,
    observe_partition,
)
from controlplane.core.operations.operation_context import OperationContext
from controlplane.core.slots.policy_contract import SlotPolicies
from controlplane.core.slots.reports import SlotReport, statuses_in
from controlplane.core.slots.table import Slot
from controlplane.core.values.identifiers import ControllerId, Epoch, Incarnation, NodeId, Seq, TopicPartition
from controlplane.core.values.inputs import InputRecord
from controlplane.core.values.partitioning import partition_of
from controlplane.core.values.positions import position_key

_FIRST_HEARTBEAT_PARTITION: Final = TopicPartition(HEARTBEATS, 0)


class PolicyAsked(NamedTuple):
    """A note that the slot policy has no other answer in this state, whatever nodes report.

    It only saves work: without the note the policy is asked again, and answers the same.

    Attributes:
        seq: seq of the decision after which the policy was asked and changed nothing.
        refusal: why the policy cannot make a table, as a sentence; empty if it wants no change.
    """

    seq: Seq
    refusal: str


class WithoutEffect(NamedTuple):
    """Inputs that a leader has taken up without a decision, because they changed nothing.

    No decision has passed them. If the next one is not this leader's, because it was deposed and did not know it yet,
    they are pending again: they may have an effect on what another leader has decided.

    Attributes:
        seq: seq of the decision after which they were taken up.
        records: the latest of them, in order per topic.
    """

    seq: Seq
    records: tuple[InputRecord, ...]


class LastDecision(NamedTuple):
    """Where the clocks of the partitions stood at the positions of a decision.

    Attributes:
        seq: seq of the decision.
        epoch: table epoch of the decision.
        new_epoch: the least table epoch that is known only from this decision on: its own if it is known to have
            changed rows, else the one after it.
        clocks_ms: the clock by partition of ``heartbeats``; those that are not read up to the position are missing.
    """

    seq: Seq
    epoch: Epoch
    new_epoch: Epoch
    clocks_ms: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class Observations:
    """Everything observed so far.

    Attributes:
        partitions: the view of each ``heartbeats`` partition.
        pending: membership records and intents that no decision has taken up yet, in order per topic.
        unknown_senders: heartbeats of nodes that are not members, each waiting for the join of its node.
        positions: next offset per input partition.
        policy_asked: see :class:`PolicyAsked`.
        last_decision: see :class:`LastDecision`; from feature level 3 on.
        without_effect: see :class:`WithoutEffect`.
    """

    partitions: Mapping[int, PartitionView] = field(default_factory=dict)
    pending: tuple[InputRecord, ...] = ()
    unknown_senders: tuple[InputRecord, ...] = ()
    positions: Mapping[TopicPartition, int] = field(default_factory=dict)
    policy_asked: PolicyAsked | None = None
    last_decision: LastDecision | None = None
    without_effect: WithoutEffect | None = None

    @property
    def now_ms(self) -> int | None:
        """Log time: the greatest append time of the partitions' last ticks; None before the first tick.

        It goes back when the broker's clock does. The log time of decisions does not.
        """
        ticks = [view.last_tick_ms for view in self.partitions.values() if view.last_tick_ms is not None]
        return max(ticks, default=None)

    @property
    def dating_offset(self) -> int:
        """The next offset of ``heartbeats`` partition 0: the time after a decision made now counts from there.

        :data:`UNDATED_OFFSET` while that partition is not read, or has no ticks. Otherwise time that passed before the
        decision would be counted as soon as the partition is read again.
        """
        first, now_ms = self.partitions.get(0, NOTHING_READ), self.now_ms
        if now_ms is None or first.last_tick_ms is None or now_ms - first.last_tick_ms > FRESH_PARTITION_MS:
            return UNDATED_OFFSET
        return self.positions[_FIRST_HEARTBEAT_PARTITION]

    def home_of(self, node_id: NodeId) -> PartitionView:
        """The partition that Kafka's default partitioner chooses for a node, to which its heartbeats belong."""
        known = sum(place.topic == HEARTBEATS for place in self.positions)
        return self.partitions.get(partition_of(node_id.encode(), max(known, 1)), NOTHING_READ)

    def heard_within(self, limit_ms: int) -> set[tuple[NodeId, Incarnation]]:
        """The incarnations whose silence is at most the limit. The cost is proportional to the incarnations heard."""
        return {
            member
            for view in self.partitions.values()
            for member, heard in view.heard.items()
            if view.clock_ms - heard.clock_ms <= limit_ms
        }

    def silence_ms(self, node_id: NodeId, incarnation: Incarnation) -> int:
        """The log time for which an incarnation has been silent: the least over the partitions, at most the memory."""
        return min(
            (
                min(view.clock_ms - view.heard[node_id, incarnation].clock_ms, SILENCE_MEMORY_MS)
                for view in self.partitions.values()
                if (node_id, incarnation) in view.heard
            ),
            default=SILENCE_MEMORY_MS,
        )

    def passed_ms(self, since_offset: int) -> int:
        """The log time of partition 0 since an offset, or since this reader began if later; at most the memory."""
        first = self.partitions.get(0)
        return 0 if first is None else min(first.clock_ms - first.clock_at_offset(since_offset), SILENCE_MEMORY_MS)

    def membership_ms(
        self, node_id: NodeId, incarnation: Incarnation, admitted_at_offset: int, changed_at_ms: int
    ) -> int:
        """As :meth:`time_to_be_heard_ms`, below feature level 3: admissions are dated by append times.

        It counts from the admission, or from where this reader began if that was later. Only time counts that has
        passed both in partition 0 and in the partition of the member's heartbeats, because either may be read late or
        be without ticks. If the member was heard, that is the partition in which it was heard; otherwise it may be any
        partition.

        Time that has passed in the member's own partition since its status changed always counts, because partition 0
        may be the one without ticks. The status does not change before the admission. For an undated admission nothing
        else counts. If a broker's clock was set back, the result may be too small, but never too great.

        After partitions were added, the member's key may belong to another partition than the one in which the member
        was heard, and its heartbeats move there without notice. Nothing counts until a tick of that partition was read,
        and then no more than has passed there since the member was heard.
        """
        known = [place.partition for place in self.positions if place.topic == HEARTBEATS]
        home = self.home_of(node_id)
        if home.last_tick_ms is None:
            return 0
        member = node_id, incarnation
        heard_in = [view for view in self.partitions.values() if member in view.heard]
        places = heard_in or [self.partitions.get(partition, NOTHING_READ) for partition in known]
        passed_ms = self._since_admission_ms(places, admitted_at_offset)
        if heard_in or admitted_at_offset == UNDATED_OFFSET:
            since_change_ms = min(view.clock_ms - view.latest_clock_at_time(changed_at_ms) for view in places)
            passed_ms = max(passed_ms, since_change_ms)
        if heard_in:
            last_heard_in = max(heard_in, key=lambda view: view.heard[member].append_time_ms)
            if last_heard_in is not home:
                since_ms = home.clock_ms - home.clock_at_time(last_heard_in.heard[member].append_time_ms)
                passed_ms = min(passed_ms, since_ms)
        return min(passed_ms, SILENCE_MEMORY_MS)

    def time_to_be_heard_ms(self, node_id: NodeId, incarnation: Incarnation, admitted_by: Seq) -> int:
        """The log time that a member has had to send a heartbeat, at most the memory: the limit of its silence.

        It counts in the member's home partition, from the first tick there that names the decision which admitted it,
        or a later one; from where this reader began if that was later. No append times are compared, because each
        partition may have the clock of another broker.

        A member that was last heard in another partition may have moved home since, after partitions were added. Then
        it counts from the first tick at home that names a later decision than all ticks before that heartbeat.
        """
        home = self.home_of(node_id)
        elsewhere = self._heard_elsewhere(node_id, incarnation)
        since = admitted_by if elsewhere is None else max(admitted_by, Seq(elsewhere.seq + 1))
        return min(home.since_seq_ms(since), SILENCE_MEMORY_MS)

    def waits_for_decision(self, node_id: NodeId, incarnation: Incarnation, seq: Seq) -> bool:
        """Whether a member's silence cannot be counted at home before there is a decision later than ``seq``."""
        elsewhere = self._heard_elsewhere(node_id, incarnation)
        return elsewhere is not None and elsewhere.seq >= seq

    def _heard_elsewhere(self, node_id: NodeId, incarnation: Incarnation) -> Heard | None:
        """A member's latest heartbeat in another partition than its home, unless it was certainly heard there since."""
        home, member = self.home_of(node_id), (node_id, incarnation)
        heard = [view.heard[member] for view in self.partitions.values() if member in view.heard and view is not home]
        latest = max(heard, key=lambda each: each.seq, default=None)
        at_home = home.heard.get(member)
        return None if latest is not None and at_home is not None and at_home.seq > latest.seq else latest

    def _since_admission_ms(self, places: list[PartitionView], admitted_at_offset: int) -> int:
        """The log time since the admission: the least of that in partition 0 and that in each of these places."""
        admitted_at_ms = self.partitions.get(0, NOTHING_READ).time_at_offset(admitted_at_offset)
        if admitted_at_offset == UNDATED_OFFSET or admitted_at_ms is None:
            return 0
        since_ms = min((view.clock_ms - view.clock_at_time(admitted_at_ms) for view in places), default=0)
        return min(self.passed_ms(admitted_at_offset), since_ms)

    def carried_epoch(self, node_id: NodeId, incarnation: Incarnation, within_ms: int) -> Epoch | None:
        """The greatest table epoch in an incarnation's latest heartbeats by partition; None if it was not heard since.

        Heartbeats older than ``within_ms`` of log time do not count.
        """
        member = node_id, incarnation
        views = [view for view in self.partitions.values() if member in view.heard]
        recent = [view.heard[member] for view in views if view.clock_ms - view.heard[member].clock_ms < within_ms]
        return max((heard.heartbeat.table_epoch for heard in recent), default=None)

    @property
    def ticking(self) -> frozenset[ControllerId]:
        """The controllers that have ticked within :data:`TICK_VALIDITY_MS`."""
        return frozenset(
            controller_id
            for view in self.partitions.values()
            for controller_id, clock_ms in view.ticked.items()
            if view.clock_ms - clock_ms < TICK_VALIDITY_MS
        )

    def window_is_whole(self, began_at: Mapping[TopicPartition, int]) -> bool:
        """Whether a reader that began at these offsets of ``heartbeats`` observes all that an older one does."""
        return all(
            (view := self.partitions.get(place.partition)) is not None
            and view.clock_ms - view.clock_at_offset(offset) >= WINDOW_MS
            for place, offset in began_at.items()
            if place.topic == HEARTBEATS
        )

    def slot_reports(
        self, members: Iterable[tuple[NodeId, Incarnation]], slots: Sequence[Slot], *, by_ticks: bool
    ) -> dict[NodeId, SlotReport]:
        """The latest slot report of each of these members; a member that was not heard within the memory is missing.

        Args:
            members: the members.
            slots: the table, from which leaders and leader epochs of grouped slots follow.
            by_ticks: of a node that was heard in two partitions, whether the later heartbeat is found by what ticks
                name, from feature level 3 on; otherwise by append times.
        """
        reports = {}
        for node_id, incarnation in members:
            heard = self._latest_heard(node_id, incarnation, by_ticks=by_ticks)
            if heard is not None:
                view, latest = heard
                beat, age_ms = latest.heartbeat, view.clock_ms - latest.clock_ms
                statuses = beat.slot_statuses
                if beat.slot_groups:
                    in_groups = statuses_in(beat.slot_groups, node_id, beat.table_epoch, slots)
                    statuses = tuple(sorted((*statuses, *in_groups)))
                reports[node_id] = SlotReport(statuses, beat.table_epoch, beat.sent_at_ms, age_ms)
        return reports

    def latest_heartbeat(self, node_id: NodeId, incarnation: Incarnation) -> Heartbeat | None:
        """An incarnation's latest heartbeat, by what ticks name; None if it was not heard within the memory."""
        heard = self._latest_heard(node_id, incarnation, by_ticks=True)
        return None if heard is None else heard[1].heartbeat

    def _latest_heard(
        self, node_id: NodeId, incarnation: Incarnation, *, by_ticks: bool
    ) -> tuple[PartitionView, Heard] | None:
        """The newest heartbeat of the incarnation over all partitions, with the view of its partition.

        By ticks, it is the one behind the latest decision, then the one with the latest table, then the youngest by its
        own partition's clock.
        """
        heard = [
            (view, view.heard[node_id, incarnation])
            for view in self.partitions.values()
            if (node_id, incarnation) in view.heard
            and view.clock_ms - view.heard[node_id, incarnation].clock_ms < SILENCE_MEMORY_MS
        ]
        if not by_ticks:
            return max(heard, key=lambda each: each[1].append_time_ms, default=None)
        return max(
            heard,
            key=lambda each: (each[1].seq, each[1].heartbeat.table_epoch, each[1].clock_ms - each[0].clock_ms),
            default=None,
        )


def observe(observations: Observations, records: Iterable[InputRecord]) -> Observations:
    """The observations with a batch of inputs, in order per partition. Records that were already seen are skipped.

    The cost is that of the batch plus one copy of each touched partition's map of nodes.
    """
    positions = dict(observations.positions)
    by_partition: dict[int, list[InputRecord]] = {}
    pending = []
    for record in records:
        topic, partition, offset, _ = record.coordinates
        place = TopicPartition(topic, partition)
        if offset < positions.get(place, 0):
            continue
        positions[place] = offset + 1
        if record.payload is None:
            continue
        if topic == HEARTBEATS:
            by_partition.setdefault(partition, []).append(record)
        else:
            pending.append(record)
    partitions = dict(observations.partitions)
    for partition, batch in by_partition.items():
        partitions[partition] = observe_partition(partitions.get(partition, PartitionView()), batch)
    return replace(
        observations,
        partitions=partitions,
        pending=(*observations.pending, *pending) if pending else observations.pending,
        positions=positions,
    )


def skip_to_recorded(
    observations: Observations, recorded: Mapping[str, int], answering: AbstractSet[TopicPartition]
) -> tuple[Observations, Mapping[TopicPartition, int]]:
    """Start again at the recorded positions in ``heartbeats`` partitions that are behind them and do not answer.

    What was read of these partitions before is dropped. A leader that knew less than its log says it did could not be
    audited; a leader that began later can be.

    Args:
        observations: what was read.
        recorded: the positions of the state.
        answering: the partitions that Kafka answers for.

    Returns:
        The remaining observations, and the partitions that start again with the offsets to read from.
    """
    behind = {
        place: recorded[key]
        for place, offset in observations.positions.items()
        if place.topic == HEARTBEATS and place not in answering and offset < recorded.get(key := position_key(place), 0)
    }
    views = observations.partitions
    left = {number: view for number, view in views.items() if TopicPartition(HEARTBEATS, number) not in behind}
    positions = {**observations.positions, **behind}
    return replace(observations, partitions=left, positions=positions, last_decision=None), behind


def read_to(observations: Observations, gates: Mapping[TopicPartition, int]) -> Observations:
    """The observations of a reader that has read partitions of membership records or intents only up to these offsets.

    Returns:
        The same object if nothing is pending there and no position is beyond.
    """
    if all(observations.positions.get(place, 0) <= offset for place, offset in gates.items()):
        return observations
    positions = {place: min(offset, gates.get(place, offset)) for place, offset in observations.positions.items()}
    pending = tuple(record for record in observations.pending if not _is_behind(record, gates))
    return replace(observations, pending=pending, positions=positions)


def with_rest(decided: Observations, whole: Observations, gates: Mapping[TopicPartition, int]) -> Observations:
    """What deciding on :func:`read_to` has left, together with what that left out of the whole."""
    if not gates:
        return decided
    rest = tuple(record for record in whole.pending if _is_behind(record, gates))
    return replace(decided, pending=(*decided.pending, *rest), positions=whole.positions)


def _is_behind(record: InputRecord, gates: Mapping[TopicPartition, int]) -> bool:
    topic, partition, offset, _ = record.coordinates
    return offset >= gates.get(TopicPartition(topic, partition), offset + 1)


def operation_context(observations: Observations, policies: SlotPolicies, now_ms: int) -> OperationContext:
    """The context of operations for these observations."""
    return OperationContext(policies, now_ms, observations.dating_offset, observations.ticking)
