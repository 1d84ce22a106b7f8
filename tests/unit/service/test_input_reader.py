"""Inputs that nobody takes up: nodes repeat their joins for hours while there is no leader."""

from dataclasses import replace

import pytest
from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs

from controlplane.codec.inputs import encode_input
from controlplane.config import HEARTBEATS, INTENTS, MEMBERSHIP, ClusterConfig
from controlplane.core.cluster.policy import ClusterPolicy
from controlplane.core.deciding.decide import DecideResult, Opening, open_term
from controlplane.core.log.inputs import InputPayload
from controlplane.core.log.state import State
from controlplane.core.membership.inputs import Heartbeat, NodeJoined, Tick
from controlplane.core.membership.node import NodeRole
from controlplane.core.values.identifiers import Epoch, Term, TopicPartition
from controlplane.core.values.positions import position_key
from controlplane.errors import LogUnavailableError
from controlplane.ports import OutgoingRecord
from controlplane.service import input_reader as module
from controlplane.service import look_back, waiting_refusals
from controlplane.service.input_reader import InputReader
from controlplane.service.metrics import ControllerMetrics
from controlplane.testing import MemoryBroker, MemoryEventWriter, MemoryLogReader, VirtualClock

CLUSTER = ClusterConfig("test")
JOINS = TopicPartition(MEMBERSHIP, 0)


class Standby:
    """An input reader over an in-memory Kafka in which nobody decides unless the test says so."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.broker = MemoryBroker(self.clock)
        for topic in (HEARTBEATS, MEMBERSHIP, INTENTS):
            self.broker.create_topic(CLUSTER.topic(topic))
        self.writer = MemoryEventWriter(CLUSTER, self.broker)
        self.input_reader = InputReader(
            lambda: MemoryLogReader(CLUSTER, self.broker), self.clock, ControllerMetrics(CollectorRegistry())
        )
        self.state = State()
        self.input_reader.start(self.state, {TopicPartition(HEARTBEATS, 0): self.clock.wall_ms()})

    def append(self, topic: str, payload: InputPayload) -> None:
        """One input, of the node or of a controller."""
        key = b"c1" if isinstance(payload, Tick) else b"n1"
        self.writer.send(OutgoingRecord(topic, key, encode_input(payload)))

    def join(self) -> None:
        """The same node asks to be admitted, again."""
        self.append(MEMBERSHIP, NodeJoined("n1", 1, NodeRole.DATA, (), "", 1, 0, "1", self.clock.wall_ms()))

    def look(self) -> None:
        """A few turns of the loop, each with a tick before it."""
        for _ in range(4):
            self.clock.advance(100)
            self.append(HEARTBEATS, Tick("c1", 0))
            self.input_reader.poll(0)
            self.input_reader.catch_up_with(self.state)

    def pending(self) -> list[int]:
        """The offsets of what waits."""
        return [record.coordinates.offset for record in self.input_reader.observations.pending]

    def take_up(self) -> None:
        """Somebody decides about everything that is read."""
        upto = self.input_reader.observations.positions[JOINS]
        self.state = replace(self.state, positions={position_key(JOINS): upto})


def test_repeated_joins_stay_in_the_log_while_very_many_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time is read on meanwhile, and when a leader takes them up, the next come: each once, in order."""
    monkeypatch.setattr(module, "_MOST_PENDING", 10)
    monkeypatch.setattr(module, "_MAX_RECORDS", 8)
    standby = Standby()
    for _ in range(60):
        standby.join()
    seen: list[int] = []
    for _ in range(10):
        before_ms = standby.input_reader.observations.now_ms or 0
        standby.look()
        assert len(standby.pending()) < 10 + 8
        assert (standby.input_reader.observations.now_ms or 0) > before_ms
        seen += standby.pending()
        standby.take_up()
    assert seen == list(range(60))
    standby.look()
    assert standby.pending() == []
    standby.join()
    standby.look()
    assert standby.pending() == [60]


