"""The reasons in the log lines of a leader that steps down."""

import pytest
import structlog
from structlog.testing import capture_logs

from tests.simulation.script import Script, begun
from tests.simulation.setting import LEASE

pytestmark = pytest.mark.slow


def reasons_within(script: Script, milliseconds: int) -> list[str]:
    """The log lines of leaders that step down in the block."""
    structlog.reset_defaults()  # log lines are off by default here
    with capture_logs() as logs:
        script.go_on(milliseconds)
    return [each["reason"] for each in logs if each["event"] == "stepping down"]


def test_a_leader_that_stood_still_does_not_blame_kafka() -> None:
    """Kafka was well all the time: the leader says that it stood still, or meets its successor first and is fenced."""
    reasons = []
    for paused_at_ms in range(0, 200, 40):  # some moments of its loop
        script = begun()
        script.go_on(paused_at_ms)
        (leader,) = script.leaders
        script.world.machines[leader].network.lease_store = False
        script.pause(leader, 3 * LEASE.duration_ms)
        reasons += reasons_within(script, 4 * LEASE.duration_ms)
    assert len(reasons) == 5
    assert set(reasons) == {"stalled", "fenced"}


def test_a_leader_that_hears_nothing_blames_kafka() -> None:
    """Its loop went round all the time."""
    script = begun()
    (leader,) = script.leaders
    script.world.machines[leader].network.kafka = False
    assert reasons_within(script, 3 * LEASE.duration_ms) == ["cut off from Kafka"]
