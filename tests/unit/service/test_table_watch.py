"""What a leader finds in the topic of its table, and how often it writes the table again."""

from collections.abc import Mapping

import pytest
from structlog.testing import capture_logs

from controlplane.config import ROUTING_TABLE, ClusterConfig
from controlplane.core.cluster.policy import ClusterPolicy
from controlplane.core.deciding.decide import repair_table
from controlplane.core.routing.repair import TableDamage
from controlplane.core.values.identifiers import TopicPartition
from controlplane.core.values.positions import TABLE_PLACE
from controlplane.errors import LogContinuityError, PrerequisiteError
from controlplane.ports import LogReader, OutgoingRecord, PolledBatch
from controlplane.service import publisher
from controlplane.service.table_watch import TableWatch
from controlplane.testing import MemoryEventWriter, MemoryLogReader, VirtualClock
from controlplane.topic_reading.deadlines import STALL_LIMIT_MS
from tests.helpers.published_world import PublishedWorld

CLUSTER = ClusterConfig("c")


class Deaf:
    """A reader to which nothing of the table comes, and no error either."""

    def __init__(self, reader: LogReader) -> None:
        """Ask through another one."""
        self._reader = reader

    def __getattr__(self, name: str) -> object:
        """Everything else is the other one's."""
        return getattr(self._reader, name)

    def assign(self, positions: Mapping[TopicPartition, int]) -> None:
        """As the reader does."""
        self._reader.assign(positions)

    def poll(self, max_records: int, timeout_ms: int) -> PolledBatch:
        """Nothing."""
        return PolledBatch((), {})


class Slow(Deaf):
    """A reader that brings one record at a time."""

    def poll(self, max_records: int, timeout_ms: int) -> PolledBatch:
        """The next one."""
        return self._reader.poll(min(max_records, 1), timeout_ms)


class Endless(Deaf):
    """A reader that never reports an end, because records go on coming."""

    def poll(self, max_records: int, timeout_ms: int) -> PolledBatch:
        """What there is."""
        return PolledBatch(self._reader.poll(max_records, timeout_ms).records, {})


class Watched(PublishedWorld):
    """A leader whose table is watched, by a clock that only the test moves."""

    def __init__(self) -> None:
        """The table of its first decision stands in the topic, and was read."""
        super().__init__(CLUSTER, ClusterPolicy(slot_count=8))
        self.readers = 0
        self.deaf_from = 1 << 30
        self.slow_from = 1 << 30
        self.endless_from = 1 << 30
        self.watch_clock = VirtualClock()
        self.watch = TableWatch(self._open, self.watch_clock, self.state.log_id)
        self.watch.read_to_end({}, 5_000)

    def throw(self, key: bytes, value: bytes | None) -> None:
        """Somebody else writes into the topic."""
        MemoryEventWriter(CLUSTER, self.broker).send(OutgoingRecord(ROUTING_TABLE, key, value, 0))

    def look_for(self, milliseconds: int) -> TableDamage | None:
        """Look five times a second, until something is to be repaired."""
        for _ in range(0, milliseconds, 200):
            self.watch_clock.advance(200)
            damage = self.watch.damage(self.state, self._publisher)
            if damage is not None:
                return damage
        return None

    def repair(self, damage: TableDamage) -> None:
        """What the leader does then."""
        self.foreign = damage.keys
        self.commit(repair_table(self.state, self.observations, damage.evidence))

    def _open(self) -> LogReader:
        self.readers += 1
        reader = self.reader()
        if self.readers > self.endless_from:
            return Endless(reader)  # type: ignore[return-value]  # the rest is the reader's
        if self.readers > self.slow_from:
            return Slow(reader)  # type: ignore[return-value]  # the rest is the reader's
        return Deaf(reader) if self.readers > self.deaf_from else reader  # type: ignore[return-value]


def test_an_epoch_whose_end_is_not_marked_is_no_damage() -> None:
    """It is committed, and no reader is shown it yet: to write the table again would help none of them."""
    world = Watched()
    topic = CLUSTER.topic(ROUTING_TABLE)
    world.broker.hold_markers_back(topic, 0)
    world.admit("n1")
    assert world.look_for(60_000) is None
    world.broker.write_markers(topic, 0)
    assert world.look_for(10_000) is None


