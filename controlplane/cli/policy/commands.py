"""``controlplane policy``: the settings by which the cluster's controllers decide."""

from collections.abc import Sequence
from dataclasses import fields

import click

from controlplane.cli.common.failures import ExitStatus
from controlplane.cli.common.invocation import Invocation, pass_invocation
from controlplane.cli.common.output import OutputFormat, format_option, print_json, print_rows
from controlplane.cli.common.reading import reading, say_that_nobody_led
from controlplane.cli.common.suggestions import suggestion
from controlplane.cli.intent_commands.operating import Manner, operate, operation_options
from controlplane.core.cluster.policy import ClusterPolicy
from controlplane.core.intents.intent import IntentKind
from controlplane.core.log.state import State
from controlplane.core.values.canonical import to_canonical
from controlplane.errors import ConfigurationError
from controlplane.inspection import states
from controlplane.inspection.records import Record

COLUMNS = ("name", "value")


@click.group()
def policy() -> None:
    """The settings by which all controllers decide. They are part of the decision log."""


@policy.command("show")
@format_option
@pass_invocation
def show(invocation: Invocation, output_format: OutputFormat) -> ExitStatus:
    """Print the present policy."""
    with reading(invocation) as source:
        state = states.read_state(source)
    if not state.log_id:
        say_that_nobody_led(invocation, "policy")
        return ExitStatus.FAILED
    if output_format is OutputFormat.JSON:
        print_json(to_canonical(state.cluster.policy))
        return ExitStatus.DONE
    print_rows(policy_rows(state), COLUMNS)
    if state.cluster.silence_limit_ms != state.cluster.policy.silence_limit_ms:
        click.echo(
            f"nodes are fenced after {state.cluster.silence_limit_ms} ms of silence until every node can have read the "
            "shorter limit"
        )
    return ExitStatus.DONE


@policy.command("set")
@click.argument("settings", nargs=-1, required=True, metavar="NAME=VALUE...")
@operation_options
@pass_invocation
def change(invocation: Invocation, *, settings: tuple[str, ...], manner: Manner) -> ExitStatus:
    """Change fields of the policy, all in one decision.

    An option of the slot policy is named slot_policy_options.NAME. The rights of principals are named
    intent_rights.PATTERN, such as intent_rights.ops-*='drain_node undrain_node'. An empty value removes either.
    slot_count can grow to a greater power of two, which splits each slot. hash_function cannot change.
    """
    return operate(invocation, IntentKind.CHANGE_POLICY, _pairs(settings), manner)


def policy_rows(state: State) -> list[Record]:
    """A row for each field of the policy."""
    plain = to_canonical(state.cluster.policy)
    return [{"name": name, "value": value} for name, value in plain.items()] if isinstance(plain, dict) else []


def _pairs(settings: Sequence[str]) -> dict[str, str]:
    pairs: dict[str, str] = {}
    known = [field.name for field in fields(ClusterPolicy)]
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not equals or not name:
            raise ConfigurationError(f"{setting!r} is not NAME=VALUE; 'controlplane policy show' has the names")
        field = name.partition(".")[0]
        if field not in known and suggestion(field, known):
            raise ConfigurationError(f"the policy has no field {field!r:.80}: {suggestion(field, known)}")
        if name in pairs:
            raise ConfigurationError(f"{name} is given twice")
        pairs[name] = value
    return pairs
