"""Waiting until a node that drains holds nothing any more: showing how far it is, what it waits for, and why it ends.

What a node holds is read from the decision log, whose end already has the decision that answered the order: of the
routing table's topic a reader would first see epochs from long before.
"""

import time
from typing import Final

import click

from controlplane.cli.common.failures import ExitStatus
from controlplane.cli.common.invocation import Invocation
from controlplane.cli.common.reading import reading
from controlplane.core.deciding.table_status import rows_that_wait
from controlplane.core.intents.events import IntentAnswered, IntentOutcome
from controlplane.core.intents.intent import IntentKind
from controlplane.core.log.apply import follow
from controlplane.core.log.state import State
from controlplane.core.membership.events import NodeAdmitted, NodeDraining, NodeFenced, NodeUndrained
from controlplane.core.membership.node import NodeStatus
from controlplane.core.operations.kept_slots import kept_slots, kept_text
from controlplane.core.operations.slot_numbers import counted, named_slots
from controlplane.core.slots.policies import BUILT_IN_POLICIES
from controlplane.core.slots.policy_contract import OrderKind, heeds
from controlplane.core.values.identifiers import NodeId, Seq, SlotId
from controlplane.errors import LogUnavailableError, RetryableError
from controlplane.inspection import readers, states
from controlplane.inspection.readers import DecisionFollower, LoggedDecision
from controlplane.inspection.source import LogSource
from controlplane.inspection.table_standing import waiting_lines

_POLL_MS: Final = 200
_TELL_AT_MOST_EVERY_S: Final = 1.0
_TELL_AT_LEAST_EVERY_S: Final = 10.0
_LINES_SHOWN: Final = 3


class _Drain:
    """What the decision log says of the drain of one node.

    Attributes:
        state: after the last decision.
        next_offset: in ``decisions``, behind that decision.
        began: the decision that began the drain; None until it was read.
        ended: why the node drains no more, and in which decision; empty as long as nothing else was said.
        given: the slots that the node has held since the drain began.
    """

    def __init__(self, node_id: NodeId) -> None:
        """Begin before the first decision."""
        self.node_id = node_id
        self.state = State()
        self.next_offset = 0
        self.began: Seq | None = None
        self.ended = ""
        self.given: set[SlotId] = set()

    def take(self, logged: LoggedDecision) -> None:
        """Take the next decision of the log."""
        decision = logged.decision
        held = self._held()
        self.state = follow(self.state, decision)
        self.next_offset = logged.offset + 1
        for event in decision.events:
            match event:
                case NodeDraining(node_id=self.node_id):
                    self.began, self.ended = decision.seq, ""
                    self.given = set()
                case NodeUndrained(node_id=self.node_id):
                    self.ended = f"undrained by {_undrained_by(logged, self.node_id)} in decision {decision.seq}"
                case NodeAdmitted(node=node) if node.node_id == self.node_id:
                    self.ended = f"a new process of that name joined in decision {decision.seq}"
                case NodeFenced(node_id=self.node_id):
                    lost = decision.certificate.lost_slots if decision.certificate is not None else ()
                    with_it = f", and the last copy of {named_slots(lost)} with it" if lost else ""
                    self.ended = f"it was fenced in decision {decision.seq}{with_it}"
                case _:
                    pass
        self.given |= held

    def held_text(self) -> str:
        """What the node holds, in words; empty if it holds nothing."""
        slots = len(self._held())
        bundles = sum(1 for bundle in self.state.bundles.by_id.values() if bundle.owner == self.node_id)
        return f"{counted(slots, 'slot')} and {counted(bundles, 'bundle')}" if slots or bundles else ""

    def only_kept(self, kept: tuple[SlotId, ...]) -> bool:
        """Whether everything that the node still holds is what it keeps, and it keeps something."""
        held = self._held()
        owns = any(bundle.owner == self.node_id for bundle in self.state.bundles.by_id.values())
        return bool(held) and not owns and held <= set(kept)

    def deserted(self) -> list[SlotId]:
        """The slots that the node gave away and nobody holds, ascending."""
        return [slot.slot_id for slot in self.state.slots.table if slot.slot_id in self.given and not slot.replicas]

    def _held(self) -> set[SlotId]:
        return {slot.slot_id for slot in self.state.slots.table if self.node_id in slot.replicas}


