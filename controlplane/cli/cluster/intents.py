"""``controlplane intents``: intents that belong to no other command."""

import click

from controlplane.cli.common.failures import ExitStatus
from controlplane.cli.common.invocation import Invocation, pass_invocation
from controlplane.cli.common.output import OutputFormat, format_option
from controlplane.cli.intent_commands.sending import ask, wait_option
from controlplane.core.intents.intent import IntentKind


@click.group()
def intents() -> None:
    """Intents that belong to no other command. Their answers are in the decision log."""


@intents.command("override-self-preservation")
@wait_option
@format_option
@pass_invocation
def override_self_preservation(invocation: Invocation, wait_s: float, output_format: OutputFormat) -> ExitStatus:
    """Fence the silent nodes although evictions are frozen."""
    return ask(invocation, IntentKind.OVERRIDE_SELF_PRESERVATION, {}, wait_s, output_format)
