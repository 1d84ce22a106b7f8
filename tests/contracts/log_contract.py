"""What every reader and writer of the log promises, fake or real.

A module that runs these suites has a fixture ``world``, a log for each test.
"""

import time
from itertools import pairwise

import pytest

from controlplane.config import DECISIONS, HEARTBEATS, ROUTING_TABLE
from controlplane.core.values.identifiers import TopicPartition
from controlplane.errors import (
    InvariantViolationError,
    LogContinuityError,
    PrerequisiteError,
)
from controlplane.ports import (
    Delivery,
    LogReader,
    OutgoingRecord,
    PartitionEnd,
    PolledBatch,
    RawRecord,
    TransactionalWriter,
)
from tests.helpers.log_worlds import (
    PARTITION_COUNTS,
    LogWorld,
    open_at_last,
    read_all,
    read_some,
    read_to_end,
    read_until_ended,
    send_all,
)

DECISIONS_0 = TopicPartition(DECISIONS, 0)
MURMUR2 = {b"21": -973932308, b"foobar": -790332482, b"a-little-bit-long-string": -985981536}
"""Keys and their hashes, from the tests of Kafka's Java client (``UtilsTest.testMurmur2``)."""
TABLE_0 = TopicPartition(ROUTING_TABLE, 0)
_PAUSE_S = 0.05
"""Well below the time for which the broker keeps a fetch open that finds nothing."""
_UNPAUSED_READS = 5
_ENDS_BY_CHANCE = 1
"""A busy broker was seen to answer one fetch as if there were nothing, though no read was late."""
_CHANGE_DEADLINE_S = 20.0
"""Kafka acknowledges a changed setting before every broker goes by it."""


def decision(value: bytes) -> OutgoingRecord:
    """A record for ``decisions``."""
    return OutgoingRecord(DECISIONS, b"key", value)


def opened(world: LogWorld) -> TransactionalWriter:
    """A writer that may commit."""
    writer = world.open_transactions()
    open_at_last(writer)
    return writer


def values(records: list[RawRecord]) -> list[bytes | None]:
    """What the records carry."""
    return [record.value for record in records]


def has_news(batch: PolledBatch) -> bool:
    """Whether a poll brought anything at all."""
    return bool(batch.records or batch.ended)


def poll_for_long(world: LogWorld, reader: LogReader) -> None:
    """Poll for half a minute, and take nothing for news."""
    for _ in range(300):
        reader.poll(10, 0)
        world.let_time_pass(100)


