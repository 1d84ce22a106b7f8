"""Sending an operator's intent from a command, and printing its answer from the log."""

import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any, TypeVar

import click

from controlplane.bootstrap import connections
from controlplane.cli.common.failures import ExitStatus
from controlplane.cli.common.invocation import Invocation
from controlplane.cli.common.output import OutputFormat, print_result
from controlplane.cli.common.reading import reading
from controlplane.core.intents.events import IntentOutcome
from controlplane.core.intents.intent import Intent, IntentKind
from controlplane.core.operations.argument_checks import check_arguments
from controlplane.errors import LogUnavailableError, RetryableError
from controlplane.inspection.answers import AnswerWatch, LoggedAnswer
from controlplane.inspection.records import Record, empty_record
from controlplane.intents_client import submit_intent

COLUMNS = ("intent_id", "kind", "outcome", "detail", "seq", "epoch")

_Command = TypeVar("_Command", bound=Callable[..., Any])


def wait_option(command: _Command) -> _Command:
    """The ``--wait`` option of commands that send an intent."""
    return click.option(
        "--wait",
        "wait_s",
        type=click.FloatRange(min=0),
        default=10.0,
        metavar="SECONDS",
        help="How long to wait for the leader's answer in the log; 0 sends without waiting.",
    )(command)


def new_intent(kind: IntentKind, arguments: Mapping[str, str], principal: str) -> Intent:
    """A new intent of this principal, with a new id.

    Raises:
        ConfigurationError: no cluster could carry it out.
    """
    check_arguments(kind, arguments)
    return Intent(f"{kind.value}-{uuid.uuid4().hex[:12]}", kind.value, principal, dict(arguments))


@contextmanager
def before_sending() -> Iterator[None]:
    """Add to an error inside the block that nothing was sent: the command can simply be given again.

    Raises:
        LogUnavailableError: in place of any error for which Kafka did not answer in time.
    """
    try:
        yield
    except RetryableError as error:
        raise LogUnavailableError(f"{error}. Nothing was sent") from error


def ask(
    invocation: Invocation,
    kind: IntentKind,
    arguments: Mapping[str, str],
    wait_s: float,
    output_format: OutputFormat,
    follow: Callable[[LoggedAnswer], ExitStatus] | None = None,
) -> ExitStatus:
    """Send an intent and print its answer.

    Args:
        invocation: the cluster.
        kind: the kind of the intent.
        arguments: its arguments.
        wait_s: how long to wait for the leader's answer; 0 sends without waiting.
        output_format: a table or JSON.
        follow: what to do after the answer was printed, if it is "done".

    Returns:
        done if it was done, or sent without waiting; failed if it was refused or superseded; unreachable if no leader
        answered. After ``follow``, what that returns.
    """
    intent = new_intent(kind, arguments, invocation.principal)
    work = "looking for the end of the log"
    with ExitStack() as opened:
        with before_sending():
            source = opened.enter_context(reading(invocation, lambda: work))
            watch = AnswerWatch(source)
            writer = connections.open_intent_writer(invocation.cluster, invocation.kafka)
        work = "waiting for the leader"
        unacknowledged = None
        try:
            submit_intent(writer, intent)
        except LogUnavailableError as error:
            unacknowledged = error  # the log shows whether it was written nevertheless
        finally:
            writer.close()
        answer = watch.wait(intent.intent_id, round(wait_s * 1_000)) if wait_s else None
        if answer is None and unacknowledged is not None:
            raise unacknowledged
    row, status = _outcome(intent, answer, wait_s)
    print_result(row, COLUMNS, output_format)
    return follow(answer) if follow is not None and answer is not None and status is ExitStatus.DONE else status


def _outcome(intent: Intent, answer: LoggedAnswer | None, wait_s: float) -> tuple[Record, ExitStatus]:
    """The row that says what became of an intent, and the exit status."""
    row = empty_record(COLUMNS)
    row |= {"intent_id": intent.intent_id, "kind": intent.kind, "outcome": "sent"}
    if answer is not None:
        row |= {
            "outcome": answer.event.outcome.value,
            "detail": answer.event.detail,
            "seq": answer.logged.decision.seq,
            "epoch": answer.logged.decision.epoch,
        }
        return row, ExitStatus.DONE if answer.event.outcome is IntentOutcome.DONE else ExitStatus.FAILED
    if not wait_s:
        return row, ExitStatus.DONE
    row |= {
        "outcome": "unanswered",
        "detail": (
            f"no leader answered within {wait_s:g} s; the intent stays in the log and counts when a leader reads "
            f"it: 'controlplane log show' then names {intent.intent_id} among the causes"
        ),
    }
    return row, ExitStatus.UNREACHABLE
