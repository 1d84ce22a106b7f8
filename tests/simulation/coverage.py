"""What many runs have to cover together before their success proves anything."""

from collections.abc import Iterator
from typing import Final

from controlplane.core.cluster.events import FeatureLevelRaised, NodesForgotten
from controlplane.core.log.events import EVENT_TYPES
from tests.simulation.audit import AUDITED_ALIKE
from tests.simulation.invariants.bounds import (
    ANSWERED_AFTER_FAILOVER,
    ANSWERED_BY_ANY,
    ANSWERED_IN_TIME,
    FENCED_AFTER_FAILOVER,
    FENCED_BY_ANY,
    FENCED_IN_TIME,
)
from tests.simulation.invariants.consent import BUNDLES_BY_CONSENT, SLOTS_BY_CONSENT
from tests.simulation.invariants.cut_watch import CUT_KEEPS_THE_PROMISE
from tests.simulation.invariants.endings import NO_AGENT_ENDS
from tests.simulation.invariants.fencing import DEAD_ARE_FENCED, HEARD_IN_TIME, KEEPS_ITS_PROMISE, TIME_PASSES
from tests.simulation.invariants.handoff_bounds import (
    BEGUN_IN_TIME,
    GIVEN_ITS_TIME,
    ORDERS_KEPT,
    RELEASED_IN_TIME,
    STEP_IN_TIME,
    TAKEN_IN_TIME,
    TO_MEMBERS,
)
from tests.simulation.invariants.healing import ALL_ANSWERED, LIVENESS
from tests.simulation.invariants.log_watch import ANSWERED_ONCE, CONTINUES, KEPT, ONE_LEADER, POSITIONS, WHOLE
from tests.simulation.invariants.losses import STOPS_IN_TIME
from tests.simulation.invariants.opened_bundles import COPIED_FIRST, OPEN_AT_ONE, OPENED_FIRST, OPENED_FOR_THIS
from tests.simulation.invariants.overlap import Cause
from tests.simulation.invariants.ownership import ONE_OWNER
from tests.simulation.invariants.planned_overlap import BUNDLES, RELEASES, SLOTS
from tests.simulation.invariants.readers import ALIKE, COMMITTED, FORWARD
from tests.simulation.invariants.sizes import SMALL_HEARTBEATS, SMALL_OBSERVATIONS, SMALL_STATE
from tests.simulation.run import ABOVE_FLOOR, NO_PROCESS_ENDS, NOT_ANOTHERS
from tests.simulation.setting import SettingKind
from tests.simulation.summary import Summary

MEETS_ALL: Final = 200
"""Runs that together look at every invariant and let every kind of event happen."""
MEETS_ALL_CELLS: Final = 5_000
"""Runs in which every kind of fault also meets every step of the leader's loop."""

_NEVER: Final = {FeatureLevelRaised, NodesForgotten}
"""A log of the simulation begins at the newest level; tests/integration/test_feature_levels.py raises one. Runs are too
short for a node to be forgotten; tests/simulation/mutants/forgetting_scenes.py shows it."""
_INVARIANTS: Final = frozenset(
    {
        ABOVE_FLOOR,
        ALIKE,
        ALL_ANSWERED,
        ANSWERED_AFTER_FAILOVER,
        ANSWERED_BY_ANY,
        ANSWERED_IN_TIME,
        ANSWERED_ONCE,
        AUDITED_ALIKE,
        COMMITTED,
        CONTINUES,
        CUT_KEEPS_THE_PROMISE,
        DEAD_ARE_FENCED,
        FENCED_AFTER_FAILOVER,
        FENCED_BY_ANY,
        FENCED_IN_TIME,
        FORWARD,
        HEARD_IN_TIME,
        KEEPS_ITS_PROMISE,
        KEPT,
        LIVENESS,
        NO_AGENT_ENDS,
        NO_PROCESS_ENDS,
        NOT_ANOTHERS,
        ONE_LEADER,
        ONE_OWNER,
        BUNDLES,
        RELEASES,
        SLOTS,
        BUNDLES_BY_CONSENT,
        SLOTS_BY_CONSENT,
        COPIED_FIRST,
        OPENED_FIRST,
        OPENED_FOR_THIS,
        OPEN_AT_ONE,
        ORDERS_KEPT,
        STEP_IN_TIME,
        TAKEN_IN_TIME,
        TO_MEMBERS,
        POSITIONS,
        SMALL_HEARTBEATS,
        SMALL_OBSERVATIONS,
        SMALL_STATE,
        STOPS_IN_TIME,
        TIME_PASSES,
        WHOLE,
        *(cause.value for cause in Cause),
    }
)
_SELDOM_LOOKED_AT: Final = frozenset({BEGUN_IN_TIME, GIVEN_ITS_TIME, RELEASED_IN_TIME})
"""Few random runs have an order that waits, or a node that is slow with a bundle.
tests/simulation/mutants/handoff_scenes.py leads there."""
_LEAST_FAULTS: Final = 6
_LEAST_KINDS: Final = 4
_LEAST_EVENTS: Final = 2_000
_LEAST_VIRTUAL_MS: Final = 20_000


def what_is_missing(summary: Summary) -> Iterator[str]:
    """What the runs have not covered, one sentence each. With fewer runs than :data:`MEETS_ALL` that is no failure."""
    checked = summary.checked.keys() - _SELDOM_LOOKED_AT
    if checked != _INVARIANTS:
        names = ", ".join(sorted(checked ^ _INVARIANTS))
        yield f"these invariants were never looked at, or are not listed in {__name__}: {names}"
    if set(EVENT_TYPES) - summary.happened != _NEVER:
        kinds = ", ".join(sorted(kind.__name__ for kind in (set(EVENT_TYPES) - summary.happened) ^ _NEVER))
        yield f"tests/simulation/workload.py has to let every kind of event happen, but for those never: {kinds}"
    if unmet := [kind.value for kind in SettingKind if not summary.settings[kind]]:
        yield f"no run had a cluster with: {', '.join(unmet)}"
    smallest = (summary.fewest_faults, summary.fewest_kinds, summary.fewest_events, summary.shortest_ms)
    least = (_LEAST_FAULTS, _LEAST_KINDS, _LEAST_EVENTS, _LEAST_VIRTUAL_MS)
    if any(there < needed for there, needed in zip(smallest, least, strict=True)):
        yield f"a run is too small: faults, kinds of them, events, virtual ms are {smallest}, and have to be {least}"
    if summary.runs >= MEETS_ALL_CELLS and summary.empty_cells:
        yield f"so many runs have to meet every kind of fault in every step: {', '.join(summary.empty_cells)}"
