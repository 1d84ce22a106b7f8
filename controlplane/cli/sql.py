"""``controlplane sql``: questions to the Delta tables."""

from pathlib import Path

import click

from controlplane.cli.invocation import Invocation, pass_invocation
from controlplane.cli.output import OutputFormat, format_option, print_json, print_rows
from controlplane.cli.pipeline import needs_spark, spark_config
from controlplane.core.plain import Plain


@click.command("sql")
@click.argument("statements", nargs=-1, required=True, metavar="STATEMENT...")
@click.option(
    "--tables-dir",
    type=click.Path(file_okay=False, path_type=Path),
    help="The folder of the tables.  [default: delta in --data-dir]",
)
@format_option
@pass_invocation
def sql(
    invocation: Invocation, *, statements: tuple[str, ...], tables_dir: Path | None, output_format: OutputFormat
) -> None:
    """Run Spark SQL over the pipeline's tables, which are known by their names: "select * from broker_load".

    Several statements share one start of Spark. As JSON there is an object for each statement, with its rows.
    """
    with needs_spark():
        from streaming.query import refuse_without_tables, run_sql
        from streaming.session import build_session

    folder = (tables_dir or invocation.tables_dir).absolute()
    refuse_without_tables(folder)
    click.echo("starting Spark ...", err=True)
    session = build_session(f"controlplane-sql-{invocation.cluster.name}", spark_config(1, 512))
    documents: list[Plain] = []
    try:
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
