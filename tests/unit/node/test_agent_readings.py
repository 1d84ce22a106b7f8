"""A node's readings of the table are confirmed in time, however busy the leader is."""

import time
from collections.abc import MutableMapping, Sequence
from itertools import count

import pytest
from structlog.testing import capture_logs

from controlplane.adapters.system_threads import SystemThreads
from controlplane.core.session.node_session import SessionSettings, SessionState
from controlplane.node import NodeAgent
from controlplane.node.description import NodeDescription
from tests.helpers.few_ends import FewEnds
from tests.helpers.memory_cluster import ObservedCluster

_UNPAUSED_S = 3.0
"""Longer than a reading is valid by itself, which is at least 1.5 s."""
_LEAST_EPOCHS = 20


@pytest.mark.alone
@pytest.mark.slow
def test_a_node_serves_on_while_the_leader_never_pauses() -> None:
    """Kafka reports no end of the table for seconds: each epoch confirms the table as well."""
    with ObservedCluster() as world, capture_logs() as lines:
        reader = FewEnds(world.reader())
        agent = NodeAgent(
            writer=world.event_writer(),
            reader=reader,  # type: ignore[arg-type]  # the rest is its reader's
            clock=world.clock,
            threads=SystemThreads(),
            node=NodeDescription("n1"),
            cluster="test",
            settings=SessionSettings(heartbeat_interval_ms=100),
        ).start()
        world.start("c1")
        world.wait_until(lambda: "requests for ready slots are served" in told(lines))
        reader.ends_left = 0
        began_epoch = agent.table.epoch if agent.table is not None else 0
        members, until_s = count(), time.monotonic() + _UNPAUSED_S
        while time.monotonic() < until_s:
            world.join(f"m{next(members)}")  # so that the leader has something to commit
            time.sleep(0.02)
        assert not [line for line in told(lines) if "requests are refused" in line]
        assert agent.state is SessionState.ACTIVE
        assert agent.table is not None
        assert agent.table.epoch > began_epoch + _LEAST_EPOCHS, "the leader has paused"
        agent.stop(drain=False)


def told(lines: Sequence[MutableMapping[str, object]]) -> list[str]:
    """The messages so far."""
    return [str(line["event"]) for line in lines]
