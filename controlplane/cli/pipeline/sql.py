"""``controlplane sql``: queries of the Delta tables."""

from collections.abc import Callable
from contextlib import closing
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

import click

from controlplane.cli.common.invocation import DELTA_FOLDER, DEMO_FOLDER, Invocation, pass_invocation
from controlplane.cli.common.output import OutputFormat, format_option, print_json, print_rows
from controlplane.cli.pipeline.commands import needs_spark, spark_config
from controlplane.cli.pipeline.quiet_start import quiet_start
from controlplane.core.values.canonical import CanonicalValue
from controlplane.errors import MissingExtraError, PrerequisiteError
from streaming.warehouse import cluster_of, refuse_without_tables

if TYPE_CHECKING:
    from streaming.sql.answers import SqlEngine


class Engine(Enum):
    """What answers."""

    LOCAL = "local"
    SPARK = "spark"


@click.command("sql")
@click.argument("statements", nargs=-1, required=True, metavar="STATEMENT...")
@click.option(
    "--tables-dir",
    type=click.Path(file_okay=False, path_type=Path),
    help="The folder of the tables.  [default: delta in --data-dir, or the demo's]",
)
@click.option(
    "--engine",
    type=click.Choice(Engine, case_sensitive=False),
    default=Engine.LOCAL,
    show_default=True,
    help="local: DuckDB in this process, which answers at once and needs no Java. spark: Spark SQL, for what one "
    "process cannot hold.",
)
@format_option
@pass_invocation
def sql(
    invocation: Invocation,
    *,
    statements: tuple[str, ...],
    tables_dir: Path | None,
    engine: Engine,
    output_format: OutputFormat,
) -> None:
    """Ask the pipeline's tables by their names: "select * from broker_load".

    Statements that read are carried out, and no others. The tables are those of the cluster that the other commands
    use. The folder, the cluster and the newest decision in the tables are printed on standard error.

    JSON has an object for each statement, with its rows.
    """
    folder = (tables_dir or invocation.tables_dir).absolute()
    # A given folder is used whichever cluster's tables are in it.
    cluster = (cluster_of(folder) if tables_dir else None) or invocation.cluster.name
    open_engine = _local() if engine is Engine.LOCAL else _spark()
    try:
        refuse_without_tables(folder, cluster)
    except PrerequisiteError as error:
        raise PrerequisiteError(f"{error}{_where_else(invocation, folder)}") from error
    documents: list[CanonicalValue] = []
    with closing(open_engine(folder)) as asked:
        seq = asked.newest_seq()
        newest = "no decision yet" if seq is None else f"newest seq {seq}"
        click.echo(f"answered from {folder}: cluster {cluster}, {newest}", err=True)
        for statement in statements:
            result = asked.run(statement)
            rows = [dict(zip(result.columns, row, strict=True)) for row in result.rows]
            documents.append({"statement": statement, "columns": list(result.columns), "rows": list(rows)})
            if output_format is OutputFormat.TEXT:
                print_rows(rows, result.columns, statement if len(statements) > 1 else "")
    if output_format is OutputFormat.JSON:
        print_json(documents)


def _local() -> Callable[[Path], "SqlEngine"]:
    try:
        from streaming.sql.local import LocalEngine
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in {"deltalake", "duckdb", "pyarrow"}:
            raise
        raise MissingExtraError("sql", "--engine local") from error
    return LocalEngine


def _spark() -> Callable[[Path], "SqlEngine"]:
    with needs_spark():
        from streaming.session import build_session
        from streaming.sql.spark import SparkEngine

    def start(folder: Path) -> SparkEngine:
        click.echo("starting Spark ...", err=True)
        with quiet_start():
            return SparkEngine(build_session("controlplane-sql", spark_config(1, 512)), folder)

    return start


def _where_else(invocation: Invocation, folder: Path) -> str:
    """A hint where the demo's tables are; empty if there are none."""
    demo = (invocation.data_dir / DEMO_FOLDER / DELTA_FOLDER).absolute()
    return f"; the demo's are read with --tables-dir {demo}" if demo != folder and demo.exists() else ""