def test_all_that_has_arrived_is_looked_at_at_once_however_small_its_batches_are() -> None:
    """A repair for each of them would leave the others in the topic, and readers without a table, for a second each."""
    world = Watched()
    world.slow_from = 1
    world.watch = TableWatch(world._open, world.watch_clock, world.state.log_id)  # noqa: SLF001 - as in the class
    world.watch.read_to_end({}, 5_000)
    for number in range(30):
        world.throw(b"~%d" % number, b"garbage")
    damage = world.look_for(200)
    assert damage is not None
    assert len(damage.keys) == 30


def test_own_epochs_are_no_damage() -> None:
    """Whatever the leader commits comes back as it was committed."""
    world = Watched()
    for node_id in ("n1", "n2", "n3"):
        world.admit(node_id)
        assert world.look_for(10_000) is None
    assert world.readers == 1


def test_a_writer_that_never_pauses_neither_holds_a_leader_up_nor_hides_damage() -> None:
    """Kafka reports an end only where nothing follows; the end that was asked for before is reached all the same."""
    world = Watched()
    world.admit("n1")
    world.throw(b"main/slot/3", b"garbage")
    world.endless_from = world.readers
    world.watch = TableWatch(world._open, world.watch_clock, world.state.log_id)  # noqa: SLF001 - its own
    world.watch.read_to_end({}, 5_000)
    damage = world.look_for(1_000)
    assert damage is not None
    assert list(damage.keys) == ["main/slot/3"]


def test_a_leader_that_is_behind_reads_on_at_every_look() -> None:
    """At one batch in 200 ms it would find damage ever later, and a large table not at all."""
    world = Watched()
    world.slow_from = world.readers
    world.watch = TableWatch(world._open, world.watch_clock, world.state.log_id)  # noqa: SLF001 - its own
    world.throw(b"main/slot/3", b"garbage")
    records = len(world.watch.image.row_hashes) + 50
    found = [world.watch.damage(world.state, world._publisher) for _ in range(records)]  # noqa: SLF001 - as above
    assert [damage for damage in found if damage is not None]


@pytest.mark.parametrize(
    ("key", "value", "evidence"),
    [
        (b"main/slot/3", b"garbage", "1 keys hold what no leader wrote: 'main/slot/3'"),
        (b"main/slot/3", None, "1 keys hold what no leader wrote: 'main/slot/3'"),
        (b"\xff\x1b", b"", r"1 keys hold what no leader wrote: '\udcff\x1b'"),
        (b"main/epoch/marker", b"garbage", "the epoch marker was written over"),
        (b"main/epoch/marker", None, "the epoch marker was written over"),
    ],
)
def test_what_no_leader_wrote_is_found_and_repaired(key: bytes, value: bytes | None, evidence: str) -> None:
    """The next look finds it; one repair is enough, and leaves no key that is not the table's."""
    world = Watched()
    world.admit("n1")
    assert world.look_for(1_000) is None
    world.throw(key, value)
    damage = world.look_for(400)
    assert damage is not None
    assert damage.evidence == evidence
    world.repair(damage)
    assert world.look_for(100_000) is None
    assert world.state.epoch == world.watch.image.last_marker.epoch  # type: ignore[union-attr]  # it is there


