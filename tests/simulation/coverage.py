"""What many runs have to cover together before their success proves anything."""

from collections.abc import Iterator
from typing import Final

from controlplane.core.cluster.events import FeatureLevelRaised
from controlplane.core.log.events import EVENT_TYPES
from tests.simulation.audit import AUDITED_ALIKE
from tests.simulation.invariants.fencing import DEAD_ARE_FENCED, HEARD_IN_TIME
from tests.simulation.invariants.healing import ALL_ANSWERED, LIVENESS
from tests.simulation.invariants.log_watch import ANSWERED_ONCE, CONTINUES, KEPT, ONE_LEADER, POSITIONS, WHOLE
from tests.simulation.invariants.losses import STOPS_IN_TIME
from tests.simulation.invariants.ownership import ONE_OWNER
from tests.simulation.invariants.readers import ALIKE, COMMITTED, FORWARD
from tests.simulation.run import ABOVE_FLOOR, NO_PROCESS_ENDS, NOT_ANOTHERS
from tests.simulation.summary import Summary

MEETS_ALL: Final = 200
"""Runs that together look at every invariant and let every kind of event happen."""
MEETS_ALL_CELLS: Final = 5_000
"""Runs in which every kind of fault also meets every step of the leader's loop."""

_NEVER: Final = {FeatureLevelRaised}
"""A log of the simulation begins at the newest level; tests/integration/test_feature_levels.py raises one."""
_INVARIANTS: Final = frozenset(
    {
        ABOVE_FLOOR,
        ALIKE,
        ALL_ANSWERED,
        ANSWERED_ONCE,
        AUDITED_ALIKE,
        COMMITTED,
        CONTINUES,
        DEAD_ARE_FENCED,
        FORWARD,
        HEARD_IN_TIME,
        KEPT,
        LIVENESS,
        NO_PROCESS_ENDS,
        NOT_ANOTHERS,
        ONE_LEADER,
        ONE_OWNER,
        POSITIONS,
        STOPS_IN_TIME,
        WHOLE,
    }
)
_LEAST_FAULTS: Final = 6
_LEAST_KINDS: Final = 4
_LEAST_EVENTS: Final = 2_000
_LEAST_VIRTUAL_MS: Final = 20_000


def what_is_missing(summary: Summary) -> Iterator[str]:
    """What the runs have not covered, one sentence each. With fewer runs than :data:`MEETS_ALL` that is no failure."""
    if summary.checked.keys() != _INVARIANTS:
        names = ", ".join(sorted(summary.checked.keys() ^ _INVARIANTS))
        yield f"these invariants were never looked at, or are not listed in {__name__}: {names}"
    if set(EVENT_TYPES) - summary.happened != _NEVER:
        kinds = ", ".join(sorted(kind.__name__ for kind in (set(EVENT_TYPES) - summary.happened) ^ _NEVER))
        yield f"tests/simulation/workload.py has to let every kind of event happen, but for those never: {kinds}"
    smallest = (summary.fewest_faults, summary.fewest_kinds, summary.fewest_events, summary.shortest_ms)
    least = (_LEAST_FAULTS, _LEAST_KINDS, _LEAST_EVENTS, _LEAST_VIRTUAL_MS)
    if any(there < needed for there, needed in zip(smallest, least, strict=True)):
        yield f"a run is too small: faults, kinds of them, events, virtual ms are {smallest}, and have to be {least}"
    if summary.runs >= MEETS_ALL_CELLS and summary.empty_cells:
        yield f"so many runs have to meet every kind of fault in every step: {', '.join(summary.empty_cells)}"
