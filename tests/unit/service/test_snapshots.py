"""Leaders that write snapshots: when, how many stay, what goes wrong, and what a later controller makes of them."""

import time

import pytest
import structlog

from controlplane.config import DECISIONS, SnapshotConfig
from controlplane.core.intents.events import IntentAnswered
from controlplane.core.log.snapshots.catalog import StoredSnapshot, sound
from controlplane.core.log.snapshots.log_point import LogPoint
from controlplane.core.log.snapshots.schedule import LastSnapshot, due
from controlplane.core.log.state import State
from controlplane.core.values.identifiers import Seq
from controlplane.errors import ConfigurationError
from controlplane.ports import LogReader, OutgoingRecord, PolledBatch
from controlplane.testing import MemoryEventWriter
from controlplane.topic_reading.start_point import read_catalog
from tests.helpers.memory_cluster import ObservedCluster

EVERY_DECISION = SnapshotConfig(after_decisions=1)


def stored(world: ObservedCluster) -> list[StoredSnapshot]:
    """What the topic of snapshots holds, newest first."""
    return read_catalog(world.reader(), world.clock).newest_first()


def whole(world: ObservedCluster) -> list[int]:
    """The seqs of the sound snapshots, newest first."""
    log_id = world.decisions()[0].log_id
    return [each.header.seq for each in sound(stored(world), log_id, Seq(1 << 40)) if each.header]


def grow(world: ObservedCluster, count: int) -> None:
    """So many decisions more, one after the other."""
    for _ in range(count):
        seq = world.decisions()[-1].seq
        world.intent(f"i{seq}", "create_namespace", namespace=f"n{seq}")
        world.wait_until(lambda: world.decisions()[-1].seq > seq)  # noqa: B023 - asked at once


def test_a_leader_writes_snapshots_and_keeps_two() -> None:
    """A third one replaces the first; nothing is left of it but tombstones."""
    with ObservedCluster() as world:
        world.start("c1", snapshots=EVERY_DECISION)
        world.wait_until(lambda: world.decisions() and whole(world) == [1])
        for _ in range(3):
            grow(world, 1)
            newest = world.decisions()[-1].seq
            world.wait_until(lambda: whole(world)[0] == newest)  # noqa: B023 - asked at once
        world.wait_until(lambda: len(stored(world)) == 2)
        assert whole(world) == [4, 3]


def test_an_operator_gets_a_snapshot_when_asking_for_one() -> None:
    """The answer stands in the log, and the snapshot is of that decision or a later one."""
    with ObservedCluster() as world:
        world.start("c1")
        world.wait_until(world.decisions)
        world.intent("i1", "take_snapshot")
        world.wait_until(lambda: whole(world))
        events = [event for decision in world.decisions() for event in decision.events]
        answers = [event for event in events if isinstance(event, IntentAnswered)]
        assert [answer.detail for answer in answers] == ["a snapshot is written of decision 2 or a later one"]
        assert whole(world) == [2]


def test_a_wish_that_a_dead_leader_left_is_granted_by_the_next_one() -> None:
    """The log knows of it, so nobody has to ask twice."""
    with ObservedCluster() as world:
        deaf = MemoryEventWriter(world.cluster, world.broker)
        deaf.connected = False
        first = world.start("c1", snapshot_writer=deaf)
        world.wait_until(world.decisions)
        world.intent("i1", "take_snapshot")
        world.wait_until(lambda: world.decisions()[-1].seq == 2)
        world.start("c2")
        first.end()
        world.wait_until(lambda: whole(world))
        assert whole(world)[0] >= 2


class Counting:
    """A reader that notes which decisions were read."""

    def __init__(self, reader: LogReader, seen: set[int]) -> None:
        """Read through another one."""
        self._reader = reader
        self._seen = seen

    def __getattr__(self, name: str) -> object:
        """Everything else is the other reader's."""
        return getattr(self._reader, name)

    def poll(self, max_records: int, timeout_ms: int) -> PolledBatch:
        """As the other one; take note."""
        batch = self._reader.poll(max_records, timeout_ms)
        self._seen.update(record.offset for record in batch.records if record.topic == DECISIONS)
        return batch


class CountingCluster(ObservedCluster):
    """A cluster that knows which decisions its controllers have read."""

    def __init__(self) -> None:
        """Nothing was read yet."""
        self.seen: set[int] = set()
        super().__init__()

    def reader(self) -> LogReader:
        """See :meth:`ObservedCluster.reader`."""
        return Counting(super().reader(), self.seen)  # type: ignore[return-value]


def test_a_new_controller_reads_the_tail_only_and_goes_on_with_the_schedule() -> None:
    """It begins behind the newest snapshot, leads on the same state, and writes the next snapshot when it is due."""
    with CountingCluster() as world:
        first = world.start("c1", snapshots=SnapshotConfig(after_decisions=3))
        world.join("n1", "n2")
        world.wait_until(lambda: set(world.owners().values()) == {"n1", "n2"})
        grow(world, 4)
        world.wait_until(lambda: whole(world))
        first.end()
        header = stored(world)[0].header
        assert header is not None
        world.seen = set()
        world.start("c2", snapshots=SnapshotConfig(after_decisions=3))
        world.wait_until(lambda: world.decisions()[-1].controller_id == "c2")
        assert world.seen
        # The first record, behind the barrier of its leader, names the log.
        assert sorted(world.seen)[:2] == [2, header.last_decision_offset]
        assert set(world.owners().values()) == {"n1", "n2"}
        due_at = whole(world)[0] + 3
        grow(world, max(0, due_at - world.decisions()[-1].seq))
        world.wait_until(lambda: whole(world)[0] >= due_at)


