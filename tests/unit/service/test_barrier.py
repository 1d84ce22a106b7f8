"""Reading the log up to a barrier: what a take-over may take for the end, and what it does where nothing else comes."""

import pytest

from controlplane.config import DECISIONS, ClusterConfig
from controlplane.core.values.positions import DECISIONS_PARTITION
from controlplane.errors import LogContinuityError, LogUnavailableError
from controlplane.ports import OutgoingRecord, PolledBatch
from controlplane.service.follower import LogFollower
from controlplane.testing import MemoryLogReader, MemoryTransactionalWriter, VirtualClock
from tests.helpers.published_world import PublishedWorld

CLUSTER = ClusterConfig("test")


class Setup:
    """A follower that has read a log, whose readers ask a broker that ends the log there."""

    def __init__(self) -> None:
        """One decision more is committed after that, and a barrier is written behind it."""
        self.world = PublishedWorld(CLUSTER)
        self.world.admit("n1")
        self.clock = VirtualClock()
        self.stale_ends = dict(MemoryLogReader(CLUSTER, self.world.broker).end_offsets(DECISIONS))
        self.follower = LogFollower(self._reader, self.clock)
        self.follower.read_to_end(60_000, 5_000)
        self.known = self.follower.state
        self.world.admit("n2")
        writer = MemoryTransactionalWriter(CLUSTER, self.world.broker)
        writer.open()
        self.barrier = writer.write_barrier([OutgoingRecord(DECISIONS, b"barrier", b"barrier", 0)])

    def _reader(self) -> MemoryLogReader:
        clock = self.clock

        class Reader(MemoryLogReader):
            """Time passes while it waits."""

            def poll(self, max_records: int, timeout_ms: int) -> PolledBatch:
                """Whatever there is."""
                clock.advance(timeout_ms)
                return super().poll(max_records, timeout_ms)

        reader = Reader(CLUSTER, self.world.broker)
        reader.stale_ends = self.stale_ends
        return reader


def test_an_end_before_the_barrier_is_not_believed() -> None:
    """Deciding on it would fork the log: the take-over ends after the given time, and says what was wrong."""
    setup = Setup()
    began_at_ms = setup.clock.monotonic_ms()
    with pytest.raises(LogUnavailableError, match=r"ends decisions\[0\] at \d+, before \d+: it lags was not reached"):
        setup.follower.read_to_end(60_000, 14_000, setup.barrier)
    assert setup.clock.monotonic_ms() - began_at_ms == 14_000
    assert setup.follower.state == setup.known


def test_without_a_barrier_it_is() -> None:
    """A standby that is behind decides nothing."""
    setup = Setup()
    setup.follower.read_to_end(60_000, 5_000)
    assert setup.follower.state == setup.known


def test_without_a_barrier_an_end_before_what_was_read_is_not_waited_for() -> None:
    """A take-over reads ahead before it writes its barrier, which alone shows whether the log has lost its end."""
    setup = Setup()
    known_ends = setup.stale_ends.copy()
    setup.stale_ends.clear()
    setup.follower.read_to_end(60_000, 5_000)
    setup.stale_ends.update(known_ends)
    began_at_ms = setup.clock.monotonic_ms()
    setup.follower.read_to_end(60_000, 5_000)
    assert setup.clock.monotonic_ms() - began_at_ms < 1_000
    with pytest.raises(LogUnavailableError, match="was not reached"):
        setup.follower.read_to_end(60_000, 14_000, setup.barrier)


def test_the_last_commit_is_read_as_soon_as_the_broker_knows_it() -> None:
    """The barrier itself is never seen."""
    setup = Setup()
    setup.stale_ends.clear()
    setup.follower.read_to_end(60_000, 14_000, setup.barrier)
    assert setup.follower.state == setup.world.state


def test_a_barrier_before_what_was_read_shows_that_the_log_has_lost_its_end() -> None:
    """Offsets never fall: no broker that lags can acknowledge such a record."""
    setup = Setup()
    lost = {DECISIONS_PARTITION: setup.follower.point.next_offset - 1}
    with pytest.raises(LogContinuityError, match=r"appended to topic decisions at offset \d+.*decisions were lost"):
        setup.follower.read_to_end(60_000, 14_000, lost)
