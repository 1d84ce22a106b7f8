"""``controlplane ring``: the nodes of a key by HiveMQ's ring, for callers who route without slots."""

from collections.abc import Callable

import click

from controlplane.cli.common.failures import ExitStatus
from controlplane.cli.common.invocation import Invocation, pass_invocation
from controlplane.cli.common.output import OutputFormat, format_option, print_json, print_rows
from controlplane.cli.common.reading import table_for_key
from controlplane.core.routing.replica import RoutingTable
from controlplane.errors import NoRouteError, UnroutableError
from controlplane.inspection import ring_nodes
from controlplane.inspection.records import Record

_COLUMNS = ("property", "value")


@click.group()
def ring() -> None:
    """The nodes of a key by ring: by the names of the nodes alone, without slots."""


@ring.command("owner")
@click.argument("key")
@format_option
@pass_invocation
def owner(invocation: Invocation, *, key: str, output_format: OutputFormat) -> ExitStatus:
    """Print the node that is responsible for a KEY on the ring of the newest table's nodes, and how it is found.

    Use it to check a client in another language. Exits with 1 if there is no data node.
    """
    return _show(invocation, key, output_format, lambda table: ring_nodes.ring_owner(table, key))


@ring.command("replicas")
@click.argument("key")
@click.option(
    "--count",
    type=click.IntRange(min=0),
    metavar="N",
    help="Copies beside the owner's.  [default: one fewer than the policy's replica_count]",
)
@format_option
@pass_invocation
def replicas(invocation: Invocation, *, key: str, count: int | None, output_format: OutputFormat) -> ExitStatus:
    """Print the nodes that have copies of a KEY, and those that may be read and are written to.

    While a node drains it is still responsible, and the nodes that will have its keys are written to as well. Exits
    with 1 if there is no data node.
    """
    return _show(invocation, key, output_format, lambda table: ring_nodes.ring_replicas(table, key, count))


def _show(
    invocation: Invocation, key: str, output_format: OutputFormat, find: Callable[[RoutingTable], Record]
) -> ExitStatus:
    current = table_for_key(invocation, key)
    if current is None:
        return ExitStatus.FAILED
    try:
        found = find(current)
    except (NoRouteError, UnroutableError) as error:
        click.echo(str(error), err=True)
        return ExitStatus.FAILED
    if output_format is OutputFormat.JSON:
        print_json(found)
    else:
        print_rows(ring_nodes.ring_rows(found), _COLUMNS)
    return ExitStatus.DONE
