"""The audit takes every decision again: it finds nothing in what leaders decided, and everything that was changed."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from controlplane.codec.decisions import DecisionAssembler
from controlplane.config import HEARTBEATS, MEMBERSHIP
from controlplane.core.audit.log_audit import Difference, LogAudit
from controlplane.core.cluster.events import TermOpened
from controlplane.core.cluster.policy import ClusterPolicy
from controlplane.core.log.decision import CauseKind, Decision
from controlplane.core.membership.events import NodeAdmitted
from controlplane.core.values.identifiers import TopicPartition
from controlplane.errors import ControlPlaneError, LogUnavailableError
from controlplane.inspection import auditing
from controlplane.inspection.auditing import Auditor
from controlplane.inspection.source import LogSource
from controlplane.ports import PartitionEnd, PolledBatch, RawRecord
from controlplane.testing import VirtualClock
from tests.helpers.histories import History, operations, play
from tests.helpers.logs import resealed
from tests.helpers.recorded_log import DECISIONS_PARTITION, RecordedLog, RecordedReader
from tests.helpers.sources import source_at_rest, source_of
from tests.helpers.world import World

WHOLE_WINDOW_MS = 30_000


@given(st.lists(st.tuples(operations, st.sampled_from((0, 300, 2_000, 7_500, 60_000))), min_size=1, max_size=4))
@settings(max_examples=60)
def test_leaders_decide_what_the_audit_decides(histories: list[tuple[History, int]]) -> None:
    """Whenever each of them was started, and however little it had observed when it took over."""
    world = World(ClusterPolicy(slot_count=8))
    for history, look_back_ms in histories:
        # Nobody can write a weight of 0 into the topic.
        play([each for each in history if each[::2] != ("weigh", 0)], world)
        world.take_over(look_back_ms)
    log_audit, audited = RecordedLog(world).audit()
    assert [each for each in audited if each.differences or each.followed_because] == []
    assert log_audit.state == world.state


def _busy_world() -> World:
    """A cluster with joins, a death, orders, a plan that is carried out in steps, and two changes of the leader."""
    world = World(ClusterPolicy(slot_count=8, moves_in_flight=1))
    world.admit("n1", "n2", "n3")
    world.run(1_000, ("n1", "n2", "n3"))
    world.ask("pin_slots", node="n1", slots="3", reason="it has the disk")
    world.take_over(7_500)
    world.run(4_000, ("n1", "n2"))
    world.ask("create_namespace", namespace="kv")
    world.ask("drain_node", node="n2")
    world.take_over(500)
    world.admit("n4")
    world.run(2_000, ("n1", "n2", "n4"))
    return world


def _found(log: RecordedLog) -> list[Difference]:
    return [difference for each in log.audit()[1] for difference in each.differences]


def _is_read_as(value: bytes, decision: Decision) -> bool:
    try:
        return DecisionAssembler(log_id=decision.log_id, next_seq=decision.seq).add(value) == decision
    except ControlPlaneError:
        return False


BUSY = _busy_world()
BUSY_LOG = RecordedLog(BUSY)


@given(st.integers(0, len(BUSY.decisions) - 2), st.floats(0, 1, exclude_max=True), st.integers(0, 7))
@example(8, 0.537109375, 1)
@settings(max_examples=150)
def test_a_changed_byte_is_found_wherever_it_is(index: int, where: float, bit: int) -> None:
    """In every record, and the epoch of the changed decision is named; only the last one has nobody to vouch for it."""
    record, decision = BUSY_LOG.records[DECISIONS_PARTITION][index], BUSY.decisions[index]
    value = bytearray(record.value or b"")
    value[int(where * len(value))] ^= 1 << bit
    # Any byte but 0 is read as true: then the record is another one, and the decision the same.
    assume(not _is_read_as(bytes(value), decision))
    found = _found(BUSY_LOG.with_value(index, bytes(value)))
    # A decision that nobody can read does not tell its epoch: then its number is named, and the epoch before it.
    assert any(each.epoch == decision.epoch or each.seq == decision.seq for each in found), found


def test_nothing_is_found_where_nothing_was_changed() -> None:
    """The log that the changed ones are compared with, in which a lot has happened."""
    assert _found(BUSY_LOG) == []
    assert len(BUSY_LOG.records[DECISIONS_PARTITION]) == len(BUSY.decisions) > 10


def _forged(world: World, changed: Decision) -> list[Decision]:
    """The log with one decision replaced, and digests that fit."""
    return resealed([changed if each.seq == changed.seq else each for each in world.decisions])


def test_a_position_below_zero_is_named() -> None:
    """A flipped bit makes one of a position 0. Nothing was read of that partition by then, and no end was asked for."""
    first = BUSY.decisions[0]
    damaged = replace(first, positions={**first.positions, "intents[0]": -1})
    found = _found(RecordedLog(BUSY, _forged(BUSY, damaged)))
    assert first.seq in {each.seq for each in found}


class Lagging(RecordedReader):
    """A reader that asks a broker which ends every partition in its middle, until it was asked often enough."""

    def __init__(self, records: Mapping[TopicPartition, Sequence[RawRecord]], polls: int) -> None:
        """It lags for so many polls."""
        super().__init__(records)
        self._polls_left = polls

    def poll(self, max_records: int, timeout_ms: int) -> PolledBatch:
        """See the port."""
        self._polls_left -= 1
        if self._polls_left > 0:
            return PolledBatch((), {place: PartitionEnd(at, at) for place, at in self._positions.items()})
        return super().poll(max_records, timeout_ms)


class Living(RecordedReader):
    """A reader beside a cluster that goes on: each poll finds a further record in one partition."""

    def __init__(
        self, records: Mapping[TopicPartition, Sequence[RawRecord]], clock: VirtualClock, growing: TopicPartition
    ) -> None:
        """The partition repeats its last record; each poll takes 100 ms."""
        super().__init__({place: list(found) for place, found in records.items()})
        self._clock = clock
        self._growing = growing

    def assign(self, positions: Mapping[TopicPartition, int]) -> None:
        """See the port; the others come first."""
        super().assign(dict(sorted(positions.items(), key=lambda each: each[0] == self._growing)))

    def poll(self, max_records: int, timeout_ms: int) -> PolledBatch:
        """See the port; what was read to its end is told each time."""
        self._clock.advance(100)
        batch = super().poll(max_records, timeout_ms)
        ends = {place: self._end(place) for place in self._positions}
        ended = {place: end for place, end in ends.items() if self._positions[place] >= end.offset}
        records = self._records[self._growing]
        assert isinstance(records, list)
        records.append(records[-1]._replace(offset=records[-1].offset + 1))
        return PolledBatch(batch.records, ended)


class AwaitingMarkers(RecordedReader):
    """A reader whose partitions end in front of an open transaction."""

    def _end(self, place: TopicPartition) -> PartitionEnd:
        end = super()._end(place)
        return PartitionEnd(end.offset, end.offset + 1)


class Behind(RecordedReader):
    """A reader that asks one broker for records, and another one, which has more of them, for the ends."""

    def __init__(self, log: RecordedLog, place: TopicPartition, records: int) -> None:
        """The first broker has so many records of the partition."""
        super().__init__({**log.records, place: log.records[place][:records]})
        self.end_offsets = log.reader().end_offsets  # type: ignore[method-assign]


def _with_false_positions(key: str) -> RecordedLog:
    """A log in which two decisions have taken up more of a partition than it holds."""
    world = World(ClusterPolicy(slot_count=8))
    world.admit("n1", "n2")
    world.ask("create_namespace", namespace="kv")
    first = world.decisions[-2].seq
    decisions = [
        replace(each, positions={**each.positions, key: 1_000_000}) if each.seq >= first else each
        for each in world.decisions
    ]
    return RecordedLog(world, resealed(decisions))


@pytest.mark.timeout(20)
@pytest.mark.parametrize("most_read_ahead", [200_000, 60])
@pytest.mark.parametrize("key", ["membership[0]", "heartbeats[0]"])
def test_inputs_that_were_lost_are_waited_for_once_beside_a_cluster_that_goes_on(
    monkeypatch: pytest.MonkeyPatch, key: str, most_read_ahead: int
) -> None:
    """Its ticks are no news of what is missing, not even in the same partition, nor are records that are read again.

    The next decision misses the same inputs.
    """
    monkeypatch.setattr(auditing, "_MOST_READ_AHEAD", most_read_ahead)
    log = _with_false_positions(key)
    clock = VirtualClock()
    living = Living(log.records, clock, TopicPartition(HEARTBEATS, 0))
    inputs = LogSource(living, clock, timeout_ms=15_000)
    found = [
        difference
        for each in Auditor(LogAudit(log.policies), source_at_rest(log.reader()), inputs).run()
        for difference in each.differences
    ]
    assert found[0].seq == 2
    assert 15_000 <= clock.monotonic_ms() < 25_000


def test_an_end_in_front_of_an_open_transaction_is_no_end() -> None:
    """Its records may be those that are missing: an audit that went on without them would accuse the leader."""
    log = _with_false_positions("membership[0]")
    inputs = source_at_rest(AwaitingMarkers(log.records))
    auditor = Auditor(LogAudit(log.policies), source_at_rest(log.reader()), inputs)
    with pytest.raises(LogUnavailableError, match=r"membership\[0\].*where a transaction is open"):
        list(auditor.run())


@pytest.mark.timeout(20)
def test_the_end_of_a_broker_that_lags_is_no_end() -> None:
    """Kafka confirms that nothing stands at the last of the positions; but not all that it has was read."""
    log = _with_false_positions("membership[0]")
    inputs = source_at_rest(Behind(log, TopicPartition(MEMBERSHIP, 0), records=1))
    auditor = Auditor(LogAudit(log.policies), source_at_rest(log.reader()), inputs)
    with pytest.raises(LogUnavailableError, match=r"which ends at offset 1\)"):
        list(auditor.run())


def test_an_end_before_the_positions_of_a_decision_is_waited_for() -> None:
    """A broker that lags ends the inputs before what a leader has taken up: that is no difference."""
    log_audit = LogAudit(BUSY_LOG.policies)
    decisions, inputs = source_of(RecordedReader(BUSY_LOG.records)), source_of(Lagging(BUSY_LOG.records, polls=5))
    audited = list(Auditor(log_audit, decisions, inputs).run())
    assert [difference for each in audited for difference in each.differences] == []
    assert len(audited) == len(BUSY.decisions)


def test_what_a_forger_reseals_is_found_with_field_cause_and_inputs() -> None:
    """Digests that fit help nobody: the decision itself is not what the inputs lead to."""
    world = World(ClusterPolicy(slot_count=8))
    world.admit("n1", "n2")
    admitting = world.decisions[-1]
    events = tuple(
        replace(event, node=replace(event.node, weight=5)) if isinstance(event, NodeAdmitted) else event
        for event in admitting.events
    )
    found = _found(RecordedLog(world, _forged(world, replace(admitting, events=events))))
    assert {each.seq for each in found} == {admitting.seq}
    assert (found[0].epoch, found[0].term) == (admitting.epoch, admitting.term)
    assert (found[0].field, found[0].recorded, found[0].retaken) == ("events[0].node.weight", "5", "1")
    assert found[0].causes[0] == "node_joined n1: membership[0]@0"
    assert "membership[0]@0-1" in found[0].inputs


def test_what_a_leader_left_undone_is_found_at_its_next_decision() -> None:
    """Nobody need be watched all the time: a dead node that is not fenced is missing in whatever is decided next."""
    world = World(ClusterPolicy(slot_count=8))
    world.admit("n1", "n2", "n3")
    world.run(2_000, ("n1", "n2", "n3"))
    spared = world.run(4_000, ("n1", "n2"))
    assert [cause.kind for each in spared for cause in each.causes] == [CauseKind.NODE_EXPIRED]
    without = [each for each in world.decisions if each is not spared[0]]
    joined = replace(
        spared[0],
        causes=(replace(spared[0].causes[0], kind=CauseKind.POSITIONS),),
        events=(),
        certificate=None,
        epoch=without[-1].epoch,
        moves_carried_out=0,
        leader_changes_carried_out=0,
    )
    found = _found(RecordedLog(world, resealed([*without, joined])))
    assert {each.seq for each in found} == {joined.seq}
    assert any("NodeFenced" in each.retaken for each in found)


def test_after_a_changed_decision_the_audit_goes_on_from_the_true_one() -> None:
    """The next decision repeats the digest of what was committed: one forgery is one finding, not a hundred."""
    world = _busy_world()
    log = RecordedLog(world)
    position, decision = next(
        (index, each) for index, each in enumerate(world.decisions) if each.causes[0].kind is CauseKind.NODE_EXPIRED
    )
    log.records[DECISIONS_PARTITION].clear()
    for index, each in enumerate(world.decisions):
        log.append(replace(decision, causes=(), events=()) if index == position else each)
    log_audit, audited = log.audit()
    assert {difference.seq for each in audited for difference in each.differences} == {decision.seq}
    assert log_audit.state == world.state


def test_where_inputs_are_gone_decisions_are_followed_until_a_whole_window_is_there() -> None:
    """Heartbeats are kept for hours, decisions for ever: the audit says from which decision on it knows enough."""
    world = _busy_world()
    world.run(WHOLE_WINDOW_MS, ("n1", "n2", "n4"))
    cut_at = {place: offset for place, offset in world.observations.positions.items() if place.topic == HEARTBEATS}
    world.run(2_000, ("n1", "n2", "n4"))
    world.ask("create_namespace", namespace="early")
    world.run(WHOLE_WINDOW_MS, ("n1", "n2", "n4"))
    world.ask("create_namespace", namespace="late")
    log = RecordedLog(world)
    log.cut(cut_at)
    log_audit, audited = log.audit()
    assert [difference for each in audited for difference in each.differences] == []
    assert log_audit.first_retaken == world.decisions[-1].seq
    assert "no longer kept" in audited[-2].followed_because


def test_a_term_that_does_not_say_from_where_it_observed_is_followed_only() -> None:
    """A log of feature level 1 cannot be audited, and nobody may take that for a clean audit."""
    world = World(ClusterPolicy(slot_count=8))
    world.admit("n1")
    decisions = [
        replace(
            each,
            events=tuple(
                replace(event, observed_from={}) if isinstance(event, TermOpened) else event for event in each.events
            ),
        )
        for each in world.decisions
    ]
    log_audit, audited = RecordedLog(world, resealed(decisions)).audit()
    assert log_audit.retaken == 0
    assert {each.followed_because for each in audited} == {
        "the log does not say from where the leader of term 1 observed (feature level 1)"
    }


@pytest.mark.parametrize("key", ["heartbeats[0]", "membership[0]", "heartbeats[99]", "nonsense"])
def test_positions_that_the_inputs_do_not_reach_are_found(key: str) -> None:
    """The audit does not wait for inputs that will never come, and does not judge later decisions by them."""
    world = World(ClusterPolicy(slot_count=8))
    world.admit("n1", "n2")
    forged = replace(world.decisions[-1], positions={**world.decisions[-1].positions, key: 1 << 40})
    world.run(3_500, ("n1",))
    world.ask("create_namespace", namespace="kv")
    decisions = [forged if each.seq == forged.seq else each for each in world.decisions]
    found = _found(RecordedLog(world, decisions))
    assert found[0].seq == forged.seq
    assert any(key in each.field for each in found)
    # Positions never fall: the next decision, too, contradicts the forged ones, and states its own.
    assert {each.seq for each in found} <= {forged.seq, forged.seq + 1}
