"""``controlplane tenants``: the clusters in which a tenant's namespaces may be."""

import click

from controlplane.cli.common.failures import ExitStatus
from controlplane.cli.common.invocation import Invocation, pass_invocation
from controlplane.cli.common.output import OutputFormat, format_option, limit_option, print_first_rows, print_json
from controlplane.cli.common.reading import reading, say_that_nobody_led
from controlplane.cli.intent_commands.operating import Manner, operate, operation_options
from controlplane.core.intents.intent import IntentKind
from controlplane.inspection import states
from controlplane.inspection.tenants import TENANT_FIELDS, tenant_rows


@click.group()
def tenants() -> None:
    """Tenants, and the clusters in which their namespaces may be."""


@tenants.command("set")
@click.argument("tenant")
@click.option(
    "--clusters",
    metavar="CLUSTER,...",
    show_default="this cluster",
    help="The clusters that the tenant allows, in place of those that it allowed before; '' for none.",
)
@operation_options
@pass_invocation
def set_tenant(invocation: Invocation, tenant: str, *, clusters: str | None, manner: Manner) -> ExitStatus:
    """Register a tenant, or change the clusters that it allows.

    A namespace TENANT/NAME is in this cluster, a namespace TENANT/CLUSTER/NAME in the named one. Where the tenant does
    not allow that cluster, the namespace is not created. A cluster in which the tenant has namespaces has to stay among
    the allowed ones. A tenant that is not registered may have namespaces in any cluster.
    """
    allowed = invocation.cluster.name if clusters is None else clusters
    return operate(invocation, IntentKind.SET_TENANT, {"tenant": tenant, "clusters": allowed}, manner)


@tenants.command("delete")
@click.argument("tenant")
@operation_options
@pass_invocation
def delete_tenant(invocation: Invocation, tenant: str, *, manner: Manner) -> ExitStatus:
    """Delete a tenant that has no namespaces."""
    return operate(invocation, IntentKind.DELETE_TENANT, {"tenant": tenant}, manner)


@tenants.command("list")
@limit_option
@format_option
@pass_invocation
def list_tenants(invocation: Invocation, *, limit: int, output_format: OutputFormat) -> ExitStatus:
    """Print the registered tenants, the clusters that they allow, and how many namespaces each has."""
    with reading(invocation) as source:
        state = states.read_state(source)
    if not state.log_id:
        say_that_nobody_led(invocation, "tenants")
    rows = tenant_rows(state)
    if output_format is OutputFormat.JSON:
        print_json(list(rows))
    else:
        print_first_rows(rows, TENANT_FIELDS, limit)
    return ExitStatus.DONE