class ReaderContract:
    """Reading: positions, ends, gaps, times, and no silent skipping."""

    def test_topics_and_their_partitions_are_counted(self, world: LogWorld) -> None:
        """Ticks go to every partition, so the number has to be right."""
        reader = world.open_reader()
        assert {topic: reader.partition_count(topic) for topic in PARTITION_COUNTS} == PARTITION_COUNTS

    def test_a_missing_topic_is_named(self, world: LogWorld) -> None:
        """A topic that was never created is the operator's to mend, not something to wait for."""
        reader = world.open_reader()
        for question in (reader.partition_count, reader.start_offsets, reader.end_offsets):
            with pytest.raises(PrerequisiteError, match=f"{world.cluster.name}.no-such-topic"):
                question("no-such-topic")

    def test_an_empty_partition_ends_at_once(self, world: LogWorld) -> None:
        """A first leader learns from the end that its log is empty."""
        reader = world.open_reader()
        places = [TopicPartition(HEARTBEATS, partition) for partition in range(3)]
        reader.assign(dict.fromkeys(places, 0))
        assert read_to_end(reader, places) == []

    def test_records_come_as_they_were_written(self, world: LogWorld) -> None:
        """Key, value, tombstone and place are what later code folds; the cluster's prefix is nobody's business."""
        opened(world).commit(
            [OutgoingRecord(ROUTING_TABLE, b"main/slot/1", b"row"), OutgoingRecord(ROUTING_TABLE, b"main/slot/2", None)]
        )
        records = read_all(world, ROUTING_TABLE)
        assert [(record.topic, record.partition, record.offset, record.key, record.value) for record in records] == [
            (ROUTING_TABLE, 0, 0, b"main/slot/1", b"row"),
            (ROUTING_TABLE, 0, 1, b"main/slot/2", None),
        ]

    def test_reading_begins_at_the_given_offset(self, world: LogWorld) -> None:
        """A new leader goes on where the last decision says: one earlier counts twice, one later loses an input."""
        deliveries = send_all(world.open_events(), [decision(b"%d" % number) for number in range(5)])
        reader = world.open_reader()
        reader.assign({DECISIONS_0: deliveries[3].offset})
        assert values(read_to_end(reader, [DECISIONS_0])) == [b"3", b"4"]

    def test_offsets_have_gaps_where_transactions_ended(self, world: LogWorld) -> None:
        """A control record takes up an offset; who counted offsets instead of seqs would see holes."""
        writer = opened(world)
        for number in range(3):
            writer.commit([decision(b"%d" % number)])
        records = read_all(world, DECISIONS)
        assert [(record.offset, record.value) for record in records] == [(0, b"0"), (2, b"1"), (4, b"2")]
        assert world.open_reader().end_offsets(DECISIONS) == {DECISIONS_0: 6}

    def test_the_end_comes_after_the_records_and_again_after_new_ones(self, world: LogWorld) -> None:
        """A follower counts as caught up at an end; each new record needs an end of its own after it."""
        writer = opened(world)
        writer.commit([decision(b"first")])
        world.settle()
        reader = world.open_reader()
        reader.assign({DECISIONS_0: 0})
        assert values(read_to_end(reader, [DECISIONS_0])) == [b"first"]
        writer.commit([decision(b"second")])
        assert values(read_to_end(reader, [DECISIONS_0])) == [b"second"]

    def test_no_end_is_told_while_records_go_on_coming(self, world: LogWorld) -> None:
        """An end is what a poll that finds nothing tells: a reader beside a writer without a pause must not need it."""
        writer, reader = world.open_events(), world.open_reader()
        reader.assign({DECISIONS_0: 0})
        send_all(writer, [decision(b"first")])
        read_some(reader, 1)
        read_at, unpaused, ends = time.monotonic(), 0, 0
        while unpaused < _UNPAUSED_READS:
            send_all(writer, [decision(b"next")])
            batches = [reader.poll(10, 5_000)]
            while not batches[-1].records:
                batches.append(reader.poll(10, 5_000))
            before, read_at = read_at, time.monotonic()
            # Where the machine was busy, the reader has met a pause.
            unpaused = unpaused + 1 if read_at - before < _PAUSE_S else 0
            ends += unpaused > 1 and any(batch.ended for batch in batches)
            assert ends <= _ENDS_BY_CHANCE, "an end is told again"

    def test_an_end_is_told_once(self, world: LogWorld) -> None:
        """A quiet partition costs nothing: with nothing new there is nothing to say."""
        reader = world.open_reader()
        reader.assign({DECISIONS_0: 0})
        read_to_end(reader, [DECISIONS_0])
        assert not any(map(has_news, [reader.poll(10, 150) for _ in range(3)]))

    def test_an_end_names_its_offset_which_an_open_transaction_holds_back(self, world: LogWorld) -> None:
        """A reader that needs all that was acknowledged compares it; the high watermark shows what is waited for."""
        opened(world).commit([decision(b"before")])
        world.settle()
        assert self._end(world) == PartitionEnd(2, 2)
        world.leave_transaction_open([decision(b"open")])
        assert self._end(world) == PartitionEnd(2, 3)

    def test_records_come_with_the_high_watermark_which_counts_an_open_transaction(self, world: LogWorld) -> None:
        """A reader that has got as far has everything that was acknowledged before, also where no end is told."""
        opened(world).commit([decision(b"before")])
        world.settle()
        world.leave_transaction_open([decision(b"open")])
        reader = world.open_reader()
        reader.assign({DECISIONS_0: 0})
        while not (batch := reader.poll(10, 5_000)).records:
            assert batch.high_watermarks == {}
        assert batch.high_watermarks == {DECISIONS_0: 3}

    @staticmethod
    def _end(world: LogWorld) -> PartitionEnd:
        """The end of the decisions, as a new reader is told of it."""
        reader = world.open_reader()
        reader.assign({DECISIONS_0: 0})
        return read_until_ended(reader, [DECISIONS_0])[DECISIONS_0]

    def test_a_batch_is_never_larger_than_asked_and_nothing_is_lost_between_two(self, world: LogWorld) -> None:
        """The loop's time per turn is bounded by the batch."""
        sent = [decision(b"%d" % number) for number in range(25)]
        send_all(world.open_events(), sent)
        reader = world.open_reader()
        reader.assign({DECISIONS_0: 0})
        first = read_some(reader, 10)
        assert len(reader.poll(7, 5_000).records) <= 7
        reader.assign({DECISIONS_0: first[-1].offset + 1})
        assert values(first + read_some(reader, 15)) == [record.value for record in sent]

    def test_assigning_again_replaces_everything(self, world: LogWorld) -> None:
        """A rebuild reads from the start again and must not see what was on its way from the former position."""
        send_all(world.open_events(), [decision(b"d%d" % number) for number in range(3)])
        send_all(world.open_events(), [OutgoingRecord(ROUTING_TABLE, b"k", b"row")])
        reader = world.open_reader()
        reader.assign({TABLE_0: 0})
        read_some(reader, 1)
        reader.assign({DECISIONS_0: 1})
        assert values(read_to_end(reader, [DECISIONS_0])) == [b"d1", b"d2"]
        send_all(world.open_events(), [OutgoingRecord(ROUTING_TABLE, b"k", b"row")])
        assert not has_news(reader.poll(10, 300))

    @pytest.mark.parametrize("offset", [7, 1])
    def test_an_offset_that_is_not_kept_stops_the_reader(self, world: LogWorld, offset: int) -> None:
        """Past the end or deleted by retention: skipping in silence would lose inputs, so the place is named."""
        send_all(world.open_events(), [decision(b"%d" % number) for number in range(4)])
        world.delete_before(DECISIONS_0, 3)
        reader = world.open_reader()
        assert reader.start_offsets(DECISIONS) == {DECISIONS_0: 3}
        reader.assign({DECISIONS_0: offset})
        for _ in range(2):
            with pytest.raises(LogContinuityError, match=rf"{world.cluster.name}\.decisions\[0\].*{offset}"):
                poll_for_long(world, reader)
        reader.assign({DECISIONS_0: 3})
        assert values(read_to_end(reader, [DECISIONS_0])) == [b"3"]

    def test_a_shorter_recreated_topic_stops_its_reader(self, world: LogWorld) -> None:
        """Somebody deleted the log under a running follower: it must not wait for its offset to come again."""
        send_all(world.open_events(), [decision(b"%d" % number) for number in range(4)])
        reader = world.open_reader()
        reader.assign({DECISIONS_0: 0})
        read_to_end(reader, [DECISIONS_0])
        world.recreate_topic(DECISIONS)
        with pytest.raises(LogContinuityError, match=r"decisions\[0\]"):
            poll_for_long(world, reader)

    def test_those_that_answer_are_all_as_a_rule(self, world: LogWorld) -> None:
        """Whoever can do without a partition whose leader is away gets the same as others while none is."""
        send_all(world.open_events(), [OutgoingRecord(HEARTBEATS, b"n", b"%d" % p, p) for p in (2, 0, 0)])
        reader = world.open_reader()
        for only_answering in (False, True):
            starts = reader.start_offsets(HEARTBEATS, only_answering=only_answering)
            assert starts == {TopicPartition(HEARTBEATS, partition): 0 for partition in range(3)}
            ends = reader.end_offsets(HEARTBEATS, only_answering=only_answering)
            assert [ends[TopicPartition(HEARTBEATS, partition)] for partition in range(3)] == [2, 0, 1]
            assert reader.offsets_at_time(HEARTBEATS, 0, only_answering=only_answering) == starts

    def test_a_negative_offset_is_refused(self, world: LogWorld) -> None:
        """Clients take -1 for "the end" and -2 for "the start": a position that was never set must not skip the log."""
        with pytest.raises(InvariantViolationError, match="-1"):
            world.open_reader().assign({DECISIONS_0: -1})

    def test_append_times_are_there_and_grow(self, world: LogWorld) -> None:
        """Silence is counted between append times."""
        writer = world.open_events()
        told = []
        for number in range(3):
            told += send_all(writer, [decision(b"%d" % number)])
            world.let_time_pass(20)
        times = [record.append_time_ms for record in read_all(world, DECISIONS)]
        assert times == [delivery.append_time_ms for delivery in told]
        assert all(later - earlier >= 20 for earlier, later in pairwise(times))

    def test_whose_clock_dated_a_record_is_told(self, world: LogWorld) -> None:
        """Time is the broker's: a topic that keeps the senders' times must not be taken for one that does not."""
        writer, reader = world.open_events(), world.open_reader()
        reader.assign({DECISIONS_0: 0})
        send_all(writer, [decision(b"before")])
        assert [record.is_append_time for record in read_some(reader, 1)] == [True]
        world.keep_create_time(DECISIONS)
        deadline_s = time.monotonic() + _CHANGE_DEADLINE_S
        while True:
            send_all(writer, [decision(b"after")])
            (record,) = read_some(reader, 1)
            if not record.is_append_time:
                break
            assert time.monotonic() < deadline_s, "the topic keeps append times"

    def test_a_time_is_found_by_its_offset(self, world: LogWorld) -> None:
        """A cold start looks back over a window: what was appended within it, and the end where there is nothing."""
        writer = world.open_events()
        heartbeats = [OutgoingRecord(HEARTBEATS, b"n", b"early", 0), OutgoingRecord(HEARTBEATS, b"n", b"late", 0)]
        early = send_all(writer, heartbeats[:1])[0]
        world.let_time_pass(20)
        late = send_all(writer, heartbeats[1:])[0]
        reader = world.open_reader()
        quiet = {TopicPartition(HEARTBEATS, 1): 0, TopicPartition(HEARTBEATS, 2): 0}
        first = TopicPartition(HEARTBEATS, 0)
        assert reader.offsets_at_time(HEARTBEATS, 0) == {first: 0, **quiet}
        assert reader.offsets_at_time(HEARTBEATS, early.append_time_ms) == {first: 0, **quiet}
        assert reader.offsets_at_time(HEARTBEATS, early.append_time_ms + 1) == {first: late.offset, **quiet}
        assert reader.offsets_at_time(HEARTBEATS, late.append_time_ms + 1) == {first: late.offset + 1, **quiet}


