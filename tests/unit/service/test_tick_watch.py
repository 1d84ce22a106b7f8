"""A partition in which time stands still is told of once, and once when it goes on."""

import pytest
from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs

from controlplane.config import HEARTBEATS
from controlplane.core.deciding.observations import Observations, observe
from controlplane.core.membership.inputs import Tick
from controlplane.core.values.identifiers import Coordinates
from controlplane.core.values.inputs import InputRecord
from controlplane.service.metrics import ControllerMetrics
from controlplane.service.tick_watch import TickWatch
from controlplane.testing import VirtualClock


@pytest.mark.parametrize("silent_since_s", [0, 3])
def test_a_partition_without_ticks_is_told_of_once(silent_since_s: int) -> None:
    """Five seconds after its last tick, whether it had one or not; and again when there is a new one."""
    clock, registry = VirtualClock(), CollectorRegistry()
    watch = TickWatch(clock, ControllerMetrics(registry))
    observations = Observations()
    gauge: list[float] = []
    with capture_logs() as logs:
        for second in range(20):
            ticking = [0, 1] if second < silent_since_s or second >= 15 else [0]
            records = [
                InputRecord(Coordinates(HEARTBEATS, partition, second, second * 1_000), Tick("c1", 0), b"")
                for partition in ticking
            ]
            unread = InputRecord(Coordinates(HEARTBEATS, 1, 0, 0), None, b"")
            observations = observe(observations, [*records, unread])
            watch.look(observations)
            clock.advance(1_000)
            gauge.append(registry.get_sample_value("controlplane_heartbeat_partitions_without_ticks") or 0)
    told_at_s = max(silent_since_s - 1, 0) + 5
    assert [second for second, value in enumerate(gauge) if value] == list(range(told_at_s, 15))
    assert [(each["log_level"], each.get("partitions")) for each in logs] == [("warning", [1]), ("info", None)]


def test_partitions_that_stay_without_ticks_are_an_error() -> None:
    """After half a minute it is no broker's death any more; and all partitions are more than some."""
    clock, registry = VirtualClock(), CollectorRegistry()
    watch = TickWatch(clock, ControllerMetrics(registry))
    unread = [InputRecord(Coordinates(HEARTBEATS, partition, 0, 0), None, b"") for partition in (0, 1)]
    observations = observe(Observations(), unread)
    logged: list[tuple[int, str, str]] = []
    for second in range(60):
        if 10 <= second < 45:
            tick = InputRecord(Coordinates(HEARTBEATS, 0, second, second * 1_000), Tick("c1", 0), b"")
            observations = observe(observations, [tick])
        with capture_logs() as logs:
            watch.look(observations)
        logged += [(second, each["log_level"], each["event"].split(":")[0]) for each in logs]
        clock.advance(1_000)
    assert logged == [
        (5, "warning", "no partition gets ticks"),
        (10, "warning", "some partitions get no ticks"),
        (35, "error", "some partitions get no ticks"),
        (49, "error", "no partition gets ticks"),
    ]


def test_clocks_that_differ_are_told_of_once() -> None:
    """Two partitions whose leaders are on brokers half a minute apart, for some seconds; a pause is no difference."""
    clock, registry = VirtualClock(), CollectorRegistry()
    watch = TickWatch(clock, ControllerMetrics(registry))
    observations = Observations()
    gauge: list[float] = []
    with capture_logs() as logs:
        for second in range(12):
            ahead_ms = 30_000 if 3 <= second < 6 else 400
            places = [(0, 0), (1, ahead_ms)] if second < 9 else [(0, 0)]
            records = [
                InputRecord(Coordinates(HEARTBEATS, partition, second, second * 1_000 + ms), Tick("c1", 0), b"")
                for partition, ms in places
            ]
            observations = observe(observations, records)
            watch.look(observations)
            clock.advance(1_000)
            gauge.append(registry.get_sample_value("controlplane_broker_clock_spread_ms") or 0)
    assert gauge == [400] * 3 + [30_000] * 3 + [400] * 3 + [0] * 3
    assert [(each["log_level"], each["spread_ms"]) for each in logs] == [("warning", 30_000), ("info", 400)]
