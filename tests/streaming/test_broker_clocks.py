"""Records that are dated ahead of the driver's clock are told of when that begins, and when it ends."""

from prometheus_client import CollectorRegistry, Gauge
from structlog.testing import capture_logs

from streaming.broker_clocks import CLOCK_ALLOWANCE_MS, BrokerClocks

NOW_MS = 1_000_000
AHEAD_MS = NOW_MS + CLOCK_ALLOWANCE_MS + 1


def test_it_is_told_once_when_it_begins_and_once_when_it_ends() -> None:
    """A batch without records of the partition ends nothing; the gauge has the greatest difference all the time."""
    gauge = Gauge("ahead_ms", "how far", registry=CollectorRegistry())
    clocks = BrokerClocks("load-reports", gauge)
    seen = []
    for newest_ms in (
        {0: NOW_MS - 5, 1: NOW_MS + 7},
        {1: AHEAD_MS},
        {0: NOW_MS + CLOCK_ALLOWANCE_MS},
        {},
        {0: AHEAD_MS + 9},
        {1: NOW_MS},
        {0: NOW_MS + 3},
    ):
        with capture_logs() as lines:
            clocks.see(newest_ms, NOW_MS)
        (ahead_ms,) = (sample.value for metric in gauge.collect() for sample in metric.samples)
        seen.append((ahead_ms, [(line["event"].split()[-1], line.get("partitions")) for line in lines]))
    begins, ends, beyond = ("for", [1]), ("more", None), CLOCK_ALLOWANCE_MS + 1
    assert [ahead_ms for ahead_ms, _ in seen] == [7, beyond, beyond, beyond, beyond + 9, beyond + 9, 3]
    assert [told for _, told in seen] == [[], [begins], [], [], [], [], [ends]]