class TopicInspectorContract:
    """What Kafka shows of its topics: a controller judges by it whether its log is safe."""

    def test_topics_are_described_and_missing_ones_left_out(self, world: LogWorld) -> None:
        """Partitions, copies and settings of each; a topic that nobody has created yet is no error."""
        names = [world.cluster.topic(topic) for topic in (*PARTITION_COUNTS, "no-such-topic")]
        described = world.open_inspector().describe(names)
        assert described.brokers == 1
        assert {name: topic.partitions for name, topic in described.topics.items()} == {
            world.cluster.topic(topic): count for topic, count in PARTITION_COUNTS.items()
        }
        assert {topic.replication for topic in described.topics.values()} == {1}
        assert {each.settings["message.timestamp.type"] for each in described.topics.values()} == {"LogAppendTime"}
        assert described.hidden == {}

    def test_a_changed_setting_shows(self, world: LogWorld) -> None:
        """The inspector is asked again and again, by a controller that runs for months."""
        name = world.cluster.topic(HEARTBEATS)
        inspector = world.open_inspector()
        assert inspector.describe([name]).topics[name].settings["message.timestamp.type"] == "LogAppendTime"
        world.keep_create_time(HEARTBEATS)
        deadline_s = time.monotonic() + _CHANGE_DEADLINE_S
        while inspector.describe([name]).topics[name].settings["message.timestamp.type"] != "CreateTime":
            assert time.monotonic() < deadline_s, "the change does not show"


