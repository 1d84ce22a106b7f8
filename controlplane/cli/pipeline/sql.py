"""``controlplane sql``: queries of the Delta tables."""

from collections.abc import Callable, Sequence
from contextlib import closing
from enum import Enum
from typing import TYPE_CHECKING

import click

from controlplane.cli.common.extras import needs_extra, needs_spark
from controlplane.cli.common.invocation import DELTA_FOLDER, DEMO_FOLDER, Invocation, pass_invocation
from controlplane.cli.common.output import OutputFormat, format_option, print_json, print_rows
from controlplane.cli.common.tables_option import tables_dir_option
from controlplane.cli.pipeline.arrow_without_pandas import load_arrow_without_pandas
from controlplane.cli.pipeline.quiet_start import quiet_start
from controlplane.cli.pipeline.spark_setup import spark_config
from controlplane.core.values.canonical import CanonicalValue
from controlplane.errors import PrerequisiteError, UserError
from streaming.storage import StoragePath
from streaming.tables.tables_folder import cluster_of, refuse_without_tables

if TYPE_CHECKING:
    from streaming.sql.answers import SqlEngine


class Engine(Enum):
    """What carries statements out."""

    LOCAL = "local"
    SPARK = "spark"


@click.command("sql")
@click.argument("statements", nargs=-1, required=True, metavar="STATEMENT...")
@tables_dir_option("Where the tables are.  [default: delta in --data-dir, or the demo's]")
@click.option(
    "--engine",
    type=click.Choice(Engine, case_sensitive=False),
    default=Engine.LOCAL,
    show_default="local",
    help="local: DuckDB, at once and without Java. spark: Spark SQL, for its dialect and for tables that only Spark "
    "reads; it takes 5 to 20 s to start.",
)
@format_option
@pass_invocation
def sql(
    invocation: Invocation,
    *,
    statements: tuple[str, ...],
    tables_dir: StoragePath | None,
    engine: Engine,
    output_format: OutputFormat,
) -> None:
    """Query the pipeline's tables by their names: "select * from broker_load".

    SELECT, VALUES, SHOW TABLES and DESCRIBE are carried out, and nothing else. The tables are those of the cluster that
    the other commands use. The folder, the cluster and the newest decision in the tables are printed on standard error.

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
        click.echo(f"answered from {folder}: cluster {cluster}, {_newest(asked)}", err=True)
        for statement in statements:
            result = asked.run(statement)
            _refuse_twins(result.columns)
            rows = [dict(zip(result.columns, row, strict=True)) for row in result.rows]
            documents.append({"statement": statement, "columns": list(result.columns), "rows": list(rows)})
            if output_format is OutputFormat.TEXT:
                print_rows(rows, result.columns, statement if len(statements) > 1 else "")
    if output_format is OutputFormat.JSON:
        print_json(documents)


def _newest(engine: "SqlEngine") -> str:
    """How far the tables are. A table of decisions that cannot be read keeps no other one from being read."""
    try:
        seq = engine.newest_seq()
    except UserError as error:
        return f"newest seq unknown: {error}"
    return "no decision yet" if seq is None else f"newest seq {seq}"


def _refuse_twins(columns: Sequence[str]) -> None:
    """Refuse an answer of which a row with names would hide a part."""
    twins = sorted({name for name in columns if columns.count(name) > 1})
    if twins:
        raise UserError(f"several columns are named {', '.join(twins)}: give each a name of its own with AS")


def _local() -> Callable[[StoragePath], "SqlEngine"]:
    with needs_extra("sql", "controlplane sql", {"deltalake", "duckdb", "pyarrow"}):
        load_arrow_without_pandas()  # deltalake would load it with pandas, when it opens a table
        from streaming.sql.local import LocalEngine

    return LocalEngine


def _spark() -> Callable[[StoragePath], "SqlEngine"]:
    with needs_spark():
        from streaming.session import build_session
        from streaming.sql.spark import SparkEngine

    def start(folder: StoragePath) -> SparkEngine:
        click.echo("starting Spark ...", err=True)
        with quiet_start():
            session = build_session("controlplane-sql", spark_config(1, 512))
        try:
            return SparkEngine(session, folder)
        except BaseException:
            session.stop()
            raise

    return start


def _where_else(invocation: Invocation, folder: StoragePath) -> str:
    """A hint where the demo's tables are; empty if there are none."""
    demo = (invocation.data_dir / DEMO_FOLDER / DELTA_FOLDER).absolute()
    return f"; the demo's are read with --tables-dir {demo}" if demo != folder and demo.exists() else ""
