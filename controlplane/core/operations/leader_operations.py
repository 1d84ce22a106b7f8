"""Operations on the leader: resign, and write a snapshot."""

from typing import Final

from controlplane.core.intents.events import IntentAnswered, IntentOutcome
from controlplane.core.intents.intent import IntentKind
from controlplane.core.log.decision import Decision
from controlplane.core.log.draft import Draft
from controlplane.core.operations.answers import Answer, done, refused
from controlplane.core.operations.arguments import Argument, check_name
from controlplane.core.operations.intent_conflicts import no_goals
from controlplane.core.operations.operation import Operation, Turn
from controlplane.core.operations.operation_context import Arguments, OperationContext
from controlplane.core.values.events import FIRST_LEVEL


def resign_leader(draft: Draft, arguments: Arguments, _: OperationContext) -> Answer:
    """Make the leader step down when the answer is committed; a leader other than the named one stays."""
    name, leader = arguments["controller"], draft.state.leader
    if name != leader:
        return refused(f"{leader!r} leads, not {name!r}")
    return done(f"{leader!r} resigns from term {draft.state.term}")


def resignation_in(decision: Decision) -> IntentAnswered | None:
    """The answer by which the leader resigned in this decision; None if it did not."""
    answers = [event for event in decision.events if isinstance(event, IntentAnswered)]
    return next(
        (
            answer
            for answer in answers
            if answer.kind == IntentKind.RESIGN_LEADER.value and answer.outcome is IntentOutcome.DONE
        ),
        None,
    )


def take_snapshot(draft: Draft, _: Arguments, __: OperationContext) -> Answer:
    """Answer the intent. The leader writes the snapshot when it reads this answer in the log."""
    return done(f"a snapshot is written of decision {draft.before.seq + 1} or a later one")


LEADER_OPERATIONS: Final = (
    Operation(
        kind=IntentKind.RESIGN_LEADER,
        summary="Make the leader give its lease back at once, so that another controller can lead.",
        carry_out=resign_leader,
        arguments=(
            Argument(
                name="controller",
                meaning="the controller that is to resign; refused if it does not lead",
                required=True,
                check=check_name("controller"),
                order=None,
            ),
        ),
        check_settings=None,
        goals=no_goals,
        turn=Turn.IN_ORDER,
        feature_level=FIRST_LEVEL,
        command="leader resign [--controller CONTROLLER]",
        supposition="",
    ),
    Operation(
        kind=IntentKind.TAKE_SNAPSHOT,
        summary="Make the leader write a snapshot of the state now.",
        carry_out=take_snapshot,
        arguments=(),
        check_settings=None,
        goals=no_goals,
        turn=Turn.IN_ORDER,
        feature_level=FIRST_LEVEL,
        command="snapshot now",
        supposition="",
    ),
)
