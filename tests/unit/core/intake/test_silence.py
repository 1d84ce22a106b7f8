"""How long a node has been silent, by the ticks of its partition."""

from hypothesis import given
from hypothesis import strategies as st

from controlplane.config import HEARTBEATS, MAX_TICK_GAP_MS
from controlplane.core.identifiers import Coordinates, Epoch
from controlplane.core.intake.observations import Observations, observe
from controlplane.core.records import Heartbeat, InputRecord, NodeRole, Tick

TICK_MS = 100


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
