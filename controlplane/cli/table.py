"""``controlplane table``: the routing table as it stands."""

import click

from controlplane.bootstrap import readers
from controlplane.cli import table_status_view, table_view
from controlplane.cli.failures import ExitStatus
from controlplane.cli.invocation import Invocation, pass_invocation
from controlplane.cli.nodes import LOOK_BACK_MS
from controlplane.cli.output import OutputFormat, format_option, print_json, print_rows
from controlplane.cli.reading import reading, say_that_nobody_led
from controlplane.codec.framing import framing_with
from controlplane.core.table_status import table_status


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


@table.command("status")
@format_option
@pass_invocation
def status(invocation: Invocation, output_format: OutputFormat) -> ExitStatus:
    """Say how the slots stand: balanced, in sync, protected, and how many each node leads and follows.

    Balanced is what the cluster's slot policy calls so. In sync is what the nodes' last heartbeats say.
    """
    with reading(invocation) as reader:
        state = readers.read_state(reader)
        if not state.log_id:
            say_that_nobody_led(invocation, "routing table")
            return ExitStatus.FAILED
        living = {node_id for node_id, node in state.nodes.items() if node.lives}
        framing = framing_with(invocation.kafka.schema_ids)
        tail = readers.read_last_heartbeats(reader, living, LOOK_BACK_MS, framing=framing)
    found = table_status(state, table_status_view.observations_of(tail))
    if output_format is OutputFormat.JSON:
        print_json(table_status_view.status_document(found))
        return ExitStatus.DONE
    print_rows(table_status_view.status_rows(found), table_status_view.STATUS_COLUMNS)
    print_rows(table_status_view.count_rows(found), table_status_view.COUNT_COLUMNS)
    return ExitStatus.DONE
