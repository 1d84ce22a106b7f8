"""``controlplane sql``: queries of the Delta tables."""

from pathlib import Path

import click

from controlplane.cli.common.invocation import DELTA_FOLDER, DEMO_FOLDER, Invocation, pass_invocation
from controlplane.cli.common.output import OutputFormat, format_option, print_json, print_rows
from controlplane.cli.pipeline.commands import needs_spark, spark_config
from controlplane.cli.pipeline.quiet_start import quiet_start
from controlplane.core.values.canonical import CanonicalValue
from controlplane.errors import PrerequisiteError


@click.command("sql")
@click.argument("statements", nargs=-1, required=True, metavar="STATEMENT...")
@click.option(
    "--tables-dir",
    type=click.Path(file_okay=False, path_type=Path),
    help="The folder of the tables.  [default: delta in --data-dir, or the demo's]",
)
@format_option
@pass_invocation
def sql(
    invocation: Invocation, *, statements: tuple[str, ...], tables_dir: Path | None, output_format: OutputFormat
) -> None:
    """Run Spark SQL on the pipeline's tables by their names: "select * from broker_load".

    The tables are those of the cluster that the other commands use. The folder, the cluster and the newest decision in
    the tables are printed on standard error.

    Several statements share one start of Spark. JSON has an object for each statement, with its rows.
    """
    with needs_spark():
        from streaming.query import newest_seq, refuse_without_tables, run_sql
        from streaming.session import build_session
        from streaming.warehouse import cluster_of

    folder = (tables_dir or invocation.tables_dir).absolute()
    # A given folder is used whichever cluster's tables are in it.
    cluster = (cluster_of(folder) if tables_dir else None) or invocation.cluster.name
    try:
        refuse_without_tables(folder, cluster)
    except PrerequisiteError as error:
        raise PrerequisiteError(f"{error}{_where_else(invocation, folder)}") from error
    click.echo("starting Spark ...", err=True)
    with quiet_start():
        session = build_session(f"controlplane-sql-{cluster}", spark_config(1, 512))
    documents: list[CanonicalValue] = []
    try:
        seq = newest_seq(session, folder)
        newest = "no decision yet" if seq is None else f"newest seq {seq}"
        click.echo(f"answered from {folder}: cluster {cluster}, {newest}", err=True)
        for statement in statements:
            result = run_sql(session, folder, statement)
            rows = [dict(zip(result.columns, row, strict=True)) for row in result.rows]
            documents.append({"statement": statement, "columns": list(result.columns), "rows": list(rows)})
            if output_format is OutputFormat.TEXT:
                print_rows(rows, result.columns, statement if len(statements) > 1 else "")
    finally:
        session.stop()
    if output_format is OutputFormat.JSON:
        print_json(documents)


def _where_else(invocation: Invocation, folder: Path) -> str:
    """A hint where the demo's tables are; empty if there are none."""
    demo = (invocation.data_dir / DEMO_FOLDER / DELTA_FOLDER).absolute()
    return f"; the demo's are read with --tables-dir {demo}" if demo != folder and demo.exists() else ""