def test_a_flood_gives_a_bounded_number_of_epochs() -> None:
    """Seven repairs in the first 64 s, one in 64 s from then on; and after a quiet time the next one is at once."""
    world = Watched()
    repaired_at_s = []
    for tenth in range(6_000):
        world.throw(b"nonsense", f"{tenth}".encode())
        world.watch_clock.advance(100)
        damage = world.watch.damage(world.state, world._publisher)  # noqa: SLF001 - what the leader hands over
        if damage is not None:
            repaired_at_s.append(tenth // 10)
            world.repair(damage)
    assert len([at_s for at_s in repaired_at_s if at_s < 64]) == 7
    assert len(repaired_at_s) <= 7 + 600 // 64
    last = world.look_for(64_000)
    if last is not None:
        world.repair(last)
    assert world.look_for(70_000) is None
    world.throw(b"nonsense", b"once more")
    assert world.look_for(400) is not None


def test_more_foreign_rows_than_one_transaction_can_remove_are_removed_one_part_a_second(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The waits double where damage follows a repair, and not where a repair could mend only a part of the damage."""
    monkeypatch.setattr(publisher, "_MOST_FOREIGN_KEYS", 2)
    world = Watched()
    for number in range(12):
        world.throw(b"foreign %d" % number, b"garbage")
    repairs = 0
    for _ in range(7):
        damage = world.look_for(1_000)
        if damage is not None:
            world.repair(damage)
            repairs += 1
    assert repairs == 6
    assert len(world.watch.image.row_hashes) == len(world.state.slots.table) + 1


def test_a_flood_over_many_own_rows_gives_a_bounded_number_of_epochs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every repair writes all own rows, so none of them is left for a next part."""
    monkeypatch.setattr(publisher, "_MOST_FOREIGN_KEYS", 2)
    world = Watched()
    repairs = 0
    for tenth in range(640):
        for slot in range(8):
            world.throw(b"main/slot/%d" % slot, b"%d" % tenth)
        world.watch_clock.advance(100)
        damage = world.watch.damage(world.state, world._publisher)  # noqa: SLF001 - what the leader hands over
        if damage is not None:
            world.repair(damage)
            repairs += 1
    assert repairs == 7


def test_a_topic_that_was_made_again_is_filled_again() -> None:
    """The table follows from the log; whoever deleted the topic need not restart the leader."""
    world = Watched()
    world.admit("n1")
    world.look_for(1_000)
    world.broker.create_topic(CLUSTER.topic(ROUTING_TABLE))
    with capture_logs() as logs:
        damage = world.look_for(3 * STALL_LIMIT_MS)
    assert damage is not None
    assert any("from its start again" in each["event"] for each in logs)
    world.repair(damage)
    assert world.look_for(20_000) is None


def test_a_topic_that_is_away_for_long_ends_no_leader(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between its deletion and its creation Kafka says that there is no such topic."""
    world = Watched()
    world.admit("n1")
    world.look_for(1_000)
    world.broker.create_topic(CLUSTER.topic(ROUTING_TABLE))

    def refuse(_: LogReader, topic: str) -> None:
        raise PrerequisiteError(f"there is no topic {topic}")

    with monkeypatch.context() as patch:
        patch.setattr(MemoryLogReader, "start_offsets", refuse)
        with capture_logs() as logs:
            assert world.look_for(10_000) is None
        assert any("no topic" in each.get("error", "") for each in logs)
    assert world.look_for(3 * STALL_LIMIT_MS) is not None


def test_a_reader_to_which_nothing_comes_is_replaced_and_proves_nothing() -> None:
    """That own epochs do not come back does not mean that they are not there."""
    world = Watched()
    world.deaf_from = 1
    world.admit("n1")
    world.watch._reader = Deaf(world.reader())  # type: ignore[assignment]  # noqa: SLF001 - what Kafka's client can become
    assert world.look_for(4 * STALL_LIMIT_MS) is None
    assert world.readers > 2
    world.deaf_from = 1 << 30
    assert world.look_for(4 * STALL_LIMIT_MS) is None


def test_a_marker_that_the_leader_did_not_write_stops_it() -> None:
    """Readers would follow it."""
    world = Watched()
    ahead = Watched()
    ahead.admit("n1")
    reader = ahead.reader()
    reader.assign({TopicPartition(ROUTING_TABLE, 0): 0})
    record = reader.poll(1_000, 0).records[-1]
    world.throw(record.key or b"", record.value)
    with pytest.raises(LogContinuityError, match=r"holds a marker of epoch 2 .* committed no epoch after 1"):
        world.look_for(1_000)


def test_a_topic_that_is_made_again_is_found_empty_whatever_the_offsets_of_the_take_over_were() -> None:
    """The barrier of the take-over lies far behind the end of the new topic."""
    world = Watched()
    topic = CLUSTER.topic(ROUTING_TABLE)
    world.watch = TableWatch(world._open, world.watch_clock, world.state.log_id)  # noqa: SLF001 - as in the class
    world.watch.read_to_end({TABLE_PLACE: world.broker.partitions(topic)[0].end_offset}, 5_000)
    assert world.look_for(10_000) is None
    world.broker.create_topic(topic)
    assert world.look_for(60_000) is not None
