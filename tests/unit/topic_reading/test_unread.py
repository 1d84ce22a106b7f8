"""When a partition counts as read to its end: by offsets, whatever ends a broker reports before them."""

import pytest

from controlplane.config import DECISIONS, HEARTBEATS
from controlplane.core.values.identifiers import TopicPartition
from controlplane.ports import PartitionEnd, PolledBatch, RawRecord
from controlplane.topic_reading.unread import Unread

PLACE, OTHER = TopicPartition(DECISIONS, 0), TopicPartition(HEARTBEATS, 1)


def batch(*offsets: int, end: PartitionEnd) -> PolledBatch:
    """Records of the first partition, and its end."""
    records = [RawRecord(DECISIONS, 0, offset, 0, b"k", b"v") for offset in offsets]
    return PolledBatch(records, {PLACE: end})


def test_an_end_before_the_offset_to_be_read_to_is_no_end() -> None:
    """It is what a former leader of the partition, or one whose high watermark lags, takes for its end."""
    unread = Unread({PLACE: 0}, {PLACE: 8})
    assert unread.take(batch(5, end=PartitionEnd(6, 6)))
    assert not unread.take(batch(end=PartitionEnd(6, 6)))
    assert unread.places == {PLACE}
    assert unread.shortfall == "; the broker that answers ends decisions[0] at 6, before 8: it lags"
    assert unread.take(batch(end=PartitionEnd(8, 8)))
    assert not unread.places
    assert not unread.shortfall


def test_an_end_at_an_open_transaction_is_waited_for() -> None:
    """It may be committed already, with a marker that is late."""
    unread = Unread({PLACE: 0}, {PLACE: 8})
    assert not unread.take(batch(end=PartitionEnd(6, 9)))
    assert unread.shortfall == "; the broker that answers ends decisions[0] at 6, before 8: a transaction is open"


@pytest.mark.parametrize(("answered_end", "barrier", "is_read"), [(3, 5, False), (5, 5, True), (7, 5, True)])
def test_an_end_counts_from_the_barrier_on(answered_end: int, barrier: int, is_read: bool) -> None:
    """Before it, the broker that was asked for the end lags as well."""
    unread = Unread({PLACE: 0}, {PLACE: answered_end}, {PLACE: barrier})
    unread.take(batch(*range(answered_end), end=PartitionEnd(answered_end, answered_end)))
    assert (not unread.places) is is_read


def test_a_partition_whose_end_lies_before_its_beginning_stays_unread() -> None:
    """The reader raises an error of its own."""
    assert Unread({PLACE: 5, OTHER: 3}, {PLACE: 4, OTHER: 3}).places == {PLACE}
