"""``controlplane snapshot``: the snapshots of the state, from which controllers and commands begin."""

import click

from controlplane.cli.asking import ask, wait_option
from controlplane.cli.failures import ExitStatus
from controlplane.cli.invocation import Invocation, pass_invocation
from controlplane.cli.log_view import when
from controlplane.cli.output import OutputFormat, Row, empty_row, format_option, print_result
from controlplane.cli.reading import reading
from controlplane.core.intents.intent import IntentKind
from controlplane.inspection.snapshots import JudgedSnapshot, read_snapshots

COLUMNS = ("snapshot", "seq", "epoch", "term", "decided_at", "parts", "size_bytes", "code_version", "problem")


@click.group()
def snapshot() -> None:
    """The snapshots of the state, from which controllers and commands begin."""


@snapshot.command("list")
@format_option
@pass_invocation
def list_snapshots(invocation: Invocation, output_format: OutputFormat) -> ExitStatus:
    """Print the snapshots, newest first, and the problem of each that cannot be used.

    Each is read whole and compared with the log, as a controller would do it. Exits with 1 if none can be used.
    """
    with reading(invocation, "reading the snapshots") as source:
        rows = [_row(judged) for judged in read_snapshots(source)]
    print_result(rows, COLUMNS, output_format)
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
    """Ask the leader for a snapshot; 'controlplane snapshot list' shows it as soon as it is written."""
    return ask(invocation, IntentKind.TAKE_SNAPSHOT, {}, wait_s, output_format)


def _row(judged: JudgedSnapshot) -> Row:
    shelved = judged.shelved
    row = empty_row(COLUMNS)
    row |= {"snapshot": shelved.snapshot_id, "parts": len(shelved.keys), "problem": judged.problem}
    header = shelved.header
    if header is not None:
        row |= {
            "seq": header.seq,
            "epoch": header.epoch,
            "term": header.term,
            "decided_at": when(header.decided_at_ms),
            "size_bytes": sum(len(part.body) for part in shelved.parts),
            "code_version": header.code_version,
        }
    return row
