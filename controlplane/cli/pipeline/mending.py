"""``controlplane pipeline check`` and ``rebuild-checkpoint``: whether the tables are whole, and mending what is not."""

import threading
import time
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Final

import click

from controlplane.bootstrap.connections import kept_by, topic_id
from controlplane.cli.common.extras import needs_spark
from controlplane.cli.common.failures import ExitStatus
from controlplane.cli.common.invocation import Invocation, pass_invocation
from controlplane.cli.common.output import OutputFormat, format_option, print_json, print_rows
from controlplane.cli.common.reading import reading
from controlplane.cli.common.tables_option import checkpoints_dir_option, tables_dir_option
from controlplane.config import DEAD_LETTERS, DECISIONS, HEARTBEATS, INTENTS, LOAD_REPORTS, MEMBERSHIP
from controlplane.core.values.canonical import CanonicalValue
from controlplane.core.values.identifiers import TopicPartition
from controlplane.inspection.source import LogSource
from controlplane.topic_reading.drain import drain
from streaming.storage import StoragePath
from streaming.tables.tables_folder import refuse_without_tables

if TYPE_CHECKING:
    from streaming.config import PipelineConfig
    from streaming.continuity.table_check import TopicReport
    from streaming.records.decode import RawRow

_TOPICS: Final = (DECISIONS, MEMBERSHIP, INTENTS, HEARTBEATS, LOAD_REPORTS, DEAD_LETTERS)


class _Topic(click.Choice[str]):
    """A topic, or the name of its checkpoint, which has ``_`` where the topic has ``-``."""

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """See :meth:`click.ParamType.convert`."""
        return super().convert(value.replace("_", "-"), param, ctx)


_tables_dir_option = tables_dir_option("Where the tables are.  [default: delta in --data-dir]")


@click.command("check")
@_tables_dir_option
@checkpoints_dir_option
@format_option
@pass_invocation
def check(
    invocation: Invocation,
    *,
    tables_dir: StoragePath | None,
    checkpoints_dir: StoragePath | None,
    output_format: OutputFormat,
) -> ExitStatus:
    """Compare the tables with Kafka: is each record in its table, and once?

    Compared is what Kafka still has and the pipeline has read; what is twice in a table, or missing by the numbers of
    decisions, is found over the whole table. Gaps that were accepted are told, and records of days that --keep has
    forgotten: they are not missing. The command only reads, and the pipeline may run. Exits with 1 if anything is
    missing, twice, or not in Kafka.
    """
    with needs_spark():
        from streaming.continuity.table_check import TableCheck

    config = _config(invocation, tables_dir, checkpoints_dir)
    refuse_without_tables(config.tables_dir, invocation.cluster.name)
    with reading(invocation, "comparing the tables with the log") as source:
        kept = partial(kept_by, source.reader)
        topic_ids = partial(topic_id, invocation.cluster, invocation.kafka)
        table_check = TableCheck(config, kept, topic_ids, partial(_committed, source), time.time_ns() // 1_000_000)
        reports = list(table_check.reports())
    if output_format is OutputFormat.JSON:
        print_json([_document(report) for report in reports])
    else:
        _print(reports)
    return ExitStatus.FAILED if any(report.problems for report in reports) else ExitStatus.DONE


@click.command("rebuild-checkpoint")
@click.argument("topic", type=_Topic(_TOPICS))
@_tables_dir_option
@checkpoints_dir_option
@pass_invocation
def rebuild_checkpoint(
    invocation: Invocation, *, topic: str, tables_dir: StoragePath | None, checkpoints_dir: StoragePath | None
) -> None:
    """Make the checkpoint of a topic's stream anew, from its table, if one of the two is lost, damaged or older.

    No pipeline may run. The next start goes on behind the newest row of each partition. A batch that only a part of the
    topic's tables has is taken out first, if Kafka still has it. The former checkpoint is kept beside the new one.
    """
    with needs_spark():
        from streaming.continuity import rebuilt_checkpoint
        from streaming.contracts.records import TABLE_OF_TOPIC
        from streaming.tables.claim import claimed

    config = _config(invocation, tables_dir, checkpoints_dir)
    refuse_without_tables(config.tables_dir, invocation.cluster.name)
    folder = config.checkpoint_dir(TABLE_OF_TOPIC[topic].name)
    with reading(invocation) as source:
        kept, cluster = partial(kept_by, source.reader), invocation.cluster
        topic_ids = partial(topic_id, cluster, invocation.kafka)
        with claimed(config.tables_dir, threading.Event()):
            made = rebuilt_checkpoint.rebuild_checkpoint(config.tables_dir, folder, cluster, topic, kept, topic_ids)
    places = ", ".join(f"{topic}[{partition}]@{offset}" for partition, offset in sorted(made.begin.items()))
    click.echo(f"the next start of the pipeline reads on from {places}")
    if made.former is not None:
        click.echo(f"the former checkpoint is {made.former}")


def _config(
    invocation: Invocation, tables_dir: StoragePath | None, checkpoints_dir: StoragePath | None
) -> "PipelineConfig":
    from streaming.config import PipelineConfig, SparkConfig

    folder = (tables_dir or invocation.tables_dir).absolute()
    return PipelineConfig(
        invocation.cluster,
        invocation.kafka,
        folder,
        SparkConfig(jars=()),
        checkpoints_dir=None if checkpoints_dir is None else checkpoints_dir.absolute(),
    )


def _committed(source: LogSource, topic: str, partition: int, span: range) -> "Iterator[RawRow]":
    """The committed records of a partition in a span of offsets."""
    from streaming.records.decode import RawRow

    place = TopicPartition(topic, partition)
    for records in drain(source.reader, {place: span.start}, source.limits, {place: span.stop}):
        for each in records:
            if each.offset < span.stop:
                yield RawRow(
                    each.partition, each.offset, each.append_time_ms, each.key, each.value, each.is_append_time
                )


def _print(reports: "list[TopicReport]") -> None:
    rows: list[dict[str, CanonicalValue]] = [
        {
            "topic": report.topic,
            "compared": report.record_count,
            "refused": report.refused_count,
            "problems": len(report.problems),
        }
        for report in reports
    ]
    print_rows(rows, ("topic", "compared", "refused", "problems"))
    for report in reports:
        for problem in report.problems:
            click.echo(f"PROBLEM {problem}")
        for note in report.notes:
            click.echo(f"note    {report.topic}: {note}")


def _document(report: "TopicReport") -> dict[str, CanonicalValue]:
    return {
        "topic": report.topic,
        "compared": report.record_count,
        "refused": report.refused_count,
        "problems": list(report.problems),
        "notes": list(report.notes),
    }
