"""``controlplane table``: the routing table as it stands."""

import click

from controlplane.bootstrap import readers
from controlplane.cli import table_view
from controlplane.cli.failures import ExitStatus
from controlplane.cli.invocation import Invocation, pass_invocation
from controlplane.cli.output import OutputFormat, format_option, print_json, print_rows
from controlplane.cli.reading import reading, say_that_nobody_led


@click.group()
def table() -> None:
    """The routing table: who owns which slot and bundle."""


@table.command("show")
@click.option(
    "--by", "grouping", type=click.Choice(["slot", "node"]), default="slot", help="A row for each slot or node."
)
@format_option
@pass_invocation
def show(invocation: Invocation, grouping: str, output_format: OutputFormat) -> ExitStatus:
    """Print the newest epoch of the routing table."""
    with reading(invocation) as reader:
        current = readers.read_routing_table(reader)
    if current is None:
        say_that_nobody_led(invocation, "routing table")
        return ExitStatus.FAILED
    by_node = grouping == "node"
    rows = table_view.node_rows(current) if by_node else table_view.slot_rows(current)
    if output_format is OutputFormat.JSON:
        print_json(table_view.table_document(current, "nodes" if by_node else "slots", rows))
        return ExitStatus.DONE
    click.echo(table_view.headline(current))
    print_rows(rows, table_view.NODE_COLUMNS if by_node else table_view.SLOT_COLUMNS)
    if not by_node:
        print_rows(table_view.bundle_rows(current), table_view.BUNDLE_COLUMNS)
    return ExitStatus.DONE
