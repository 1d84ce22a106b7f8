"""The reasons in the log lines of a leader that steps down."""

from unittest.mock import patch

import pytest
import structlog
from structlog.testing import capture_logs

from controlplane.service.ticker import Ticker
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
    """It has no acknowledgement when it wakes, because it sent nothing, and others had theirs all the time.

    Its network sleeps a little longer, so that its loop goes round before anything tells it of its successor.
    """
    script = begun()
    (leader,) = script.leaders
    network = script.world.machines[leader].network
    network.lease_store = network.kafka = False
    script.pause(leader, 3 * LEASE.duration_ms)
    assert reasons_within(script, 3 * LEASE.duration_ms + 200) == ["stalled"]
    network.lease_store = network.kafka = True
    script.go_on_until(script.is_well, 4_000)


def test_a_leader_that_stood_still_and_is_acknowledged_meets_its_successor() -> None:
    """Ticks are acknowledged before its loop goes round: Kafka tells it that another one leads."""
    script = begun()
    (leader,) = script.leaders
    script.world.machines[leader].network.lease_store = False
    script.pause(leader, 3 * LEASE.duration_ms)
    with patch.object(Ticker, "since_acknowledged_ms", return_value=0):
        assert reasons_within(script, 4 * LEASE.duration_ms) == ["fenced"]


def test_a_leader_that_hears_nothing_blames_kafka() -> None:
    """Its loop went round all the time."""
    script = begun()
    (leader,) = script.leaders
    script.world.machines[leader].network.kafka = False
    assert reasons_within(script, 3 * LEASE.duration_ms) == ["cut off from Kafka"]


def test_a_leader_stays_while_kafka_acknowledges_nobody() -> None:
    """Until Kafka has given up a dead broker no other controller could commit either: a term more would help nobody."""
    script = begun()
    terms = list(script.terms)
    script.world.broker.delivery_delay_ms = 2 * LEASE.duration_ms
    assert reasons_within(script, 2 * LEASE.duration_ms - 100) == []
    script.world.broker.delivery_delay_ms = 0
    script.go_on_until(script.is_well, 4_000)
    assert script.terms == terms
    script.judge_end()
