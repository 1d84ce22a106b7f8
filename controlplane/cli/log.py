"""``controlplane log``: the decision log."""

import click

from controlplane.bootstrap import readers
from controlplane.cli import log_view
from controlplane.cli.invocation import Invocation, pass_invocation
from controlplane.cli.output import OutputFormat, format_option, print_json, print_rows
from controlplane.cli.reading import reading, say_that_nobody_led


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