def test_of_the_heartbeats_that_wait_for_a_join_for_long_only_the_newest_does() -> None:
    """The join is there, and nobody takes it up; what the node says each second would fill the memory."""
    standby = Standby()
    standby.join()
    for number in range(100):
        standby.append(HEARTBEATS, Heartbeat("n1", 1, number, Epoch(0), NodeRole.DATA))
        standby.look()
    strangers = standby.input_reader.observations.unknown_senders
    limit_ms = standby.state.cluster.silence_limit_ms
    assert len(strangers) <= limit_ms // 400 + 2
    assert standby.input_reader.refusals.take() == []
    assert strangers[-1].payload == Heartbeat("n1", 1, 99, Epoch(0), NodeRole.DATA)


def test_what_a_decision_takes_up_stays_pending_until_it_is_committed() -> None:
    """A commit may be aborted: the next look has to find the join again, and the look after the commit must not."""
    standby = Standby()
    standby.join()
    standby.look()
    state = standby.state
    observations = standby.input_reader.observations
    sealed = open_term(state, observations, Term(1), "c1", "1", Opening(new_log=("log", ClusterPolicy())))
    taken_up = replace(observations, pending=())
    standby.input_reader.decided(DecideResult(sealed, (), taken_up), {})
    assert standby.pending() == [0]
    standby.input_reader.decided(DecideResult(None, (), taken_up), {})
    assert standby.input_reader.observations is taken_up


def test_a_partition_that_stays_behind_is_no_progress_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ticks come in all other partitions. A controller that waited for all of them would hold the lease meanwhile."""
    standby = Standby()
    standby.broker.add_partitions(CLUSTER.topic(HEARTBEATS), 2)
    standby.input_reader.take_in_partitions()
    began_ms = standby.clock.monotonic_ms()
    poll = standby.input_reader.poll

    def poll_beside_ticks(timeout_ms: int) -> int:
        standby.clock.advance(100)
        standby.writer.send(OutgoingRecord(HEARTBEATS, b"c1", encode_input(Tick("c1", 0)), 0))
        return poll(timeout_ms)

    monkeypatch.setattr(standby.input_reader, "poll", poll_beside_ticks)
    with pytest.raises(LogUnavailableError, match="was not reached"):
        standby.input_reader.catch_up({TopicPartition(HEARTBEATS, 1): 5})
    assert standby.clock.monotonic_ms() - began_ms < 10_000


def test_refused_records_do_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """A foreign writer goes on for ever, and a standby keeps what it refused until a leader has written it."""
    monkeypatch.setattr(waiting_refusals, "_REFUSED_BYTES_KEPT", 200_000)
    standby = Standby()
    for number in range(8):
        standby.writer.send(OutgoingRecord(MEMBERSHIP, b"foreign", b"%d" % number * 500_000, 0))
        standby.input_reader.poll(0)
    standby.input_reader.catch_up_with(standby.state)
    refusals = standby.input_reader.refusals.take()
    assert [len(refusal.raw) for refusal in refusals] == [0] * 5 + [64 * 1024] * 3
    assert {refusal.raw_length_bytes for refusal in refusals} == {500_000}


def test_a_leader_that_reads_very_many_refused_inputs_at_once_loses_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its next decision passes them all, so each needs its dead letter."""
    monkeypatch.setattr(waiting_refusals, "_REFUSALS_KEPT", 10)
    monkeypatch.setattr(module, "_MAX_RECORDS", 8)
    standby = Standby()
    standby.broker.add_partitions(CLUSTER.topic(HEARTBEATS), 2)
    for _ in range(30):
        standby.writer.send(OutgoingRecord(HEARTBEATS, b"n1", b"garbage", 1))
    standby.input_reader.take_in_partitions()
    standby.input_reader.catch_up_with(standby.state)
    assert len(standby.input_reader.refusals.take()) == 30


