"""The answer to an operator's intent, found in the decision log."""

from dataclasses import dataclass

from controlplane.core.intents.events import IntentAnswered
from controlplane.core.values.identifiers import IntentId
from controlplane.inspection.readers import DecisionFollower, LoggedDecision
from controlplane.inspection.source import LogSource


@dataclass(frozen=True, slots=True)
class LoggedAnswer:
    """The answer to an intent, and the decision that contains it."""

    event: IntentAnswered
    logged: LoggedDecision


class AnswerWatch:
    """Watches the decision log for the answer to an intent; it has to be created before the intent is sent."""

    def __init__(self, source: LogSource) -> None:
        """Begin after the last decision. The watch owns the reader from then on."""
        self._follower = DecisionFollower(source)

    def wait(self, intent_id: IntentId, timeout_ms: int) -> LoggedAnswer | None:
        """The answer, or None if the log contains none within ``timeout_ms``."""
        found: list[IntentAnswered] = []

        def answers(logged: LoggedDecision) -> bool:
            events = [event for event in logged.decision.events if isinstance(event, IntentAnswered)]
            found.extend(event for event in events if event.intent_id == intent_id)
            return bool(found)

        logged = self._follower.wait_for(answers, timeout_ms)
        return None if logged is None else LoggedAnswer(found[0], logged)
