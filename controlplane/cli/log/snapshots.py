"""``controlplane snapshot``: the snapshots of the state, from which controllers and commands start."""

import click

from controlplane.cli.common.failures import ExitStatus
from controlplane.cli.common.invocation import Invocation, pass_invocation
from controlplane.cli.common.output import OutputFormat, format_option, print_result
from controlplane.cli.common.reading import reading
from controlplane.cli.intent_commands.sending import ask, wait_option
from controlplane.core.intents.intent import IntentKind
from controlplane.inspection.snapshots import SNAPSHOT_FIELDS, read_snapshots, snapshot_row


@click.group()
def snapshot() -> None:
    """The snapshots of the state, from which controllers and commands start."""


@snapshot.command("list")
@format_option
@pass_invocation
def list_snapshots(invocation: Invocation, output_format: OutputFormat) -> ExitStatus:
    """Print the snapshots, newest first, and the problem of each that cannot be used.

    Each is read completely and compared with the log, as a controller would do. Exits with 1 if none can be used.
    """
    with reading(invocation, "reading the snapshots") as source:
        rows = [snapshot_row(checked) for checked in read_snapshots(source)]
    print_result(rows, SNAPSHOT_FIELDS, output_format)
    if any(not row["problem"] for row in rows):
        return ExitStatus.DONE
    click.echo(
        "there is no snapshot to begin from: a controller that starts reads the whole log; 'controlplane snapshot now' "
        "asks the leader for one",
        err=True,
    )
    return ExitStatus.FAILED


@snapshot.command("now")
@wait_option
@format_option
@pass_invocation
def now(invocation: Invocation, wait_s: float, output_format: OutputFormat) -> ExitStatus:
    """Ask the leader for a snapshot. 'controlplane snapshot list' shows it as soon as it is written."""
    return ask(invocation, IntentKind.TAKE_SNAPSHOT, {}, wait_s, output_format)
