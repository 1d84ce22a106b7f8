"""Gaps between what a stream has read and what Kafka still has: found before it starts, told, and recorded."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Final, NamedTuple, TypeAlias

import structlog

from controlplane.config import DECISIONS
from controlplane.errors import LogContinuityError
from streaming.config import PipelineConfig
from streaming.continuity.checkpoints import Checkpoint, Offsets, move_behind, read_checkpoint, store_topic_id
from streaming.contracts.catalog import LAST_TABLE
from streaming.contracts.days import day_of_ms
from streaming.contracts.gaps import GAPS_TABLE
from streaming.contracts.records import TABLE_OF_TOPIC
from streaming.error_texts import HOW_TO_MEND
from streaming.storage import StoragePath
from streaming.tables.table_writer import TableWriter

KeptOffsets: TypeAlias = Callable[[str], Mapping[int, range]]
"""For a topic without the cluster's prefix the offsets that Kafka has of each partition, up to the last stable one."""
TopicIds: TypeAlias = Callable[[str], str | None]
"""For a topic without the cluster's prefix Kafka's id of it; None: the broker gives topics none."""

_APP_ID: Final = "controlplane.gaps"
"""The writer's name in the commits of the table."""
_MOST_NAMED: Final = 3
"""How many gaps an error names."""

_log = structlog.get_logger(__name__)


class Gap(NamedTuple):
    """Offsets of a partition that are not in Kafka any more and were not read."""

    topic: str
    partition: int
    offsets: range

    def __str__(self) -> str:
        """Topic, partition, first and last offset."""
        return f"{self.topic}[{self.partition}]@{self.offsets.start} to {self.offsets.stop - 1}"


def gaps_between(topic: str, begin: Offsets, kept: Mapping[int, range]) -> list[Gap]:
    """What is missing between the next offsets of a stream and the first ones that Kafka has.

    Args:
        topic: without the cluster's prefix.
        begin: the next offset of each partition. A partition that is not there was added later, and is read from 0.
        kept: what Kafka has.
    """
    firsts = {partition: (begin.get(partition, 0), offsets.start) for partition, offsets in kept.items()}
    return [Gap(topic, each, range(*span)) for each, span in sorted(firsts.items()) if span[0] < span[1]]


def refuse_recreated(topic: str, begin: Offsets, kept: Mapping[int, range]) -> None:
    """Check that Kafka's partitions reach as far as they were read.

    Raises:
        LogContinuityError: they do not: what is there now is not what was read before.
    """
    for partition, offset in sorted(begin.items()):
        end = kept[partition].stop if partition in kept else None
        if end is None or end < offset:
            ends = "is gone" if end is None else f"ends at offset {end}"
            raise LogContinuityError(
                f"{topic}[{partition}] {ends} in Kafka, but the stream goes on at {offset}: the topic was deleted and "
                "made again, or its newest records were lost. What is in it now does not continue the tables, so "
                f"--accept-gap does not pass it; {HOW_TO_MEND}"
            )


def refuse_another(topic: str, read_id: str | None, topic_id: str | None) -> None:
    """Check that a topic is the one that the stream has read, as far as both ids are known.

    A topic that was made again and has grown beyond what was read is told from the former one by its id alone
    (KIP-516).

    Args:
        topic: without the cluster's prefix.
        read_id: the id of the topic that was read.
        topic_id: the id of the topic that is there.

    Raises:
        LogContinuityError: it is another one.
    """
    if None in (read_id, topic_id) or read_id == topic_id:
        return
    raise LogContinuityError(
        f"{topic} has the id {topic_id} in Kafka, but the stream has read {read_id}: the topic was deleted "
        "and made again, or this is another cluster of Kafka. What is in it does not continue the tables, so "
        f"--accept-gap does not pass it; {HOW_TO_MEND}"
    )


def unrecorded(gap: Gap, recorded: Iterable[Gap]) -> Gap | None:
    """What of a gap is behind those that are recorded; None if nothing is."""
    of_partition = [each.offsets for each in recorded if each[:2] == gap[:2]]
    start = max((each.stop for each in of_partition if each.start <= gap.offsets.start), default=0)
    rest = range(max(start, gap.offsets.start), gap.offsets.stop)
    return gap._replace(offsets=rest) if rest else None


class GapsTable:
    """The table ``gaps``.

    Args:
        tables_dir: the folder of the tables, which are there.
    """

    def __init__(self, tables_dir: StoragePath) -> None:
        """Open it."""
        self._table = TableWriter(tables_dir, GAPS_TABLE, _APP_ID)

    def recorded(self, topic: str) -> list[Gap]:
        """The gaps of a topic, in order."""
        rows = self._table.rows(columns=["topic", "partition", "first_offset", "last_offset"]).to_pylist()
        gaps = [Gap(row["topic"], row["partition"], range(row["first_offset"], row["last_offset"] + 1)) for row in rows]
        return sorted((gap for gap in gaps if gap.topic == topic), key=lambda gap: (gap.partition, gap.offsets.start))

    def record(self, gaps: Iterable[Gap], read_until_ms: int, found_at_ms: int) -> None:
        """Add what is not recorded yet of gaps of one topic."""
        new = [rest for gap in gaps if (rest := unrecorded(gap, self.recorded(gap.topic))) is not None]
        if not new:
            return
        day = day_of_ms(found_at_ms)
        rows = [
            (gap.topic, gap.partition, gap.offsets.start, gap.offsets.stop - 1, read_until_ms, found_at_ms, day)
            for gap in new
        ]
        written = self._table.written_version
        version = 0 if written is None else written + 1
        self._table.append((dict(zip(GAPS_TABLE.columns, row, strict=True)) for row in rows), version)


