"""``controlplane pipeline``: the Spark application that writes the Delta tables."""

import re
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Final

import click

from controlplane import cli
from controlplane.bootstrap.connections import kept_offsets, topic_id
from controlplane.cli.common.extras import needs_spark
from controlplane.cli.common.invocation import Invocation, pass_invocation
from controlplane.cli.common.logging_setup import configure_logging
from controlplane.cli.common.metrics_server import metrics_port_option, serve_metrics
from controlplane.cli.common.pairs_option import pairs_of
from controlplane.cli.common.reading import reading
from controlplane.cli.common.settings_option import parse_settings
from controlplane.cli.common.stopping import stop_on_signals
from controlplane.cli.common.tables_option import checkpoints_dir_option, tables_dir_option
from controlplane.cli.pipeline.mending import check, rebuild_checkpoint
from controlplane.cli.pipeline.quiet_start import quiet_start
from controlplane.cli.pipeline.spark_setup import spark_config
from controlplane.errors import ConfigurationError
from streaming.storage import StoragePath
from streaming.tables.tables_folder import cluster_of, refuse_without_tables

_DIGITS_OF_DAYS: Final = 5
_STANDARD_ERROR: Final = Path("-")
_MASTERS: Final = re.compile(
    r"local(\[(\*|\d+)(,\d+)?\])?|local-cluster\[\d+,\d+,\d+\]|spark://[^\s/,]+:\d+(,[^\s/,]+:\d+)*|yarn|k8s://\S+"
)
"""The forms that Spark knows. Several masters of a standalone cluster stand behind each other, with commas."""


def _known_master(_context: click.Context, _option: click.Parameter, master: str) -> str:
    """The value of --master, if Spark knows masters of its form."""
    if master and not _MASTERS.fullmatch(master):
        message = (
            f"{master!r} is no master of Spark: give local[CORES], spark://HOST:PORT, yarn or k8s://https://HOST:PORT"
        )
        raise click.BadParameter(message)
    return master


@click.group()
@click.pass_context
def pipeline(context: click.Context) -> None:
    """The Spark application: the log and the loads as Delta tables."""
    if context.invoked_subcommand != run.name:  # it prints, and ends: its log lines are read by a person
        given = context.find_root().params
        level = given["log_level"] or ("info" if given["verbose"] else "warning")
        configure_logging(given["cluster"], level, given["log_format"], of_service=False)


pipeline.add_command(check)
pipeline.add_command(rebuild_checkpoint)


@pipeline.command("run")
@tables_dir_option("Where the tables are, a folder or s3a://BUCKET/PREFIX.  [default: delta in --data-dir]")
@checkpoints_dir_option
@click.option("--cores", type=click.IntRange(min=1), default=2, help="How many tasks run at once.")
@click.option(
    "--master",
    default="",
    metavar="URL",
    callback=_known_master,
    show_default="they are threads of this process",
    help="Where executors are asked for, such as spark://host:7077. They need the tables' folder at the same place, "
    "unless it is in an object store, and this Python environment. Under spark-submit, its own --master holds.",
)
@click.option(
    "--memory-mib",
    type=click.IntRange(min=512),
    default=1_024,
    help="Heap of Spark's JVM; spark-submit has options of its own.",
)
@click.option(
    "--buckets",
    "bucket_count",
    type=click.IntRange(min=1, max=4_096),
    default=16,
    help="Into how many buckets bundle_load, slots and bundles are divided when they are created: at least the cores, "
    "2 for few bundles.",
)
@click.option(
    "--trigger-interval-ms",
    type=click.IntRange(min=0),
    default=5_000,
    help="How often each stream looks for new records.",
)
@click.option(
    "--max-records-per-batch",
    type=click.IntRange(min=1),
    default=20_000,
    help="How many records of a topic are read at once: fewer take less memory where reports are large, more catch up "
    "faster.",
)
@click.option(
    "--maintenance-interval-ms",
    type=click.IntRange(min=1_000),
    default=3_600_000,
    help="How often small files are joined, and files that no version needs any more are removed.",
)
@click.option(
    "--rule",
    "rules",
    multiple=True,
    metavar="NAME=VALUE",
    help="A setting of the rules that choose candidates, such as split.max_message_rate_per_s=500 or "
    "evaluation_interval_ms=10000; repeatable. docs/reference/pulsar-knobs.md lists them; the defaults are the "
    "published ones.",
)
@click.option(
    "--keep",
    "kept",
    multiple=True,
    metavar="TABLE=DAYS",
    help="Keep the last DAYS days of a table of history, today included, and forget earlier rows, such as "
    "load_reports=7; repeatable. Tables that are not named keep all rows, and decisions always stay. Views lack what "
    "began in days of changes that were forgotten.",
)
@click.option(
    "--accept-gap",
    "accepts_gap",
    is_flag=True,
    help="Record what Kafka no longer has and was not read in the table gaps, and go on behind it: this start only. "
    "A gap in the decisions is never passed.",
)
@click.option(
    "--spark-log",
    type=click.Path(dir_okay=False, allow_dash=True, path_type=Path),
    help="The file for what Spark prints; - leaves it on standard error, where spark-submit always leaves it.  "
    "[default: spark-CLUSTER.log in --data-dir]",
)
@metrics_port_option
@pass_invocation
def run(  # noqa: PLR0913 - one parameter for each option
    invocation: Invocation,
    *,
    tables_dir: StoragePath | None,
    checkpoints_dir: StoragePath | None,
    cores: int,
    master: str,
    memory_mib: int,
    bucket_count: int,
    trigger_interval_ms: int,
    max_records_per_batch: int,
    maintenance_interval_ms: int,
    rules: tuple[str, ...],
    kept: tuple[str, ...],
    accepts_gap: bool,
    spark_log: Path | None,
    metrics_port: int | None,
) -> None:
    """Read the topics into the tables until Ctrl-C or SIGTERM. A restart continues where it stopped."""
    with needs_spark():
        from streaming.config import LoadRuleConfig, PipelineConfig
        from streaming.jobs import pipeline as job

    log_file = (spark_log or invocation.data_dir / f"spark-{invocation.cluster.name}.log").absolute()
    config = PipelineConfig(
        cluster=invocation.cluster,
        kafka=invocation.kafka,
        tables_dir=(tables_dir or invocation.tables_dir).absolute(),
        spark=spark_config(cores, memory_mib, master, None if spark_log == _STANDARD_ERROR else log_file),
        rules=parse_settings("--rule", LoadRuleConfig(), rules),
        trigger_interval_ms=trigger_interval_ms,
        max_records_per_batch=max_records_per_batch,
        maintenance_interval_ms=maintenance_interval_ms,
        bucket_count=bucket_count,
        keep_days=_days_of(kept),
        checkpoints_dir=None if checkpoints_dir is None else checkpoints_dir.absolute(),
    )
    with reading(invocation):
        pass  # said at once where Kafka or the topics are not there: Spark takes its time to start
    with stop_on_signals() as stop:  # from here on, since a wait for Kafka would not look at it
        serve_metrics(metrics_port)
        its_log = "" if config.spark.log_file is None else f", its log is {config.spark.log_file}"
        click.echo(f"starting Spark; the tables are in {config.tables_dir}{its_log} ...", err=True)
        job.run(
            config,
            stop,
            partial(kept_offsets, config.cluster, config.kafka),
            partial(topic_id, config.cluster, config.kafka),
            on_started=lambda _session: click.echo("every stream runs", err=True),
            accepts_gap=accepts_gap,
        )
    click.echo("stopped; the next start goes on from here", err=True)


