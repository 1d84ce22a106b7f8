"""``controlplane namespaces``: named hash spaces with bundles of their own."""

import click

from controlplane.cli.asking import ask, wait_option
from controlplane.cli.failures import ExitStatus
from controlplane.cli.invocation import Invocation, pass_invocation
from controlplane.cli.output import OutputFormat, Row, format_option, print_result
from controlplane.cli.reading import reading, say_that_nobody_led
from controlplane.core.intents.intent import IntentKind
from controlplane.core.routing.replica import RoutingTable
from controlplane.inspection import readers

COLUMNS = ("namespace", "bundles", "owners")


@click.group()
def namespaces() -> None:
    """Namespaces and their bundles."""


@namespaces.command("create")
@click.argument("name")
@wait_option
@format_option
@pass_invocation
def create(invocation: Invocation, name: str, wait_s: float, output_format: OutputFormat) -> ExitStatus:
    """Ask the leader for a namespace and wait for its answer."""
    return ask(invocation, IntentKind.CREATE_NAMESPACE, {"namespace": name}, wait_s, output_format)


@namespaces.command("list")
@format_option
@pass_invocation
def list_namespaces(invocation: Invocation, output_format: OutputFormat) -> ExitStatus:
    """Print the namespaces and the owners of their bundles."""
    with reading(invocation) as source:
        table = readers.read_routing_table(source)
    if table is None:
        say_that_nobody_led(invocation, "routing table")
    print_result([] if table is None else namespace_rows(table), COLUMNS, output_format)
    return ExitStatus.DONE


def namespace_rows(table: RoutingTable) -> list[Row]:
    """A row for each namespace, by name; owners in the order of its bundles."""
    rows: list[Row] = []
    for name in sorted(table.namespaces):
        bundles = sorted(
            (bundle for bundle in table.bundles.values() if bundle.namespace == name), key=lambda bundle: bundle.lower
        )
        rows.append({"namespace": name, "bundles": len(bundles), "owners": [bundle.owner for bundle in bundles]})
    return rows
