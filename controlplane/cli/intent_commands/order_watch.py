"""Waiting until the orders of bundles that an answer gave have ended: the option, progress, and how they ended."""

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, TypeVar

import click

from controlplane.cli.common.failures import ExitStatus
from controlplane.cli.common.invocation import Invocation
from controlplane.cli.common.reading import reading
from controlplane.cli.intent_commands.operating import Manner, operate
from controlplane.core.intents.intent import IntentKind
from controlplane.errors import ConfigurationError, LogUnavailableError, RetryableError
from controlplane.inspection.answers import LoggedAnswer
from controlplane.inspection.bundle_orders import OrderProgress
from controlplane.inspection.readers import DecisionFollower
from controlplane.inspection.source import LogSource

_POLL_MS: Final = 200
_TELL_AT_MOST_EVERY_S: Final = 1.0
_TELL_AT_LEAST_EVERY_S: Final = 10.0
_DEFAULT_S: Final = 600.0

_Command = TypeVar("_Command", bound=Callable[..., Any])


def until_done_option(command: _Command) -> _Command:
    """The ``--until-done`` option of commands whose intent gives orders of bundles."""
    return click.option(
        "--until-done",
        "until_done_s",
        type=click.FloatRange(min=0),
        is_flag=False,
        flag_value=_DEFAULT_S,
        default=None,
        metavar="[SECONDS]",
        help="After the answer, wait until every order that it gave has ended; exit with 1 if one failed. Without a "
        f"number, at most {_DEFAULT_S:g} seconds; write it last then, or give one as in --until-done=60.",
    )(command)


def order_bundles(
    invocation: Invocation,
    kind: IntentKind,
    arguments: Mapping[str, str],
    manner: Manner,
    until_done_s: float | None,
) -> ExitStatus:
    """Send an intent that gives orders of bundles, print its answer, and wait for their end if that is asked for.

    Returns:
        as :func:`operate`; failed if an order failed; unreachable if one still stands at the time-out.

    Raises:
        ConfigurationError: the command is to wait for orders, but not for the answer that gives them.
    """
    if until_done_s is None or manner.dry_run:
        return operate(invocation, kind, arguments, manner)
    if not manner.wait_s:
        raise ConfigurationError("--until-done follows the orders that the answer gives: with it, --wait is not 0")
    return operate(invocation, kind, arguments, manner, partial(_wait_until_done, invocation, until_done_s))


def _wait_until_done(invocation: Invocation, timeout_s: float, answer: LoggedAnswer) -> ExitStatus:
    """Follow the decision log until the orders have ended. Print on standard error how far they are.

    Raises:
        LogUnavailableError: Kafka no longer answers. The message says that the orders stand.
    """
    progress = OrderProgress(answer)
    try:
        with reading(invocation, work="") as source:
            return _follow(source, progress, timeout_s)
    except RetryableError as error:
        message = (
            f"Kafka does not answer any more: {error}. The orders were given in decision "
            f"{answer.logged.decision.seq} and stay in the log: the leader carries them out as soon as it reaches "
            "Kafka. When Kafka is back, 'controlplane bundles list' shows those that stand"
        )
        raise LogUnavailableError(message) from error


def _follow(source: LogSource, progress: OrderProgress, timeout_s: float) -> ExitStatus:
    began_s = time.monotonic()
    told_s, told = -_TELL_AT_LEAST_EVERY_S, ""
    follower = DecisionFollower(source, progress.next_offset)
    while progress.standing:
        now_s, text = time.monotonic(), progress.standing_text()
        if now_s - began_s > timeout_s:
            click.echo(
                f"{text} after {timeout_s:g} s (--until-done). They stay in the log and are carried out: "
                "'controlplane bundles list' shows those that stand",
                err=True,
            )
            return ExitStatus.UNREACHABLE
        if now_s - told_s >= (_TELL_AT_MOST_EVERY_S if text != told else _TELL_AT_LEAST_EVERY_S):
            told_s, told = now_s, text
            click.echo(text, err=True)
        for logged in follower.poll(_POLL_MS):
            progress.take(logged)
    click.echo(progress.end_text(), err=True)
    return ExitStatus.FAILED if progress.failed else ExitStatus.DONE
