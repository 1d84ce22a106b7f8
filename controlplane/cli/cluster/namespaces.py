"""``controlplane namespaces``: named hash spaces with bundles of their own."""

import click

from controlplane.cli.common.failures import ExitStatus
from controlplane.cli.common.invocation import Invocation, pass_invocation
from controlplane.cli.common.output import OutputFormat, format_option, limit_option, print_first_rows, print_json
from controlplane.cli.common.reading import current_table
from controlplane.cli.common.suggestions import did_you_mean
from controlplane.cli.intent_commands.operating import Manner, operation_options
from controlplane.cli.intent_commands.order_watch import order_bundles, until_done_option
from controlplane.cli.intent_commands.sending import ask, wait_option
from controlplane.core.bundles.names import tenant_of
from controlplane.core.cluster.policy import MAX_BUNDLES_PER_NAMESPACE
from controlplane.core.intents.intent import IntentKind
from controlplane.core.operations.slot_numbers import counted
from controlplane.inspection.tables import (
    BUNDLE_OF_NAMESPACE_FIELDS,
    NAMESPACE_FIELDS,
    bundles_of_namespace,
    namespace_rows,
)


@click.group()
def namespaces() -> None:
    """Namespaces and their bundles."""


@namespaces.command("create")
@click.argument("name")
@click.option(
    "--bundles",
    type=click.IntRange(1, MAX_BUNDLES_PER_NAMESPACE),
    metavar="N",
    help="Number of its bundles.  [default: the policy's bundles_per_namespace]",
)
@wait_option
@format_option
@pass_invocation
def create(
    invocation: Invocation, *, name: str, bundles: int | None, wait_s: float, output_format: OutputFormat
) -> ExitStatus:
    """Ask the leader for a namespace and wait for its answer."""
    arguments = {"namespace": name} if bundles is None else {"namespace": name, "bundles": str(bundles)}
    return ask(invocation, IntentKind.CREATE_NAMESPACE, arguments, wait_s, output_format)


@namespaces.command("delete")
@click.argument("name")
@until_done_option
@operation_options
@pass_invocation
def delete(invocation: Invocation, *, name: str, until_done_s: float | None, manner: Manner) -> ExitStatus:
    """Delete the namespace NAME: its bundles are released by their owners, and it ends with the last of them.

    What services store of it is not deleted: that is the services' task, before or after.
    """
    return order_bundles(invocation, IntentKind.DELETE_NAMESPACE, {"namespace": name}, manner, until_done_s)


@namespaces.command("show")
@click.argument("name")
@limit_option
@format_option
@pass_invocation
def show(invocation: Invocation, *, name: str, limit: int, output_format: OutputFormat) -> ExitStatus:
    """Print the bundles of the namespace NAME: their bounds, their owners, and the status and addresses of these nodes.

    Bounds are hashes, the CRC-32 of a key. A bundle holds its lower bound, and not its upper one; only the last bundle
    holds 0xffffffff. A bundle without an owner is served by no node now. Exits with 1 if there is no such namespace.
    """
    table = current_table(invocation)
    if table is None:
        return ExitStatus.FAILED
    if name not in table.namespaces:
        similar = did_you_mean(name, table.namespaces)
        click.echo(f"there is no namespace {name!r} in cluster {invocation.cluster.name!r}: {similar}", err=True)
        return ExitStatus.FAILED
    rows = bundles_of_namespace(table, name)
    if output_format is OutputFormat.JSON:
        print_json({"namespace": name, "tenant": tenant_of(name), "epoch": table.epoch, "bundles": list(rows)})
        return ExitStatus.DONE
    click.echo(f"namespace {name} in epoch {table.epoch}: {counted(len(rows), 'bundle')}")
    print_first_rows(rows, BUNDLE_OF_NAMESPACE_FIELDS, limit)
    return ExitStatus.DONE


@namespaces.command("list")
@limit_option
@format_option
@pass_invocation
def list_namespaces(invocation: Invocation, *, limit: int, output_format: OutputFormat) -> ExitStatus:
    """Print the namespaces and the owners of their bundles."""
    table = current_table(invocation)
    rows = [] if table is None else namespace_rows(table)
    if output_format is OutputFormat.JSON:
        print_json(list(rows))
    else:
        print_first_rows(rows, NAMESPACE_FIELDS, limit)
    return ExitStatus.DONE
