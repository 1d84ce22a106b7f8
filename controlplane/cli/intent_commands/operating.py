"""The options of commands that change the cluster, and sending or simulating their intents."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import click

from controlplane.bootstrap.slot_policies import load_slot_policies
from controlplane.cli.common.connecting import telling
from controlplane.cli.common.failures import ExitStatus
from controlplane.cli.common.invocation import Invocation
from controlplane.cli.common.output import OutputFormat, format_option, print_json
from controlplane.cli.common.reading import reading
from controlplane.cli.intent_commands.effects import print_effect, print_refusal
from controlplane.cli.intent_commands.known_names import refuse_unknown_names
from controlplane.cli.intent_commands.sending import ask, before_sending, new_intent, wait_option
from controlplane.core.deciding.what_if import Change, effect_of, what_if
from controlplane.core.intents.events import IntentAnswered
from controlplane.core.intents.intent import REASON, Intent, IntentKind
from controlplane.core.log.state import State
from controlplane.core.operations.argument_checks import check_arguments
from controlplane.errors import PrerequisiteError
from controlplane.inspection import states
from controlplane.inspection.answers import LoggedAnswer
from controlplane.inspection.effects import effect_document
from controlplane.inspection.past_states import refuse_lost_log

_Command = TypeVar("_Command", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Manner:
    """The values of the options of one operation.

    Attributes:
        wait_s: how long to wait for the leader's answer; 0 sends without waiting.
        reason: a text that the answer in the log repeats.
        dry_run: whether to print the effect without sending anything.
        output_format: a table or JSON.
        slot_policy_files: the files of the cluster's own slot policies, for a dry run.
        even_unknown: send the intent even if the cluster does not know the node.
    """

    wait_s: float
    reason: str
    dry_run: bool
    output_format: OutputFormat
    slot_policy_files: tuple[Path, ...]
    even_unknown: bool = False


def slot_policy_files_option(command: _Command) -> _Command:
    """The ``--slot-policy-file`` option of commands that use slot policies."""
    return click.option(
        "--slot-policy-file",
        "slot_policy_files",
        type=click.Path(path_type=Path),
        multiple=True,
        metavar="FILE.py",
        help="A Python file with slot policies of your own, if the cluster uses one of them; repeatable.",
    )(command)


def operation_options(command: _Command) -> Callable[..., Any]:
    """The options of every operation, passed to the command as one ``manner``."""

    @wraps(command)
    def with_manner(
        *arguments: object,
        wait_s: float,
        reason: str,
        dry_run: bool,
        output_format: OutputFormat,
        slot_policy_files: tuple[Path, ...],
        even_unknown: bool = False,
        **options: object,
    ) -> object:
        manner = Manner(wait_s, reason, dry_run, output_format, slot_policy_files, even_unknown)
        return command(*arguments, manner=manner, **options)

    dry = click.option("--dry-run", is_flag=True, help="Print the effect without sending anything.")
    why = click.option(
        "--reason", default="", metavar="TEXT", help="A reason, which is stored with the answer in the log."
    )
    return wait_option(why(dry(slot_policy_files_option(format_option(with_manner)))))


def operate(
    invocation: Invocation,
    kind: IntentKind,
    arguments: Mapping[str, str],
    manner: Manner,
    follow: Callable[[LoggedAnswer], ExitStatus] | None = None,
) -> ExitStatus:
    """Send an intent and print its answer, or only print its effect. ``follow`` is that of :func:`ask`.

    Returns:
        done; failed if it was refused or superseded; unreachable if no leader answered.

    Raises:
        ConfigurationError: no cluster could carry it out, or this cluster does not know the node or slot.
    """
    asked = {**arguments, **({REASON: manner.reason} if manner.reason else {})}
    check_arguments(kind, asked)
    if not manner.even_unknown:
        with before_sending():
            refuse_unknown_names(invocation, asked)
    if manner.dry_run:
        intent = new_intent(kind, asked, invocation.principal)
        return show_effect(invocation, lambda _: [intent], manner.slot_policy_files, 0, manner.output_format)
    return ask(invocation, kind, asked, manner.wait_s, manner.output_format, follow)


def show_effect(
    invocation: Invocation,
    changes: Callable[[State], Sequence[Change]],
    slot_policy_files: Sequence[Path],
    row_count: int,
    output_format: OutputFormat,
) -> ExitStatus:
    """Print the effect of supposed changes.

    Args:
        invocation: the cluster.
        changes: the changes, supposed together, for a cluster in this state.
        slot_policy_files: the files of the cluster's own slot policies, if it uses one.
        row_count: how many of the changed rows a table shows; JSON has all.
        output_format: a table or JSON.

    Returns:
        done; failed if one of the changes would be refused.
    """
    policies = load_slot_policies(slot_policy_files)
    with reading(invocation) as source:
        state = states.read_state(source)
        if not state.log_id:
            refuse_lost_log(source)
            raise PrerequisiteError("no controller has led this cluster yet: there is nothing to plan")
        observations = states.read_observations(source, state)
    supposed = changes(state)
    with telling(lambda elapsed_s: f"planning ... ({elapsed_s:.0f} s)"):
        effect = effect_of(*what_if(state, observations, supposed, policies))
    if effect.refused:
        effect = replace(effect, answers=tuple(_in_words(answer, supposed) for answer in effect.answers))
    if output_format is OutputFormat.JSON:
        print_json(effect_document(effect))
    elif effect.refused:
        print_refusal(effect)
    else:
        print_effect(effect, row_count)
    return ExitStatus.FAILED if effect.refused else ExitStatus.DONE


def _in_words(answer: IntentAnswered, supposed: Sequence[Change]) -> IntentAnswered:
    """The answer with kind and arguments in place of the id of the supposed intent, which only this command knows."""
    detail = answer.detail
    for change in supposed:
        if isinstance(change, Intent):
            words = " ".join([change.kind, *(f"{name}={value}" for name, value in change.arguments.items())])
            detail = detail.replace(change.intent_id, f"'{words}'")
    return replace(answer, detail=detail)
