"""Verifies that no intent was carried out without the right to ask for it."""

from collections.abc import Iterator

from controlplane.core.cluster.events import ClusterCreated, PolicyChanged, TermOpened
from controlplane.core.intents.events import IntentAnswered, IntentOutcome
from controlplane.core.intents.intent import IntentKind
from controlplane.core.intents.rights import may_ask
from controlplane.core.log.decision import Decision
from controlplane.core.log.state import State


def right_complaints(before: State, decision: Decision) -> Iterator[str]:
    """One sentence for each intent that was done although its principal had no right to ask for it.

    The events of an intent precede its answer. A change of rights therefore counts from the next answer on; for an
    override, which takes effect before every other intent, it counts from the next decision on.
    """
    ruling = latest = before.cluster.policy
    for event in decision.events:
        if isinstance(event, ClusterCreated | TermOpened | PolicyChanged):
            latest = event.policy
        elif isinstance(event, IntentAnswered):
            overrides = event.kind == IntentKind.OVERRIDE_SELF_PRESERVATION.value
            policy = before.cluster.policy if overrides else ruling
            if event.outcome is IntentOutcome.DONE and not may_ask(policy, event.principal, event.kind):
                yield f"intent {event.intent_id} is done, and {event.principal!r} had no right to ask for {event.kind}"
            ruling = latest