def wait_until_drained(invocation: Invocation, node_id: NodeId, timeout_s: float) -> ExitStatus:
    """Follow the decision log until the node holds nothing, telling on standard error what it still holds, and why.

    Returns:
        done when it holds nothing; failed if it drains no more, or never gives everything away as things stand;
        unreachable when the time is over.

    Raises:
        LogUnavailableError: Kafka does not answer any more; the message says that the drain goes on all the same.
    """
    drain = _Drain(node_id)
    try:
        with reading(invocation, work="") as source:
            for logged in readers.read_decisions(source):
                drain.take(logged)
            return _follow(source, drain, timeout_s)
    except RetryableError as error:
        accepted = f" (decision {drain.began})" if drain.began is not None else ""
        message = (
            f"Kafka does not answer any more: {error}. The order to drain {node_id} was accepted{accepted}, stays in "
            "the log, and the leader goes on with it as soon as it reaches Kafka. When Kafka is back, 'controlplane "
            f"nodes drain {node_id}' waits on, and 'controlplane table status' says how far it is"
        )
        raise LogUnavailableError(message) from error


def _follow(source: LogSource, drain: _Drain, timeout_s: float) -> ExitStatus:
    began_s = time.monotonic()
    told_s, told = -_TELL_AT_LEAST_EVERY_S, ""
    follower = DecisionFollower(source, drain.next_offset)
    while True:
        status = _end_of(drain)
        if status is not None:
            return status
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


def _end_of(drain: _Drain) -> ExitStatus | None:
    """Whether there is nothing more to wait for, told on standard error; None if there is."""
    node_id, state = drain.node_id, drain.state
    node = state.membership.nodes.get(node_id)
    if node is not None and node.status in (NodeStatus.ACTIVE, NodeStatus.FENCED):
        click.echo(f"{node_id} no longer drains: {drain.ended or 'the log does not say that it ever did'}", err=True)
        return ExitStatus.FAILED
    if not drain.held_text():
        if deserted := drain.deserted():
            why = "'controlplane table status' says why"
            click.echo(f"{node_id} holds nothing any more, but nobody took {named_slots(deserted)}: {why}", err=True)
            return ExitStatus.FAILED
        click.echo(f"{node_id} holds nothing any more", err=True)
        return ExitStatus.DONE
    reason = _why_it_stays(state, node_id)
    if reason:
        click.echo(f"{node_id} keeps what it holds: {reason}", err=True)
        return ExitStatus.FAILED
    kept = _kept(state, node_id)
    if drain.only_kept(kept):
        click.echo(f"{node_id} {kept_text(kept)}; it holds nothing else any more", err=True)
        return ExitStatus.FAILED
    return None


def _kept(state: State, node_id: NodeId) -> tuple[SlotId, ...]:
    """The slots that the node keeps however long anybody waits; a policy of somebody's own is held to heed orders."""
    heeds_exclusions = heeds(BUILT_IN_POLICIES, state.cluster.policy.slot_policy, OrderKind.SLOT_EXCLUSIONS)
    return kept_slots(state, node_id, heeds_exclusions=heeds_exclusions)


def _why_it_stays(state: State, node_id: NodeId) -> str:
    """What keeps a draining node from ever giving its slots away; empty if nothing does."""
    if state.slots.paused:
        return "reconciliation is paused; 'controlplane table resume' lets it go on"
    if not state.membership.can_relieve(node_id):
        return "there is no other node to take it over"
    return ""


def _what_it_waits_for(source: LogSource, drain: _Drain) -> str:
    """What the rows wait for in which the node still is, to be put behind a sentence; empty if nothing is planned."""
    observations = states.read_observations(source, drain.state)
    of_the_node = {slot.slot_id for slot in drain.state.slots if drain.node_id in slot.replicas}
    waiting = [each for each in rows_that_wait(drain.state, observations) if each.slot_id in of_the_node]
    lines = waiting_lines(waiting)
    more = f"; and {len(lines) - _LINES_SHOWN} other reasons" if len(lines) > _LINES_SHOWN else ""
    return "; " + "; ".join(lines[:_LINES_SHOWN]) + more if lines else ""


def _say_that_time_is_over(drain: _Drain, timeout_s: float, held: str, waiting: str) -> None:
    node_id = drain.node_id
    click.echo(
        f"{node_id} still holds {held} after {timeout_s:g} s (--drain-timeout){waiting}. The drain goes on: "
        f"'controlplane table status' says what it waits for, 'controlplane log show --node {node_id}' what was done",
        err=True,
    )


def _undrained_by(logged: LoggedDecision, node_id: NodeId) -> str:
    """Who asked for it; an answer names the node in its words only."""
    for event in logged.decision.events:
        if (
            isinstance(event, IntentAnswered)
            and event.kind == IntentKind.UNDRAIN_NODE.value
            and event.outcome is IntentOutcome.DONE
            and f"{node_id!r}" in event.detail
        ):
            return event.principal or "somebody"
    return "somebody"
