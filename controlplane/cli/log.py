"""``controlplane log``: the decision log."""

import time

import click

from controlplane.bootstrap import readers
from controlplane.cli import log_view
from controlplane.cli.connecting import LONGEST_WAIT_S
from controlplane.cli.failures import ExitStatus
from controlplane.cli.invocation import Invocation, pass_invocation
from controlplane.cli.output import OutputFormat, format_option, print_json, print_rows
from controlplane.cli.reading import reading, say_that_nobody_led
from controlplane.core.log_verification import Complaint, LogVerification
from controlplane.errors import LogContinuityError, PrerequisiteError
from controlplane.ports import LogReader


@click.group()
def log() -> None:
    """The decision log: what was decided, why, and how much it moved."""


@log.command("show")
@click.option("--last", "count", type=click.IntRange(min=1), default=20, metavar="N", help="How many decisions.")
@format_option
@pass_invocation
def show(invocation: Invocation, count: int, output_format: OutputFormat) -> None:
    """Print the last decisions, oldest first: cause, moves made and least possible, certificate."""
    with reading(invocation) as reader:
        decisions = readers.read_last_decisions(reader, count)
    if not decisions:
        say_that_nobody_led(invocation, "decisions")
    if output_format is OutputFormat.JSON:
        print_json(log_view.decision_documents(decisions))
    else:
        print_rows(log_view.decision_rows(decisions), log_view.COLUMNS)


@log.command("verify")
@click.option(
    "--epoch",
    type=click.IntRange(min=1),
    help="Tell only of the decisions of this epoch; all are checked all the same.",
)
@format_option
@pass_invocation
def verify(invocation: Invocation, *, epoch: int | None, output_format: OutputFormat) -> ExitStatus:
    """Check the whole log from outside: the chain of digests, every rule, and the proof in every certificate.

    Exits with 1 if anything is wrong.
    """
    verification = LogVerification()
    with reading(invocation) as reader:
        complaints = _complaints(reader, verification)
    newest = verification.state.epoch
    if epoch is not None:
        if epoch > newest and not verification.broken:
            raise PrerequisiteError(f"epoch {epoch} is not there yet: the newest one is {newest}")
        # Behind a break nothing was judged: then the break is what there is to tell.
        complaints = [each for each in complaints if each.epoch == epoch or (verification.broken and epoch > newest)]
    if not verification.decisions:
        say_that_nobody_led(invocation, "decisions")
    if output_format is OutputFormat.JSON:
        print_json(log_view.verification_document(verification, complaints))
    else:
        if complaints:
            print_rows(log_view.complaint_rows(complaints), log_view.COMPLAINT_COLUMNS)
        if verification.decisions:
            click.echo(log_view.verification_line(verification, complaints, epoch))
    return ExitStatus.FAILED if complaints else ExitStatus.DONE


def _complaints(reader: LogReader, verification: LogVerification) -> list[Complaint]:
    """Judge the log to its end, or to where it breaks; long logs show how far that is."""
    complaints: list[Complaint] = []
    told_s = time.monotonic()
    try:
        for logged in readers.read_decisions(reader):
            complaints += verification.judge(logged.decision)
            if verification.broken:
                return complaints
            if time.monotonic() - told_s > LONGEST_WAIT_S:
                told_s = time.monotonic()
                click.echo(f"{verification.decisions:,} decisions checked ...", err=True)
    except LogContinuityError as error:
        return [*complaints, verification.break_off(error)]
    return [*complaints, *verification.judge_end()]
