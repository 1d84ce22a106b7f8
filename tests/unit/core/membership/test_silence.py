"""How long a node has been silent, by the ticks of its partition."""

from itertools import cycle

from hypothesis import given
from hypothesis import strategies as st

from controlplane.config import HEARTBEATS, MAX_TICK_GAP_MS
from controlplane.core.cluster.policy import ClusterPolicy
from controlplane.core.deciding.observations import Observations, observe
from controlplane.core.membership.inputs import Heartbeat, Tick
from controlplane.core.membership.node import NodeRole
from controlplane.core.values.identifiers import Coordinates, Epoch
from controlplane.core.values.inputs import InputRecord
from tests.helpers.world import World

TICK_MS = 100
LIMIT_MS = 1_000


@given(st.integers(0, MAX_TICK_GAP_MS), st.integers(1, 30))
def test_silence_begins_with_the_heartbeat_and_not_with_the_tick_before_it(after_tick_ms: int, ticks: int) -> None:
    """A node would be fenced up to a tick too early; a gap without ticks still counts no more than its limit."""
    beat_ms = 1_000 + after_tick_ms
    times_ms = [beat_ms + TICK_MS * number for number in range(1, ticks + 1)]
    payloads = [
        (1_000, Tick("c1", 0)),
        (beat_ms, Heartbeat("n1", 1, 0, Epoch(0), NodeRole.DATA)),
        *((time_ms, Tick("c1", 0)) for time_ms in times_ms),
    ]
    records = [
        InputRecord(Coordinates(HEARTBEATS, 0, offset, time_ms), payload, b"")
        for offset, (time_ms, payload) in enumerate(payloads)
    ]
    silence_ms = observe(Observations(), records).silence_ms("n1", 1)
    assert silence_ms is not None
    assert silence_ms <= times_ms[-1] - beat_ms
    first_gap_ms = min(after_tick_ms + TICK_MS, MAX_TICK_GAP_MS) - after_tick_ms
    assert silence_ms == first_gap_ms + TICK_MS * (ticks - 1)


@given(st.lists(st.integers(1, MAX_TICK_GAP_MS), min_size=1, max_size=7))
def test_a_member_that_was_never_heard_has_the_whole_limit_from_its_admission(gaps_ms: list[int]) -> None:
    """However the ticks lie: what is remembered of them is rounded for the member, and by little."""
    world = World(ClusterPolicy(slot_count=16, silence_limit_ms=LIMIT_MS, join_linger_ms=0))
    world.join("n1")
    admitted_at_ms = 0
    for gap_ms in cycle(gaps_ms):
        world.tick(gap_ms)
        decision = world.decide()
        if decision is not None and not admitted_at_ms:
            admitted_at_ms = world.now_ms
        elif decision is not None:
            break
    assert not world.state.membership.nodes["n1"].lives
    assert LIMIT_MS < world.now_ms - admitted_at_ms <= LIMIT_MS + 3 * MAX_TICK_GAP_MS