@pipeline.command("ddl")
@tables_dir_option("Where the tables are.  [default: delta in --data-dir]")
@click.option(
    "--schema",
    default="controlplane",
    show_default=True,
    help="The schema that gets them, with its catalog if it needs one, such as main.controlplane.",
)
@pass_invocation
def ddl(invocation: Invocation, *, tables_dir: StoragePath | None, schema: str) -> None:
    """Print the statements that make tables and views known to a catalog of Spark, Hive or Unity."""
    with needs_spark():
        from streaming.sql.ddl import statements

    folder = (tables_dir or invocation.tables_dir).absolute()
    refuse_without_tables(folder, cluster_of(folder) or invocation.cluster.name)
    for statement in statements(folder, schema):
        click.echo(f"{statement};")


@pipeline.command("register")
@tables_dir_option("Where the tables are.  [default: delta in --data-dir]")
@click.option(
    "--schema", default="controlplane", show_default=True, help="The schema that gets them; created if it is missing."
)
@click.option(
    "--conf",
    "settings",
    multiple=True,
    metavar="NAME=VALUE",
    help="A setting of Spark, such as spark.hadoop.hive.metastore.uris=thrift://host:9083, or a file of such lines; "
    "repeatable.  [default: those of spark-defaults.conf and hive-site.xml]",
)
@pass_invocation
def register(invocation: Invocation, *, tables_dir: StoragePath | None, schema: str, settings: tuple[str, ...]) -> None:
    """Enter tables and views into a catalog of Hive, so that other sessions of Spark know them by their names.

    Repeated, it adds what is new. A table of the same name that lies elsewhere is an error.
    """
    with needs_spark():
        from streaming.session import build_session
        from streaming.sql.registration import HIVE_CATALOG, refuse_without_metastore
        from streaming.sql.registration import register as enter

    folder = (tables_dir or invocation.tables_dir).absolute()
    refuse_without_tables(folder, cluster_of(folder) or invocation.cluster.name)
    given = dict(pairs_of("--conf", settings, "NAME=VALUE"))
    click.echo("starting Spark ...", err=True)
    with quiet_start():
        session = build_session("controlplane-register", spark_config(1, 512), {**HIVE_CATALOG, **given})
    try:
        refuse_without_metastore(session)
        found = enter(session, folder, schema)
    finally:
        session.stop()
    added = f": {', '.join(found.added)}" if found.added else ""
    click.echo(f"{schema}: {len(found.added)} tables added{added}; {len(found.kept)} were there, and the views are")


@pipeline.command("jars")
def jars() -> None:
    """Print the jars that spark-submit has to be given, as it takes them: --jars "$(controlplane pipeline jars)".

    They are downloaded the first time.
    """
    from controlplane.embedded.jars import spark_jars

    click.echo(",".join(map(str, spark_jars())))


@pipeline.command("program")
def program() -> None:
    """Print the file that spark-submit has to be given as the program; the command's own words follow it."""
    click.echo(Path(cli.__path__[0]) / "__main__.py")


def _days_of(kept: Iterable[str]) -> Mapping[str, int]:
    """The days to keep by table.

    Raises:
        ConfigurationError: it is not a table and a number.
    """
    found = {}
    for each in kept:
        name, _, days = each.partition("=")
        if not (days.isascii() and days.isdigit() and len(days) <= _DIGITS_OF_DAYS):
            raise ConfigurationError(f"--keep {each!r:.80} is no TABLE=DAYS, such as load_reports=7")
        found[name] = int(days)
    return found