def test_a_producer_that_fails_is_heard_of_and_stops_nobody(capsys: pytest.CaptureFixture[str]) -> None:
    """Decisions go on, the failure is counted, and as soon as Kafka takes snapshots again one is written."""
    structlog.configure()

    class Refusing(MemoryEventWriter):
        refuses = True

        def send(self, record: OutgoingRecord, on_delivery: object = None) -> None:
            if self.refuses:
                raise ConfigurationError("the disk is full")
            super().send(record, on_delivery)  # type: ignore[arg-type]

    with ObservedCluster() as world, pytest.MonkeyPatch.context() as patch:
        patch.setattr("controlplane.service.snapshots._RETRY_MS", 300)
        writer = Refusing(world.cluster, world.broker)
        world.start("c1", snapshots=EVERY_DECISION, snapshot_writer=writer)
        world.wait_until(world.decisions)
        grow(world, 3)
        world.wait_until(lambda: "the disk is full" in capsys.readouterr().out)
        assert whole(world) == []
        writer.refuses = False
        world.wait_until(lambda: whole(world) == [world.decisions()[-1].seq])
        assert {decision.term for decision in world.decisions()} == {1}


def test_a_snapshot_that_was_not_delivered_whole_is_not_counted() -> None:
    """Half of it stands in the topic: nobody believes it, it is written again, and what is left of it is removed."""

    class Losing(MemoryEventWriter):
        """Says of the first snapshot that its last record was given up."""

        lost = False

        def send(self, record: OutgoingRecord, on_delivery: object = None) -> None:
            if not self.lost and record.value is not None:
                self.lost = True
                self.connected = False
            super().send(record, on_delivery)  # type: ignore[arg-type]

    with ObservedCluster() as world, pytest.MonkeyPatch.context() as patch:
        patch.setattr("controlplane.service.snapshots._RETRY_MS", 100)
        writer = Losing(world.cluster, world.broker, message_timeout_ms=50)
        world.start("c1", snapshots=EVERY_DECISION, snapshot_writer=writer)
        world.wait_until(lambda: writer.lost)
        time.sleep(0.2)
        assert whole(world) == []
        writer.connected = True
        world.wait_until(lambda: world.decisions() and whole(world) == [1])


def test_observers_and_standbys_write_nothing() -> None:
    """Only one controller at a time pays for snapshots."""
    with ObservedCluster() as world:
        world.start("c1", snapshots=EVERY_DECISION)
        world.wait_until(lambda: world.decisions() and whole(world) == [1])
        silent = MemoryEventWriter(world.cluster, world.broker)
        sent: list[OutgoingRecord] = []
        silent.send = lambda record, _=None: sent.append(record)  # type: ignore[assignment,method-assign]
        world.start("c2", snapshots=EVERY_DECISION, snapshot_writer=silent)
        world.start("c3", snapshots=EVERY_DECISION, snapshot_writer=silent, follow_only=True)
        grow(world, 2)
        world.wait_until(lambda: whole(world)[0] == world.decisions()[-1].seq)
        assert sent == []


@pytest.mark.parametrize(
    ("seq", "read_bytes", "decided_at_ms", "asked_for", "why"),
    [
        (10, 0, 0, 0, ""),
        (19, 999, 999, 10, ""),
        (20, 0, 0, 0, "decisions"),
        (11, 1_000, 0, 0, "bytes"),
        (11, 0, 1_000, 0, "time"),
        (11, 0, 0, 11, "intent"),
        (9, 5_000, 5_000, 11, ""),
    ],
)
def test_whatever_comes_first_makes_a_snapshot_due(
    seq: int, read_bytes: int, decided_at_ms: int, asked_for: int, why: str
) -> None:
    """Ten decisions, a thousand bytes or a second after decision 10; never of the same decision again."""
    config = SnapshotConfig(after_decisions=10, after_bytes=1_000, after_ms=1_000)
    state = State(log_id="l", seq=Seq(seq), decided_at_ms=decided_at_ms)
    point = LogPoint(state, 5, 6, read_bytes, Seq(asked_for))
    assert due(config, LastSnapshot(Seq(10), 0, 0), point) == why


def test_before_the_first_decision_there_is_nothing_to_write() -> None:
    """An empty state would be passed over by everybody."""
    assert due(EVERY_DECISION, LastSnapshot(Seq(0), 0, 0), LogPoint(State())) == ""


def test_settings_that_would_write_without_an_end_are_refused() -> None:
    """A snapshot after no decision at all would follow on itself."""
    with pytest.raises(ConfigurationError, match="after_decisions is 0"):
        SnapshotConfig(after_decisions=0)
