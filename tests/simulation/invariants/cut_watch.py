"""Of a fleet that was cut off from Kafka at one moment, no more is fenced than self-preservation promises."""

from dataclasses import dataclass, field
from typing import Final

from controlplane.core.intents.events import IntentAnswered
from controlplane.core.intents.intent import IntentKind
from controlplane.core.log.decision import Decision
from controlplane.core.log.state import State
from controlplane.core.membership.events import FencingCause, NodeFenced
from controlplane.core.values.identifiers import NodeId
from tests.simulation.invariants.fencing import living_at
from tests.simulation.invariants.verdicts import Verdicts
from tests.simulation.world import World

CUT_KEEPS_THE_PROMISE: Final = "one cut of all nodes fences no more of them within a window than is promised"


@dataclass
class CutWatch:
    """Counts from a cut on, until it was over for a silence limit, for a window at most."""

    world: World
    verdicts: Verdicts
    _cut: frozenset[NodeId] = frozenset()
    _since_log_ms: int = 0
    _fenced: set[NodeId] = field(default_factory=set)

    def begin(self) -> None:
        """All nodes that run are cut off now."""
        self._cut, self._fenced, self._since_log_ms = frozenset(self.world.agents), set(), 0

    def see(self, before: State, decision: Decision, _after: State) -> None:
        """A decision was committed."""
        answers = [event.kind for event in decision.events if isinstance(event, IntentAnswered)]
        self._since_log_ms = self._since_log_ms or decision.decided_at_ms
        is_over = decision.decided_at_ms - self._since_log_ms > before.cluster.policy.protection_window_ms
        if is_over or IntentKind.OVERRIDE_SELF_PRESERVATION.value in answers:
            self._cut = frozenset()
        self._fenced |= {
            event.node_id
            for event in decision.events
            if isinstance(event, NodeFenced) and event.cause is FencingCause.SILENCE
        } & self._cut
        if self._cut:
            lived = living_at(before, decision) | self._fenced
            promised = max(1, int(before.cluster.policy.protected_ratio * len(lived)))
            self.verdicts.judge(
                CUT_KEEPS_THE_PROMISE,
                len(self._fenced) <= promised,
                f"decision {decision.seq} makes {sorted(self._fenced)} fenced of {sorted(lived)} that were cut off",
            )
