"""Takes up intents: the effect of each in a draft, and its answer in the log."""

from collections.abc import Iterable

from controlplane.core.cluster.image import ClusterImage
from controlplane.core.intents.events import IntentAnswered, IntentOutcome
from controlplane.core.intents.image import IntentsImage
from controlplane.core.intents.intent import REASON, Intent, IntentKind
from controlplane.core.intents.rights import refusal_of
from controlplane.core.log.decision import CauseKind
from controlplane.core.log.draft import Draft
from controlplane.core.operations.answers import Answer, refused, unheeded
from controlplane.core.operations.argument_checks import argument_problem
from controlplane.core.operations.intent_conflicts import Goals, contradicted
from controlplane.core.operations.operation import Operation, Turn
from controlplane.core.operations.operation_context import OperationContext
from controlplane.core.operations.registry import OPERATIONS, operation_named
from controlplane.core.values.identifiers import IntentId
from controlplane.core.values.inputs import InputRecord, Refusal


def take_intents(draft: Draft, records: Iterable[InputRecord], context: OperationContext) -> list[Refusal]:
    """Take up intents: add their effects and answers to the draft.

    An intent that was answered before is skipped. An intent of which no goal would remain, because later intents in
    ``records`` contradict it, is superseded and has no effect. An intent that is contradicted only in part is carried
    out, and the later ones after it.
    """
    refusals = []
    fresh: dict[IntentId, InputRecord] = {}
    for record in records:
        intent = record.payload
        if not isinstance(intent, Intent):
            detail = f"{type(intent).__name__} is no intent"
            refusals.append(Refusal.of(record.coordinates, "wrong_record_type", detail, record.raw))
        elif not draft.state.intents.has_answered(intent.intent_id):
            fresh.setdefault(intent.intent_id, record)
    intents = [record.payload for record in fresh.values() if isinstance(record.payload, Intent)]
    superseded = _superseded(draft, intents, context)
    for intent in intents:
        draft.because(CauseKind.INTENT, intent.intent_id, str(fresh[intent.intent_id].coordinates))
        later = superseded.get(intent.intent_id)
        answer = (
            _carry_out(draft, intent, context)
            if later is None
            else Answer(IntentOutcome.SUPERSEDED, f"the later intent {later} asks for something else")
        )
        reason = intent.arguments.get(REASON)
        detail = f"{answer.detail} (reason given: {reason})" if reason else answer.detail
        draft.add(IntentAnswered(intent.intent_id, intent.kind, intent.principal, answer.outcome, detail))
    return refusals


def overrides_self_preservation(record: InputRecord, intents: IntentsImage, cluster: ClusterImage) -> bool:
    """Whether this is an unanswered and permitted intent to fence silent nodes although evictions are frozen.

    Args:
        record: the record that was read.
        intents: the intents that were answered.
        cluster: policy and feature level before the decision.
    """
    intent = record.payload
    operation = OPERATIONS[IntentKind.OVERRIDE_SELF_PRESERVATION]
    return (
        isinstance(intent, Intent)
        and intent.kind == operation.kind.value
        and not intents.has_answered(intent.intent_id)
        and _problem(operation, intent, cluster) is None
    )


def _carry_out(draft: Draft, intent: Intent, context: OperationContext) -> Answer:
    operation = operation_named(intent.kind)
    if operation is None:
        known = ", ".join(kind.value for kind in IntentKind)
        return refused(f"intent kind {intent.kind!r} is unknown; known are {known}")
    before_intents = operation.turn is Turn.BEFORE_EXPIRY
    problem = _problem(operation, intent, (draft.before if before_intents else draft.state).cluster)
    if problem is not None:
        return refused(problem)
    answer = operation.carry_out(draft, intent.arguments, context)
    ordered = {each.order for each in operation.arguments if each.order is not None and each.name in intent.arguments}
    name = draft.state.cluster.policy.slot_policy
    ignored = unheeded(context.policies, name, ordered)
    if answer.outcome is not IntentOutcome.DONE or not ignored:
        return answer
    words = " and ".join(kind.value for kind in ignored)
    return answer._replace(detail=f"{answer.detail}; slot policy {name!r} does not look at {words}")


def _problem(operation: Operation, intent: Intent, cluster: ClusterImage) -> str | None:
    """Why an intent is refused before its operation is called; None if it is not."""
    return (
        argument_problem(operation, intent.arguments)
        or _level_problem(operation, cluster)
        or refusal_of(cluster.policy, intent.principal, intent.kind)
    )


def _level_problem(operation: Operation, cluster: ClusterImage) -> str | None:
    if operation.feature_level <= cluster.feature_level:
        return None
    return (
        f"{operation.kind.value} needs feature level {operation.feature_level}, the log has {cluster.feature_level}: "
        "raise it first, when every controller supports it"
    )


def _superseded(draft: Draft, intents: list[Intent], context: OperationContext) -> dict[IntentId, IntentId]:
    """The intents without effect, each with the later intent that contradicts it and is not refused itself."""
    slot_count = len(draft.state.slots.table)
    goals = [(intent.intent_id, _goals_of(intent, slot_count)) for intent in intents]
    effective = {intent.intent_id for intent in intents}
    while found := contradicted(goals, effective):
        trial = draft.fork()
        answers = {
            intent.intent_id: _carry_out(trial, intent, context) for intent in intents if intent.intent_id not in found
        }
        failed = {intent_id for intent_id, answer in answers.items() if answer.outcome is IntentOutcome.REFUSED}
        if not failed & effective:
            break
        effective -= failed
    return found


def _goals_of(intent: Intent, slot_count: int) -> Goals:
    operation = operation_named(intent.kind)
    return Goals() if operation is None else operation.goals(intent.arguments, slot_count)
