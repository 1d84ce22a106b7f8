"""A node that nobody admits must not wait in silence."""

from collections.abc import MutableMapping, Sequence

from structlog.testing import capture_logs

from controlplane.adapters.system_threads import SystemThreads
from controlplane.core.session.node_session import SessionSettings
from controlplane.node import NodeAgent
from controlplane.node.description import NodeDescription
from tests.helpers.memory_cluster import ObservedCluster


def test_a_node_that_is_not_admitted_says_so_again_and_again() -> None:
    """Without a leader, or refused as an older incarnation, it repeats its join; the operator has to see that."""
    with ObservedCluster() as world, capture_logs() as lines:
        agent = NodeAgent(
            writer=world.event_writer(),
            reader=world.reader(),
            clock=world.clock,
            threads=SystemThreads(),
            node=NodeDescription("n1"),
            cluster="test",
            settings=SessionSettings(join_retry_ms=20),
        )
        agent.start()
        world.wait_until(lambda: len(warnings(lines)) >= 2)
        agent.stop(drain=False)
    assert [line["joins"] for line in warnings(lines)[:2]] == [10, 20]


def warnings(lines: Sequence[MutableMapping[str, object]]) -> list[MutableMapping[str, object]]:
    """The lines that tell of waiting."""
    return [line for line in lines if "not admitted yet" in str(line["event"])]