class EventWriterContract:
    """Single records: order, place, time, and word of what became of them."""

    def test_deliveries_say_where_and_when(self, world: LogWorld) -> None:
        """A controller knows by its tick's delivery that it still reaches the log, and measures the broker's clock."""
        deliveries = send_all(world.open_events(), [OutgoingRecord(HEARTBEATS, b"n", b"%d" % i, 2) for i in range(3)])
        records = read_all(world, HEARTBEATS)
        assert [(d.topic, d.partition, d.offset, d.append_time_ms, d.error) for d in deliveries] == [
            (HEARTBEATS, 2, record.offset, record.append_time_ms, None) for record in records
        ]

    def test_callbacks_run_in_poll_and_flush_only(self, world: LogWorld) -> None:
        """A callback from within ``send`` would run under the caller's locks."""
        writer = world.open_events()
        told: list[int] = []
        send_all(writer, [decision(b"warm")])
        writer.send(decision(b"x"), lambda delivery: told.append(delivery.offset))
        world.let_time_pass(50)
        writer.send(decision(b"y"))
        assert told == []
        assert writer.awaits_delivery
        assert writer.flush(10_000) == 0
        assert told == [1]
        assert not writer.awaits_delivery

    @pytest.mark.parametrize("wait", ["poll", "flush"])
    def test_a_callback_may_send_but_not_wait(self, world: LogWorld, wait: str) -> None:
        """Kafka's client ends the process if it is polled in a callback and another callback is due."""
        writer = world.open_events()
        refused: list[str] = []

        def again(delivery: Delivery) -> None:
            try:
                getattr(writer, wait)(0)
            except RuntimeError as error:
                refused.append(str(error))
            writer.send(OutgoingRecord(HEARTBEATS, b"n", b"again", delivery.partition))

        for value in (b"1", b"2", b"3"):
            writer.send(OutgoingRecord(HEARTBEATS, b"n", value, 0), again)
        while writer.flush(10_000):
            pass
        assert [error.partition(":")[0] for error in refused] == [
            "a writer cannot be polled or flushed in a delivery callback of its own"
        ] * 3
        assert [record.value for record in read_all(world, HEARTBEATS)] == [b"1", b"2", b"3", *[b"again"] * 3]

    def test_an_explicit_partition_is_kept(self, world: LogWorld) -> None:
        """Every partition gets its own tick."""
        deliveries = send_all(world.open_events(), [OutgoingRecord(HEARTBEATS, b"tick", b"", p) for p in (2, 0, 1)])
        assert sorted(delivery.partition for delivery in deliveries) == [0, 1, 2]

    def test_a_key_stays_in_one_partition_in_order(self, world: LogWorld) -> None:
        """A node's heartbeats must not overtake one another."""
        sent = [OutgoingRecord(HEARTBEATS, b"node-%d" % (i % 5), b"%d" % i) for i in range(60)]
        send_all(world.open_events(), sent)
        records = read_all(world, HEARTBEATS)
        for key in {record.key for record in sent}:
            mine = [record for record in records if record.key == key]
            assert len({record.partition for record in mine}) == 1
            assert values(mine) == [record.value for record in sent if record.key == key]

    def test_keys_choose_partitions_as_java_clients_do(self, world: LogWorld) -> None:
        """A Java node's heartbeats and our agent's have to meet in one partition (murmur2; Kafka's own vectors)."""
        send_all(world.open_events(), [OutgoingRecord(HEARTBEATS, key, b"") for key in MURMUR2])
        places = {record.key: record.partition for record in read_all(world, HEARTBEATS)}
        assert places == {key: (value & 0x7FFFFFFF) % 3 for key, value in MURMUR2.items()}

    def test_a_record_for_a_missing_topic_is_given_up_with_a_reason(self, world: LogWorld) -> None:
        """Nobody waits for ever for a record that cannot arrive."""
        delivery = send_all(world.open_events(), [OutgoingRecord("no-such-topic", b"k", b"v")])[0]
        assert (delivery.topic, delivery.offset) == ("no-such-topic", -1)
        assert delivery.error

    def test_a_missing_topic_is_named(self, world: LogWorld) -> None:
        """The agent that asks where to send must hear that the topic was never created."""
        with pytest.raises(PrerequisiteError, match="no-such-topic"):
            world.open_events().partition_count("no-such-topic")
        assert world.open_events().partition_count(HEARTBEATS) == 3
