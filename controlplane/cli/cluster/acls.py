"""``controlplane acls``: the cluster's access rights in Kafka, as declared in ``infra/kafka/acls.toml``."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from controlplane.bootstrap.access_roles import access_roles
from controlplane.cli.common.connecting import reach
from controlplane.cli.common.failures import ExitStatus
from controlplane.cli.common.invocation import Invocation, pass_invocation
from controlplane.cli.common.output import OutputFormat, format_option, print_json, print_rows
from controlplane.cli.common.pairs_option import pairs_of
from controlplane.core.values.canonical import to_canonical
from controlplane.inspection.records import Record
from controlplane.kafka_rules.acls_file import AccessRole, grants_of, role_named

if TYPE_CHECKING:
    from controlplane.adapters.kafka_acls import AclEntry

ROLE_COLUMNS = ("role", "operation", "kind", "name", "why")
COLUMNS = ("principal", "operation", "kind", "name", "outcome")

_principal_option = click.option(
    "--principal",
    "assignments",
    multiple=True,
    required=True,
    metavar="ROLE=PRINCIPAL|FILE",
    help="A principal with its access role, such as node=User:n1, or a file of such lines; repeatable.",
)


@click.group()
def acls() -> None:
    """Access rights in Kafka: the least rights for each access role."""


@acls.command("show")
@click.option("--role", "role_name", help="Only this role's.")
@format_option
@pass_invocation
def show(invocation: Invocation, role_name: str | None, output_format: OutputFormat) -> None:
    """Print the rights of each access role in this cluster, with reasons. Does not connect to Kafka."""
    roles = access_roles() if role_name is None else (role_named(access_roles(), role_name),)
    rows = [row for role in roles for row in _role_rows(invocation.cluster.name, role)]
    if output_format is OutputFormat.JSON:
        print_json(list(rows))
    else:
        print_rows(rows, ROLE_COLUMNS)


@acls.command("apply")
@_principal_option
@format_option
@pass_invocation
def apply(invocation: Invocation, assignments: tuple[str, ...], output_format: OutputFormat) -> ExitStatus:
    """Create the access control entries that these principals lack. Existing ones are never changed or removed.

    Needs a super user of Kafka, or one that may describe and alter the Kafka cluster. Rights of a principal beyond its
    access roles are reported on standard error.
    """
    return _run(invocation, assignments, output_format, create=True)


@acls.command("verify")
@_principal_option
@format_option
@pass_invocation
def verify(invocation: Invocation, assignments: tuple[str, ...], output_format: OutputFormat) -> ExitStatus:
    """Check that these principals have the rights of their roles. Changes nothing. Exits with 1 if one is missing."""
    return _run(invocation, assignments, output_format, create=False)


def _run(
    invocation: Invocation, assignments: Sequence[str], output_format: OutputFormat, *, create: bool
) -> ExitStatus:
    from controlplane.adapters.kafka_acls import apply_acls, verify_acls

    grants = grants_of(access_roles(), pairs_of("--principal", assignments, "ROLE=PRINCIPAL"))
    kafka = invocation.kafka
    act = apply_acls if create else verify_acls
    report = reach(
        invocation.kafka_place,
        invocation.connect_timeout_s,
        lambda: act(kafka.bootstrap_servers, invocation.cluster.name, grants, kafka.security),
    )
    if output_format is OutputFormat.JSON:
        print_json(to_canonical(report))
    else:
        outcomes = (("created", report.created), ("is there", report.verified), ("missing", report.missing))
        rows = [_entry_row(entry, outcome) for outcome, entries in outcomes for entry in entries]
        print_rows(rows, COLUMNS)
    for sentence in report.advice:
        click.echo(f"advice: {sentence}", err=True)
    return ExitStatus.FAILED if report.missing else ExitStatus.DONE


def _entry_row(entry: "AclEntry", outcome: str) -> Record:
    return {
        "principal": entry.principal,
        "operation": entry.operation,
        "kind": entry.kind,
        "name": entry.name,
        "outcome": outcome,
    }


def _role_rows(cluster: str, role: AccessRole) -> list[Record]:
    return [
        {
            "role": role.name,
            "operation": right.operation.value,
            "kind": right.kind.value,
            "name": right.full_name(cluster),
            "why": right.why,
        }
        for right in role.rights
    ]
