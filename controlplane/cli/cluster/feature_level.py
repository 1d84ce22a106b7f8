"""``controlplane feature-level``: the feature level of the log, and raising it."""

import click

from controlplane.cli.common.failures import ExitStatus
from controlplane.cli.common.invocation import Invocation, pass_invocation
from controlplane.cli.common.output import OutputFormat, format_option, print_result
from controlplane.cli.common.reading import reading, say_that_nobody_led
from controlplane.cli.intent_commands.sending import ask, wait_option
from controlplane.core.cluster.policy import FEATURE_LEVEL
from controlplane.core.intents.intent import IntentKind
from controlplane.inspection import readers
from controlplane.inspection.records import Record

COLUMNS = ("feature_level", "supported_here")


@click.group("feature-level")
def feature_level() -> None:
    """The feature level of the log: what it may contain, and so which versions can read it."""


@feature_level.command("show")
@format_option
@pass_invocation
def show(invocation: Invocation, output_format: OutputFormat) -> ExitStatus:
    """Print the feature level of the log, and the highest one that this program supports."""
    with reading(invocation) as source:
        last = readers.read_last_decisions(source, 1)
    if not last:
        say_that_nobody_led(invocation, "feature level")
        return ExitStatus.FAILED
    row: Record = {"feature_level": last[0].decision.feature_level, "supported_here": FEATURE_LEVEL}
    print_result(row, COLUMNS, output_format)
    return ExitStatus.DONE


@feature_level.command("raise")
@click.argument("level", type=click.IntRange(min=1))
@click.option(
    "--upgraded",
    multiple=True,
    metavar="CONTROLLER_ID",
    help="A controller, other than the leader, that you know to support the level; repeatable.",
)
@wait_option
@format_option
@pass_invocation
def raise_level(
    invocation: Invocation, *, level: int, upgraded: tuple[str, ...], wait_s: float, output_format: OutputFormat
) -> ExitStatus:
    """Raise the feature level of the log. It cannot be lowered again.

    Refused unless the leader supports the level, and unless every other running controller is named as upgraded. A
    controller that does not support the level stops as soon as it reads of it.
    """
    arguments = {"level": str(level), **({"upgraded": " ".join(upgraded)} if upgraded else {})}
    return ask(invocation, IntentKind.RAISE_FEATURE_LEVEL, arguments, wait_s, output_format)
