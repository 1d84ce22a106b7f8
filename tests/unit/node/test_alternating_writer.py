"""A node's two writers: what each of them sends, and what is left if one is stuck."""

import pytest

from controlplane.config import HEARTBEATS, MEMBERSHIP, ClusterConfig
from controlplane.core.cluster.policy import ClusterPolicy
from controlplane.node.alternating_writer import AlternatingWriter
from controlplane.ports import Delivery, OutgoingRecord
from controlplane.testing import MemoryEventWriter
from tests.helpers.published_world import PublishedWorld

CLUSTER = ClusterConfig("test")
TIMEOUT_MS = 2_500


class Setting:
    """Two writers to one broker, and what was reported of the records that they sent."""

    def __init__(self) -> None:
        self.world = PublishedWorld(CLUSTER, ClusterPolicy(slot_count=8))
        self.parts = tuple(MemoryEventWriter(CLUSTER, self.world.broker, TIMEOUT_MS) for _ in range(2))
        self.writer = AlternatingWriter(*self.parts)
        self.reports: list[Delivery] = []

    def send(self, topic: str) -> None:
        """Send a record."""
        self.writer.send(OutgoingRecord(topic, b"n1", b"text"), self.reports.append)

    def go_on(self, passed_ms: int) -> list[tuple[str, bool]]:
        """Let time pass; return topic and success of what was reported meanwhile."""
        self.world.clock.advance(passed_ms)
        self.reports.clear()
        self.writer.poll(0)
        return sorted((report.topic, report.error is None) for report in self.reports)


@pytest.mark.parametrize("stuck", [0, 1])
def test_every_other_heartbeat_arrives_if_one_writer_is_stuck(stuck: int) -> None:
    """What the stuck one holds is reported as given up, and awaited until then."""
    setting = Setting()
    setting.parts[stuck].connected = False
    for _ in range(4):
        setting.send(HEARTBEATS)
    assert setting.go_on(10) == [(HEARTBEATS, True)] * 2
    awaited = [setting.writer.awaits_delivery]
    assert setting.go_on(TIMEOUT_MS) == [(HEARTBEATS, False)] * 2
    awaited.append(setting.writer.awaits_delivery)
    assert awaited == [True, False]
    assert setting.writer.flush(0) == 0


def test_other_records_stay_in_order() -> None:
    """A node that leaves right after a join that it repeated must not be admitted after it left."""
    setting = Setting()
    setting.parts[1].connected = False
    for _ in range(3):
        setting.send(HEARTBEATS)
        setting.send(MEMBERSHIP)
    assert setting.go_on(10) == [(HEARTBEATS, True)] * 2 + [(MEMBERSHIP, True)] * 3


def test_both_are_closed() -> None:
    """Neither keeps its connections."""
    setting = Setting()
    setting.writer.close()
    assert [part.connected for part in setting.parts] == [False, False]
