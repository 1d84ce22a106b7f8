"""What operators' intents do, and the answer that each of them gets in the log."""

import re
from typing import Final

from controlplane.core.bundles import Namespace, equal_bundles
from controlplane.core.decision import CauseKind
from controlplane.core.draft import Draft
from controlplane.core.events import IntentAnswered, IntentOutcome, NamespaceCreated
from controlplane.core.records import InputRecord, Intent, IntentKind, Refusal

_NAMESPACE_NAME: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,126}\Z")


def take_intent(draft: Draft, record: InputRecord) -> Refusal | None:
    """Take up one intent: its effect and its answer in the draft; an intent answered before says nothing new."""
    intent = record.payload
    if not isinstance(intent, Intent):
        return Refusal(record.coordinates, "wrong_record_type", f"{type(intent).__name__} is no intent", record.raw)
    if intent.intent_id in draft.state.answered_intents:
        return None
    draft.because(CauseKind.INTENT, intent.intent_id, str(record.coordinates))
    outcome, detail = _carry_out(draft, intent)
    draft.add(IntentAnswered(intent.intent_id, intent.kind, intent.principal, outcome, detail))
    return None


def overrides_self_preservation(record: InputRecord, answered: tuple[str, ...]) -> bool:
    """Whether this is an unanswered intent to fence silent nodes although evictions are frozen."""
    intent = record.payload
    return (
        isinstance(intent, Intent)
        and intent.kind == IntentKind.OVERRIDE_SELF_PRESERVATION.value
        and intent.intent_id not in answered
    )


def _carry_out(draft: Draft, intent: Intent) -> tuple[IntentOutcome, str]:
    match intent.kind:
        case IntentKind.CREATE_NAMESPACE.value:
            return _create_namespace(draft, intent)
        case IntentKind.OVERRIDE_SELF_PRESERVATION.value:
            return IntentOutcome.DONE, "the nodes that are silent now are fenced"
        case unknown:
            known = ", ".join(kind.value for kind in IntentKind)
            return IntentOutcome.REFUSED, f"intent kind {unknown!r} is unknown; known are {known}"


def _create_namespace(draft: Draft, intent: Intent) -> tuple[IntentOutcome, str]:
    name = intent.arguments.get("namespace", "")
    if not _NAMESPACE_NAME.match(name):
        detail = f"namespace {name!r}: take 1 to 127 of a-z, 0-9, '.', '_' and '-', beginning with a letter or digit"
        return IntentOutcome.REFUSED, detail
    if name in draft.state.namespaces:
        return IntentOutcome.REFUSED, f"namespace {name!r} exists already"
    bundles = equal_bundles(name, draft.state.policy.bundles_per_namespace)
    draft.add(NamespaceCreated(Namespace(name, len(bundles)), bundles))
    return IntentOutcome.DONE, f"namespace {name!r} with {len(bundles)} bundles"
