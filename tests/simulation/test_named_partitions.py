"""Partitions of the inputs that are away or new, while the others go on; every invariant is looked at."""

from collections.abc import Iterator

import pytest

from controlplane.adapters.memory_broker import partition_of
from controlplane.config import HEARTBEATS
from controlplane.core.events import NodeFenced
from tests.simulation.audit import what_the_audit_finds
from tests.simulation.many import prepare
from tests.simulation.memo import decoding_once
from tests.simulation.script import Script, begun
from tests.simulation.setting import NODES

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Processes that are hit by faults complain a lot."""
    prepare()
    with decoding_once():
        yield


def lose_leader(script: Script, partition: int) -> list[str]:
    """Nobody answers for a partition of heartbeats; the nodes whose heartbeats go elsewhere."""
    script.world.broker.lose_leader(script.world.cluster.topic(HEARTBEATS), partition)
    return [name for name in NODES if partition_of(name.encode(), 2) != partition]


def elect_leader(script: Script, partition: int) -> None:
    """The partition is back."""
    script.world.broker.elect_leader(script.world.cluster.topic(HEARTBEATS), partition)


def fenced(script: Script) -> list[str]:
    """Who was fenced, in order."""
    return [event.node_id for event in script.events(NodeFenced) if isinstance(event, NodeFenced)]


@pytest.mark.parametrize("partition", [0, 1])
def test_a_node_dies_while_another_partition_is_away(partition: int) -> None:
    """It is fenced as soon as ever, however long that has lasted; those that nobody can hear are left alone."""
    script = begun()
    victim = lose_leader(script, partition)[0]
    script.go_on(30_000)
    assert fenced(script) == []
    script.world.kill(victim)
    script.go_on_until(lambda: fenced(script) == [victim], script.state.silence_limit_ms + 500)
    elect_leader(script, partition)
    script.go_on(5_000)
    script.world.start_node(victim)
    script.go_on_until(script.is_well, 5_000)
    assert fenced(script) == [victim]
    assert what_the_audit_finds(script.world) == []
