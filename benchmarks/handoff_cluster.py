"""The control plane that moves things in a benchmark, and the operator who orders it to."""

import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from controlplane.bootstrap.connections import open_intent_writer, open_source
from controlplane.config import ClusterConfig, KafkaConfig
from controlplane.core.intents.events import IntentAnswered, IntentOutcome
from controlplane.core.intents.intent import Intent, IntentKind
from controlplane.core.log.state import State
from controlplane.core.values.identifiers import IntentId
from controlplane.errors import ConfigurationError, LogUnavailableError
from controlplane.inspection.readers import DecisionFollower, LoggedDecision
from controlplane.inspection.states import read_state
from controlplane.intents_client import submit_intent

DEADLINE_S: Final = 60.0
"""How long anything is waited for that takes seconds at the most."""
_END_TIMEOUT_S: Final = 20
_LOOK_AGAIN_S: Final = 0.1


@contextmanager
def running_controller(
    cluster: ClusterConfig, kafka: KafkaConfig, redis_url: str, policy: Mapping[str, object], output: Path
) -> Iterator[None]:
    """A controller, as a user starts it, until the end of the block; with the policy of a new cluster."""
    command = [
        *(sys.executable, "-m", "controlplane.cli", "--cluster", cluster.name),
        *("--bootstrap-servers", kafka.bootstrap_servers, "--redis-url", redis_url, "controller", "run"),
        *(word for name, value in policy.items() for word in ("--policy", f"{name}={value}")),
    ]
    with output.open("wb") as lines:
        process = subprocess.Popen(command, stdout=lines, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
    try:
        yield
    except LogUnavailableError:
        print(f"the end of the controller's output:\n{output.read_text(errors='replace')[-2_000:]}", file=sys.stderr)
        raise
    finally:
        process.terminate()
        process.wait(_END_TIMEOUT_S)


class Operator:
    """Gives orders to a cluster. :meth:`close` has to follow."""

    def __init__(self, cluster: ClusterConfig, kafka: KafkaConfig) -> None:
        """Connect to a cluster whose topics exist."""
        self._source = open_source(cluster, kafka)
        self._answers_source = open_source(cluster, kafka)
        self._answers = DecisionFollower(self._answers_source)
        self._writer = open_intent_writer(cluster, kafka)
        self._unanswered: dict[IntentId, Intent] = {}

    def close(self) -> None:
        """Close the connections."""
        self._writer.close()
        self._answers_source.close()
        self._source.close()

    def order(self, kind: IntentKind, **arguments: str) -> None:
        """Send an intent without waiting for its answer. Those of one operator are carried out in their order."""
        intent = Intent(f"{kind.value}-{uuid.uuid4().hex[:12]}", kind.value, "benchmark", arguments)
        self._unanswered[intent.intent_id] = intent
        submit_intent(self._writer, intent)

    def check_answers(self) -> None:
        """Wait for the answers to everything that was ordered.

        Raises:
            ConfigurationError: one was refused.
            LogUnavailableError: no leader answered in time.
        """
        if self._unanswered and self._answers.wait_for(self._takes_the_last, round(1_000 * DEADLINE_S)) is None:
            raise LogUnavailableError(f"no leader has answered {', '.join(self._unanswered)}")

    def _takes_the_last(self, logged: LoggedDecision) -> bool:
        """Take the answers of a decision; return whether none is left to come."""
        for event in logged.decision.events:
            if not isinstance(event, IntentAnswered) or self._unanswered.pop(event.intent_id, None) is None:
                continue
            if event.outcome is IntentOutcome.REFUSED:
                raise ConfigurationError(f"{event.kind} was refused: {event.detail}")
        return not self._unanswered

    def wait_for_state(self, holds: Callable[[State], bool], what: str) -> None:
        """Wait until a condition holds after the last decision.

        Raises:
            LogUnavailableError: it did not come to hold in time; the message says ``what`` was waited for.
        """
        until_s = time.monotonic() + DEADLINE_S
        while not holds(read_state(self._source)):
            if time.monotonic() > until_s:
                raise LogUnavailableError(f"not within {DEADLINE_S:.0f} s: {what}")
            time.sleep(_LOOK_AGAIN_S)
