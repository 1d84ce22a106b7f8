"""Reads partitions up to an end, within time limits."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from controlplane.core.values.identifiers import TopicPartition
from controlplane.errors import LogContinuityError
from controlplane.ports import Clock, LogReader, RawRecord
from controlplane.topic_reading.deadlines import ReadDeadline
from controlplane.topic_reading.unread import Unread

_POLL_MS: Final = 50
_MAX_RECORDS: Final = 2_000


@dataclass(frozen=True, slots=True)
class ReadLimits:
    """The time limits of a reading.

    Attributes:
        clock: measures the time.
        stall_ms: limit of the time without progress in a partition that is not read to its end.
        total_ms: limit of the total time; None for no limit.
    """

    clock: Clock
    stall_ms: int
    total_ms: int | None = None


def drain(
    reader: LogReader,
    begin: Mapping[TopicPartition, int],
    limits: ReadLimits,
    until: Mapping[TopicPartition, int] | None = None,
    max_records: int = _MAX_RECORDS,
) -> Iterator[Sequence[RawRecord]]:
    """Assign partitions, and read each until an offset is reached.

    The end is defined in :class:`controlplane.topic_reading.unread.Unread`.
    If nothing is to be read, nothing is assigned.

    Args:
        reader: is assigned these partitions, and no others.
        begin: the first offset of each partition.
        limits: of the time. Records of a partition that is already read to its end are no progress, and neither is a
            repeated report of an end: they would hide that another partition brings nothing.
        until: for each partition the offset before which records are wanted; None stands for the present ends.
        max_records: of one batch.

    Yields:
        Batches as they come. The last ones may hold records at or after ``until``.

    Raises:
        LogUnavailableError: the log did not answer, or made no progress for too long; the message names the partitions.
        LogContinuityError: records from ``begin`` on are no longer kept, or a partition ends before ``begin`` because
            it was recreated.
    """
    ends = present_ends(reader, begin) if until is None else until
    unread = Unread(begin, {place: max(offset, ends[place]) for place, offset in begin.items()})
    if not unread.places:
        return  # assigned and never polled, a Kafka client takes a second until it fetches what is assigned next
    reader.assign(begin)
    deadline = ReadDeadline(limits.clock, lambda: _awaited(unread), limits.total_ms, limits.stall_ms)
    while unread.places:
        batch = reader.poll(max_records, _POLL_MS)
        if batch.records:
            yield batch.records
        has_news = unread.take(batch)
        if unread.places:
            deadline.check(progress=has_news)


def _awaited(unread: Unread) -> str:
    places = ", ".join(f"{place.topic}[{place.partition}]" for place in sorted(unread.places))
    return f"the end of {places}{unread.shortfall}"


def present_ends(reader: LogReader, begin: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
    """The last stable offset of each partition, asked of the broker now.

    Args:
        reader: answers the request; its assignment does not change.
        begin: the partitions, and the first offset of each that is to be read.

    Raises:
        LogUnavailableError: the log did not answer.
        LogContinuityError: a partition ends before the offset from which it is to be read: it was recreated.
    """
    ends: dict[TopicPartition, int] = {}
    for topic in sorted({place.topic for place in begin}):
        ends |= reader.end_offsets(topic)
    for place, offset in begin.items():
        if offset > ends[place]:
            raise LogContinuityError(
                f"{place.topic}[{place.partition}] ends at offset {ends[place]}, but {offset} is needed: records were "
                "lost, or the topic was recreated"
            )
    return ends
