"""Scripts for situations that only a Kafka of several brokers gets into."""

from controlplane.config import ROUTING_TABLE
from tests.simulation.script import Script, agents_of_before, begun


def let_marker_of_table_be_late(script: Script, milliseconds: int) -> None:
    """Let a decision that takes a living node's slots away be committed, and the table's marker be written later."""
    topic = script.world.cluster.topic(ROUTING_TABLE)
    script.world.broker.hold_markers_back(topic, 0)
    script.ask("unmarked", "exclude_node", node="n4")
    script.go_on(milliseconds)
    script.world.broker.write_markers(topic, 0)


@agents_of_before()
def the_tables_marker_is_late() -> None:
    """Nodes read the table to an end behind which their slots are given away."""
    script = begun()
    let_marker_of_table_be_late(script, 5_000)
    script.go_on(3_000)
    script.judge_end()
