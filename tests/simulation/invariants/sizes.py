"""What may not grow without end: heartbeats, what a controller remembers of them, and the state."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from controlplane.config import HEARTBEATS
from controlplane.core.intents.image import ANSWERED_INTENTS_KEPT
from controlplane.core.log.state import State
from controlplane.core.membership.log_time import MARK_SPACING_MS, WINDOW_MS, PartitionView
from tests.simulation.invariants.verdicts import Verdicts
from tests.simulation.processes import RunningController
from tests.simulation.world import World

SMALL_HEARTBEATS: Final = "a heartbeat has a fixed part and less than two bytes for each replica that it reports"
SMALL_OBSERVATIONS: Final = "a controller remembers of heartbeats no more than the window of log time holds"
SMALL_STATE: Final = "the state and the table hold no node but those that were started, and no answer twice"

_HEARTBEAT_FIXED_BYTES: Final = 400
_BYTES_A_REPLICA: Final = 2
_TICKS_A_MS: Final = 3 / 50
"""Three controllers tick, and none more often than each 50 ms here, clocks and repeats included."""
_A_FEW: Final = 20


@dataclass
class SizeWatch:
    """Looks at intervals at what was appended since and at what controllers remember."""

    world: World
    verdicts: Verdicts
    _read_to: dict[int, int] = field(default_factory=dict)

    def look(self, state: State) -> None:
        """``state`` is the one by the log."""
        # A node reports bundles by their names; there are few in a run.
        replicas = max(len(state.slots.table), 256) + _A_FEW * 20
        self._judge_heartbeats(_HEARTBEAT_FIXED_BYTES + _BYTES_A_REPLICA * replicas)
        started = set(self.world.machines) | set(self.world.without_process)
        strangers = state.membership.nodes.keys() - started
        answers = len(state.intents.answered)
        self.verdicts.judge(
            SMALL_STATE,
            not strangers and answers == min(state.intents.answer_count, ANSWERED_INTENTS_KEPT),
            f"the state holds {sorted(strangers)} and {answers} of {state.intents.answer_count} answers",
        )
        for name, running in self.world.running.items():
            for number, view in _observed(running).items():
                heard_most = len(started) * _A_FEW
                ticks_most = int(WINDOW_MS * _TICKS_A_MS) * 2
                marks_most = WINDOW_MS // MARK_SPACING_MS * 2 + _A_FEW
                found = len(view.heard), len(view.ticks), len(view.marks), len(view.unvalidated)
                most = heard_most, ticks_most, marks_most, heard_most
                self.verdicts.judge(
                    SMALL_OBSERVATIONS,
                    all(there <= allowed for there, allowed in zip(found, most, strict=True)),
                    f"{name} remembers {found} of partition {number}; the window holds {most} at most",
                )

    def _judge_heartbeats(self, most_bytes: int) -> None:
        """Foreign writers append what they like, under keys that are no node's."""
        for number, partition in enumerate(self.world.broker.partitions(self.world.cluster.topic(HEARTBEATS))):
            first = self._read_to.get(number, partition.start_offset)
            self._read_to[number] = partition.end_offset
            for record in partition.read(first, partition.end_offset - first).records:
                size = len(record.value or b"")
                if (record.key or b"").decode(errors="replace") in self.world.machines:
                    self.verdicts.judge(SMALL_HEARTBEATS, size <= most_bytes, f"a heartbeat of {size} bytes")


def _observed(running: RunningController) -> Mapping[int, PartitionView]:
    return running.controller._components.input_reader.observations.partitions  # noqa: SLF001 - no program asks for it
