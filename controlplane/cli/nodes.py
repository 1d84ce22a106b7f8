"""``controlplane nodes``: the members of a cluster."""

import click

from controlplane.bootstrap import readers
from controlplane.cli import nodes_view
from controlplane.cli.failures import ExitStatus
from controlplane.cli.invocation import Invocation, pass_invocation
from controlplane.cli.log_view import when
from controlplane.cli.output import OutputFormat, format_option, print_json, print_rows
from controlplane.cli.reading import reading, say_that_nobody_led
from controlplane.codec.framing import framing_with

LOOK_BACK_MS = 60_000
"""How far back in log time a node's last heartbeat is looked for."""


@click.group()
def nodes() -> None:
    """The members of a cluster."""


@nodes.command("list")
@format_option
@pass_invocation
def list_nodes(invocation: Invocation, output_format: OutputFormat) -> ExitStatus:
    """Print every member: what it owns, which epoch it works with, when it was last heard."""
    with reading(invocation) as reader:
        table = readers.read_routing_table(reader)
        if table is None:
            say_that_nobody_led(invocation, "routing table")
            return ExitStatus.FAILED
        living = {node_id for node_id, node in table.nodes.items() if node.status.lives}
        framing = framing_with(invocation.kafka.schema_ids)
        tail = readers.read_last_heartbeats(reader, living, LOOK_BACK_MS, framing=framing)
    rows = nodes_view.node_rows(table, tail)
    if output_format is OutputFormat.JSON:
        print_json([dict(row) for row in rows])
    else:
        # Without a controller's ticks log time stands still, and nobody would see how old these lines are.
        log_time = when(tail.now_ms) if tail.now_ms else "unknown"
        click.echo(f"epoch {table.epoch}, {len(living)} of {len(table.nodes)} nodes live at log time {log_time}")
        print_rows(rows, nodes_view.COLUMNS)
    return ExitStatus.DONE
