"""A follower confirms a table only if it is not older than what was committed when the confirmation was asked for.

The topic is in memory: epochs whose markers may be late, foreign records, repairs, and reads in small batches at any
moment, also while a transaction is open.
"""

from enum import Enum

from hypothesis import example, given
from hypothesis import strategies as st

from controlplane.config import ROUTING_TABLE
from controlplane.core.values.positions import TABLE_PLACE
from controlplane.ports import OutgoingRecord, PolledBatch
from controlplane.testing import MemoryEventWriter, MemoryLogReader
from controlplane.topic_reading.table_follower import TableFollower
from tests.helpers.followed_table import CLUSTER, TOPIC, FollowedTable

_FOREIGN_KEY = b"nonsense"


class Step(Enum):
    """What happens next."""

    COMMIT = "an epoch is committed"
    COMMIT_AND_READ = "an epoch is committed, and read while its transaction is open"
    COMMIT_UNMARKED = "an epoch is committed whose marker is late"
    MARK = "the late marker is written"
    FOREIGN = "a foreign record is written"
    REPAIR = "the leader writes the whole table again"
    ASK = "a confirmation is asked for"
    WRONG_MARK = "the client keeps the high watermark of a broker that leads the partition no longer, once"
    READ = "one batch is read"


class DoubtfulReader(MemoryLogReader):
    """Brings few records with each poll, and may be wrong about the high watermark.

    Attributes:
        most: the greatest number of records.
        is_wrong: whether the next records come with a high watermark that knows of nothing behind them.
    """

    most = 2_000
    is_wrong = False

    def poll(self, max_records: int, timeout_ms: int) -> PolledBatch:
        """At most so many records."""
        batch = super().poll(min(max_records, self.most), timeout_ms)
        if not (self.is_wrong and batch.records):
            return batch
        self.is_wrong = False
        return batch._replace(high_watermarks={TABLE_PLACE: batch.records[-1].offset + 1})


class Asked:
    """A follower, the topic that it reads, and what was committed when the last confirmation was asked for."""

    def __init__(self, most: int) -> None:
        self._setting = FollowedTable()
        self._reader = DoubtfulReader(CLUSTER, self._setting.broker)
        self._reader.most = most
        self._follower = TableFollower(self._reader)
        self._foreign = MemoryEventWriter(CLUSTER, self._setting.broker)
        self._is_unmarked = False
        self._asked_at_epoch = 0
        self._was_wrong = False
        self.is_asked = True
        self.confirmations = 0

    def do(self, step: Step) -> None:
        """Let it happen; nothing is committed while a marker is late, as with Kafka."""
        feed, broker = self._setting.feed, self._setting.broker
        match step:
            case Step.READ:
                self._read()
            case Step.ASK:
                self._follower.fetch_anew()
                self._asked_at_epoch = feed.epoch
                self._was_wrong = self._reader.is_wrong = False
                self.is_asked = True
            case Step.WRONG_MARK:
                self._reader.is_wrong = not self._was_wrong
                self._was_wrong = True
            case Step.MARK:
                broker.write_markers(TOPIC, 0)
                self._is_unmarked = False
            case Step.FOREIGN:
                self._foreign.send(OutgoingRecord(ROUTING_TABLE, _FOREIGN_KEY, b"garbage", 0))
            case _ if self._is_unmarked:
                return
            case Step.COMMIT_UNMARKED:
                broker.hold_markers_back(TOPIC, 0)
                self._is_unmarked = True
                self._commit()
            case Step.COMMIT_AND_READ:
                broker.while_open = self._read
                self._commit()
                broker.while_open = lambda: None
            case Step.REPAIR:
                feed.repair([_FOREIGN_KEY])
                self._commit()
            case Step.COMMIT:
                self._commit()

    def confirms_within(self, *steps: Step) -> bool:
        """Whether any of these steps confirms a table."""
        before = self.confirmations
        for step in steps:
            self.do(step)
        return self.confirmations > before

    def _commit(self) -> None:
        """Commit an epoch; each third one has no row but its marker."""
        feed = self._setting.feed
        if feed.epoch % 3 != 1:
            feed.node("ab"[feed.epoch % 2]).slot(0, "ab"[feed.epoch % 2])
        feed.commit()

    def _read(self) -> None:
        if self._follower.step(0).confirms:
            self.confirmations += 1
            self.is_asked = False
            table = self._follower.table
            assert (0 if table is None else table.epoch) >= self._asked_at_epoch


@given(st.integers(1, 12), st.lists(st.sampled_from(Step), max_size=60))
@example(2_000, [Step.COMMIT, Step.COMMIT_UNMARKED, Step.READ, Step.ASK, Step.READ, Step.READ])
@example(2_000, [Step.COMMIT, Step.READ, Step.ASK, Step.COMMIT_UNMARKED, Step.ASK, Step.READ, Step.FOREIGN, Step.READ])
@example(12, [*[Step.COMMIT] * 20, Step.ASK, Step.WRONG_MARK, *[Step.READ] * 3])
def test_a_confirmed_table_holds_everything_that_was_committed_before(most: int, steps: list[Step]) -> None:
    """Whatever else happens; and when the markers are written and the table is repaired, it is confirmed."""
    asked = Asked(most)
    for step in steps:
        asked.do(step)
    # A reading that is asked for is not begun again: the node asks for the next one when it has been confirmed.
    ask = [] if asked.is_asked else [Step.ASK]
    assert asked.confirms_within(Step.MARK, Step.REPAIR, *ask, *[Step.READ] * 400)


@given(st.lists(st.sampled_from([Step.COMMIT, Step.COMMIT_AND_READ]), min_size=1, max_size=10))
def test_epochs_that_never_cease_hold_no_confirmation_up(epochs: list[Step]) -> None:
    """No poll finds the end, and most find a transaction open; four epochs after the question it is confirmed."""
    asked = Asked(2_000)
    asked.do(Step.COMMIT)
    asked.do(Step.READ)
    for number in range(3):
        asked.do(Step.ASK)
        beside = [epochs[(number + each) % len(epochs)] for each in range(4)]
        assert asked.confirms_within(*(step for epoch in beside for step in (epoch, Step.READ)))
