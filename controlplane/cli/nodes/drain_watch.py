"""Waiting until a draining node holds nothing, with progress messages and the end of the drain.

The slots of the node are read from the decision log, whose end already has the decision that answered the intent. A
reader of the topic ``routing-table`` would first see old epochs.
"""

import time
from typing import Final

import click

from controlplane.cli.common.failures import ExitStatus
from controlplane.cli.common.invocation import Invocation
from controlplane.cli.common.reading import reading
from controlplane.core.values.identifiers import NodeId
from controlplane.errors import LogUnavailableError, RetryableError
from controlplane.inspection import readers, states
from controlplane.inspection.drains import DrainProgress
from controlplane.inspection.readers import DecisionFollower
from controlplane.inspection.source import LogSource
from controlplane.inspection.table_standing import waiting_lines
from controlplane.inspection.table_status import rows_that_wait

_POLL_MS: Final = 200
_TELL_AT_MOST_EVERY_S: Final = 1.0
_TELL_AT_LEAST_EVERY_S: Final = 10.0
_LINES_SHOWN: Final = 3


def wait_until_drained(invocation: Invocation, node_id: NodeId, timeout_s: float) -> ExitStatus:
    """Follow the decision log until the node holds nothing. Print on standard error what it still holds, and why.

    Returns:
        done when it holds nothing; failed if the drain has ended in another way, or cannot end at present; unreachable
        at the timeout.

    Raises:
        LogUnavailableError: Kafka no longer answers. The message says that the drain continues.
    """
    drain = DrainProgress(node_id)
    try:
        with reading(invocation, work="") as source:
            for logged in readers.read_decisions(source):
                drain.take(logged)
            return _follow(source, drain, timeout_s)
    except RetryableError as error:
        accepted = f" (decision {drain.began})" if drain.began is not None else ""
        message = (
            f"Kafka does not answer any more: {error}. The order to drain {node_id} was accepted{accepted}, stays in "
            "the log, and the leader continues it as soon as it reaches Kafka. When Kafka is back, 'controlplane "
            f"nodes drain {node_id}' waits again, and 'controlplane table status' shows its progress"
        )
        raise LogUnavailableError(message) from error


def _follow(source: LogSource, drain: DrainProgress, timeout_s: float) -> ExitStatus:
    began_s = time.monotonic()
    told_s, told = -_TELL_AT_LEAST_EVERY_S, ""
    follower = DecisionFollower(source, drain.next_offset)
    while True:
        end = drain.end()
        if end is not None:
            click.echo(end.sentence, err=True)
            return ExitStatus.DONE if end.relieved else ExitStatus.FAILED
        now_s = time.monotonic()
        held = drain.held_text()
        over = now_s - began_s > timeout_s
        pause_s = _TELL_AT_MOST_EVERY_S if held != told else _TELL_AT_LEAST_EVERY_S
        if over or now_s - told_s >= pause_s:
            told_s, told = now_s, held
            waiting = _what_it_waits_for(source, drain)
            follower = DecisionFollower(source, drain.next_offset)  # the look at the heartbeats moved the reader away
            if over:
                _say_that_time_is_over(drain, timeout_s, held, waiting)
                return ExitStatus.UNREACHABLE
            click.echo(f"{drain.node_id} still holds {held}{waiting}", err=True)
        for logged in follower.poll(_POLL_MS):
            drain.take(logged)


def _what_it_waits_for(source: LogSource, drain: DrainProgress) -> str:
    """What the rows wait for in which the node still is, to be put behind a sentence; empty if nothing is planned."""
    observations = states.read_observations(source, drain.state)
    of_the_node = {slot.slot_id for slot in drain.state.slots.table if drain.node_id in slot.replicas}
    waiting = [each for each in rows_that_wait(drain.state, observations) if each.slot_id in of_the_node]
    lines = waiting_lines(waiting)
    more = f"; and {len(lines) - _LINES_SHOWN} other reasons" if len(lines) > _LINES_SHOWN else ""
    return "; " + "; ".join(lines[:_LINES_SHOWN]) + more if lines else ""


def _say_that_time_is_over(drain: DrainProgress, timeout_s: float, held: str, waiting: str) -> None:
    node_id = drain.node_id
    click.echo(
        f"{node_id} still holds {held} after {timeout_s:g} s (--drain-timeout){waiting}. The drain continues: "
        f"'controlplane table status' shows what it waits for, 'controlplane log show --node {node_id}' what was done",
        err=True,
    )
