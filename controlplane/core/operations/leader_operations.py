"""What operators can ask of the leader itself: to hand over."""

from controlplane.core.intents.events import IntentAnswered, IntentOutcome
from controlplane.core.intents.intent import IntentKind
from controlplane.core.log.decision import Decision
from controlplane.core.log.draft import Draft
from controlplane.core.operations.asked import Answer, Arguments, Circumstances, done, refused


def resign_leader(draft: Draft, arguments: Arguments, _: Circumstances) -> Answer:
    """The leader steps down when the answer is committed; one that was elected meanwhile was not meant."""
    name, leader = arguments["controller"], draft.state.leader
    if name != leader:
        return refused(f"{leader!r} leads, not {name!r}")
    return done(f"{leader!r} resigns from term {draft.state.term}")


def resignation_in(decision: Decision) -> IntentAnswered | None:
    """The answer by which the leader that made this decision has resigned, if it has."""
    answers = [event for event in decision.events if isinstance(event, IntentAnswered)]
    return next(
        (
            answer
            for answer in answers
            if answer.kind == IntentKind.RESIGN_LEADER.value and answer.outcome is IntentOutcome.DONE
        ),
        None,
    )
