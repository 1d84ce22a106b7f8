"""``controlplane leader``: who leads."""

import click

from controlplane.bootstrap import readers
from controlplane.cli.connecting import reach
from controlplane.cli.failures import ExitStatus
from controlplane.cli.invocation import Invocation, pass_invocation
from controlplane.cli.log_view import when
from controlplane.cli.output import OutputFormat, empty_row, format_option, print_result
from controlplane.cli.reading import reading
from controlplane.core.events import TermOpened
from controlplane.ports import LeaseHeld

COLUMNS = ("lease_owner", "lease_term", "lease_remaining_ms", "opened_term", "opened_by", "opened_at", "code_version")


@click.group()
def leader() -> None:
    """The controller that leads."""


@leader.command("show")
@format_option
@pass_invocation
def show(invocation: Invocation, output_format: OutputFormat) -> ExitStatus:
    """Print who holds the lease, and the last term that was opened in the log. Status 3 if nobody holds the lease."""
    with readers.lease_store(invocation.cluster, invocation.redis_url) as store:
        lease = reach(invocation.redis_place, invocation.connect_timeout_s, store.read)
    with reading(invocation) as reader:
        opened = readers.last_term_opened(reader)
    row = empty_row(COLUMNS)
    if isinstance(lease, LeaseHeld):
        row |= {
            "lease_owner": lease.owner,
            "lease_term": lease.term,
            "lease_remaining_ms": lease.remaining_ms,
        }
    if opened is not None:
        event = next(event for event in opened.decision.events if isinstance(event, TermOpened))
        row |= {
            "opened_term": event.term,
            "opened_by": event.controller_id,
            "opened_at": when(opened.append_time_ms),
            "code_version": event.code_version,
        }
    print_result(row, COLUMNS, output_format)
    if isinstance(lease, LeaseHeld):
        return ExitStatus.DONE
    click.echo(
        f"nobody leads cluster {invocation.cluster.name!r} now: start a controller with 'controlplane controller run'; "
        "where some run, their logs say why none of them leads",
        err=True,
    )
    return ExitStatus.UNREACHABLE