def check_continuity(
    config: PipelineConfig,
    topic: str,
    kept: Mapping[int, range],
    now_ms: int,
    *,
    accepts_gap: bool,
    topic_id: str | None,
) -> None:
    """Check that a stream that is about to start finds all it has not read; a gap may be accepted.

    An accepted gap is recorded, and then the checkpoint is moved behind it. Spark itself is never told to pass losses:
    those that come later stop the stream again. Where the table has all that Kafka lost, nothing is to be accepted.
    The checkpoint notes which topic is read; if nothing was read of the former one, any topic continues the table.

    Args:
        config: the pipeline's settings.
        topic: without the cluster's prefix.
        kept: what Kafka has of it.
        now_ms: the time, since 1970.
        accepts_gap: whether a gap is to be recorded and passed.
        topic_id: Kafka's id of it; None: it is not known.

    Raises:
        LogContinuityError: records are missing, and it may not go on without them; or the topic was recreated.
        PrerequisiteError: the checkpoint is damaged.
        RetryableError: the checkpoint's storage does not answer.
        OSError: it fails where something is written.
    """
    name = TABLE_OF_TOPIC[topic].name
    folder = config.checkpoint_dir(name)
    checkpoint = read_checkpoint(folder, config.cluster.topic(topic))
    if checkpoint is not None and checkpoint.end:
        if any(checkpoint.end.values()):
            refuse_another(topic, checkpoint.topic_id, topic_id)
        _pass_gaps(config, topic, checkpoint, kept, now_ms, accepts_gap=accepts_gap)
    if topic_id is not None and (checkpoint is None or topic_id != checkpoint.topic_id):
        store_topic_id(folder, topic_id)


def _pass_gaps(
    config: PipelineConfig,
    topic: str,
    checkpoint: Checkpoint,
    kept: Mapping[int, range],
    now_ms: int,
    *,
    accepts_gap: bool,
) -> None:
    """Record what is missing, and move the checkpoint behind it; refuse what may not be passed."""
    refuse_recreated(topic, checkpoint.end, kept)
    unread = gaps_between(topic, checkpoint.begin, kept)
    if not unread:
        return
    missing = gaps_between(topic, written_up_to(config, topic, checkpoint), kept)
    if missing and (topic == DECISIONS or not accepts_gap):
        raise LogContinuityError(_sentence(topic, missing, checkpoint))
    GapsTable(config.tables_dir).record(missing, checkpoint.planned_at_ms or 0, now_ms)
    move_behind(checkpoint, config.cluster.topic(topic), {gap.partition: gap.offsets.stop for gap in unread})
    event = (
        "gap accepted and recorded in the table gaps" if missing else "the batch that Kafka no longer has is written"
    )
    _log.warning(event, stream=TABLE_OF_TOPIC[topic].name, gaps=[str(gap) for gap in missing])


def written_up_to(config: PipelineConfig, topic: str, checkpoint: Checkpoint) -> Offsets:
    """The next offset of each partition that is not in the tables: a batch may be in them that is not committed."""
    last = LAST_TABLE.get(topic, TABLE_OF_TOPIC[topic])
    batch = checkpoint.batch
    is_written = batch is not None and TableWriter(config.tables_dir, last, checkpoint.query_id).has(batch)
    return checkpoint.end if is_written else checkpoint.begin


def _sentence(topic: str, gaps: list[Gap], checkpoint: Checkpoint) -> str:
    lost = ", ".join(_named(gaps))
    planned_at_ms = checkpoint.planned_at_ms
    since = "the stream was stopped before its first batch"
    if planned_at_ms is not None:
        since = f"their last batch is of {datetime.fromtimestamp(planned_at_ms / 1_000, UTC).isoformat(' ', 'seconds')}"
    head = f"Kafka no longer has {lost}, which the tables do not have either: {since}"
    if topic == DECISIONS:
        return (
            f"{head}. What these decisions changed is unknown, so --accept-gap does not pass them: begin new tables; "
            f"{HOW_TO_MEND}"
        )
    return f"{head}. Start with --accept-gap to record this in the table {GAPS_TABLE.name} and go on behind it"


def _named(gaps: list[Gap]) -> Iterator[str]:
    yield from map(str, gaps[:_MOST_NAMED])
    if len(gaps) > _MOST_NAMED:
        yield f"and gaps in {len(gaps) - _MOST_NAMED} more partitions"