def test_a_standby_keeps_the_newest_refusals_and_tells_how_many_it_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    """A foreign writer goes on for ever, and the log gets one line in ten seconds."""
    monkeypatch.setattr(waiting_refusals, "_REFUSALS_KEPT", 10)
    standby = Standby()
    with capture_logs() as lines:
        for _ in range(30):
            standby.writer.send(OutgoingRecord(MEMBERSHIP, b"foreign", b"garbage", 0))
            standby.clock.advance(500)
            standby.input_reader.poll(0)
            standby.input_reader.catch_up_with(standby.state)
            standby.input_reader.refusals.drop_oldest()
    assert [line["dropped"] for line in lines] == [1]
    refusals = standby.input_reader.refusals.take()
    assert [refusal.coordinates.offset for refusal in refusals] == list(range(20, 30))


def begun_at(standby: Standby, times_ms: dict[int, int]) -> dict[int, int]:
    """Where another reader begins in each partition of ``heartbeats``, by these times of the brokers."""
    reader = InputReader(
        lambda: MemoryLogReader(CLUSTER, standby.broker), standby.clock, ControllerMetrics(CollectorRegistry())
    )
    reader.start(State(), {TopicPartition(HEARTBEATS, number): time_ms for number, time_ms in times_ms.items()})
    return {place.partition: at for place, at in reader.observed_from.items() if place.topic == HEARTBEATS}


def tick_for(standby: Standby, seconds: int, partitions: int = 1) -> None:
    """One tick a second in each partition."""
    for _ in range(seconds):
        for number in range(partitions):
            standby.writer.send(OutgoingRecord(HEARTBEATS, b"c1", encode_input(Tick("c1", 0)), number))
        standby.clock.advance(1_000)


def test_where_to_begin_depends_on_the_brokers_time_alone() -> None:
    """This machine is an hour ahead: by its own clock it would begin at the end, and hear of no silence before it."""
    standby = Standby()
    tick_for(standby, 20)
    now_ms = standby.clock.wall_ms()
    window_s = 3 * standby.state.cluster.silence_limit_ms // 1_000
    standby.clock.step_wall(3_600_000)
    assert 20 - window_s - 2 <= begun_at(standby, {0: now_ms})[0] <= 20 - window_s
    standby.clock.step_wall(-7_200_000)
    assert 20 - window_s - 2 <= begun_at(standby, {0: now_ms})[0] <= 20 - window_s


def test_each_partition_begins_by_the_clock_of_its_own_broker() -> None:
    """By the clock of the one that is behind, another would be read from its beginning; by the other, from its end."""
    standby = Standby()
    standby.broker.add_partitions(CLUSTER.topic(HEARTBEATS), 2)
    tick_for(standby, 20, partitions=2)
    now_ms = standby.clock.wall_ms()
    begun = begun_at(standby, {0: now_ms, 1: now_ms - 5_000})
    assert begun[0] - begun[1] == 5


def test_a_partition_whose_broker_has_not_answered_begins_by_the_earliest_clock() -> None:
    """Beginning too early costs reading; beginning too late hides a silence."""
    standby = Standby()
    standby.broker.add_partitions(CLUSTER.topic(HEARTBEATS), 3)
    tick_for(standby, 20, partitions=3)
    now_ms = standby.clock.wall_ms()
    begun = begun_at(standby, {0: now_ms, 1: now_ms - 5_000})
    assert begun[2] == begun[1]


def test_looking_back_is_bounded_and_says_what_it_leaves_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """A foreign writer, or a broker's clock that was set back, can put very many records into a window."""
    monkeypatch.setattr(look_back, "LOOK_BACK_RECORDS", 3)
    standby = Standby()
    tick_for(standby, 6)
    with capture_logs() as logs:
        assert begun_at(standby, {0: standby.clock.wall_ms()}) == {0: 3}
    assert [each["left_out"] for each in logs if each["log_level"] == "warning"] == [3]
