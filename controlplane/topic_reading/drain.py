"""Reading partitions up to an end: which end that is, when the reading stands still, and how long it may take."""

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
    """How long a reading may take.

    Attributes:
        clock: measures it.
        stall_ms: without anything new from a partition that is not read to its end.
        total_ms: in all; None for as long as something new comes.
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
    """Assign partitions and read them until each was read up to an offset, or reports that it ends before.

    What counts as the end is described in :class:`controlplane.topic_reading.unread.Unread`.

    Args:
        reader: reads from here on what this assigns.
        begin: the first offset of each partition.
        limits: how long it may take. News of a partition that is read to its end already do not count, and neither does
            an end that is reported again: they would hide that nothing comes of another partition.
        until: for each partition the offset before which records are wanted; None asks for the present ends.
        max_records: of one batch.

    Yields:
        Batches as they come. The last ones may hold records behind ``until``.

    Raises:
        LogUnavailableError: the log did not answer, or nothing new came for too long; the message names the partitions.
        LogContinuityError: records from ``begin`` on are no longer kept, or a partition ends before: it was recreated.
    """
    ends = present_ends(reader, begin) if until is None else until
    reader.assign(begin)
    unread = Unread(begin, {place: max(offset, ends[place]) for place, offset in begin.items()})
    deadline = ReadDeadline(limits.clock, "", limits.total_ms, limits.stall_ms)
    while unread.places:
        batch = reader.poll(max_records, _POLL_MS)
        if batch.records:
            yield batch.records
        has_news = unread.take(batch)
        if unread.places:
            places = ", ".join(f"{place.topic}[{place.partition}]" for place in sorted(unread.places))
            deadline.what = f"the end of {places}"
            deadline.check(progress=has_news)


def present_ends(reader: LogReader, begin: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
    """The last stable offset of each partition, as the broker says it now.

    Args:
        reader: is only asked; what it is assigned stays.
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
                f"{place.topic}[{place.partition}] ends at offset {ends[place]}, needed is {offset}: records were "
                "lost, or the topic was recreated"
            )
    return ends
