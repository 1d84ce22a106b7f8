"""Every input topic is read, and each of its records is either observed or taken up by a decision."""

import pytest

from controlplane.config import CANDIDATES, HEARTBEATS
from controlplane.core.deciding.decide import decide
from controlplane.core.deciding.observations import observe
from controlplane.core.log.inputs import DECIDED_TOPICS, INPUT_TOPICS
from controlplane.core.membership.inputs import NodeLeft
from controlplane.core.values.identifiers import Coordinates
from controlplane.core.values.inputs import InputRecord
from controlplane.errors import InvariantViolationError
from tests.helpers.world import World


def _pending(world: World, topic: str) -> None:
    payload = NodeLeft("unknown", 1, "stopped")
    record = InputRecord(Coordinates(topic, 0, 0, world.now_ms), payload, b"")
    world.observations = observe(world.observations, [record])


@pytest.mark.parametrize("topic", DECIDED_TOPICS)
def test_a_record_of_each_decided_topic_is_answered(topic: str) -> None:
    """A leave of an unknown node has no effect, and its sender has to learn of that."""
    world = World()
    _pending(world, topic)
    world.tick(200)
    world.observe()
    result = decide(world.state, world.observations)
    assert result.observations.pending == ()
    assert [refusal.coordinates.topic for refusal in result.refusals] == [topic]


def test_an_input_that_no_rule_takes_up_is_an_error() -> None:
    """Positions would pass it without an effect, and no audit would notice."""
    world = World()
    _pending(world, CANDIDATES)
    world.tick(200)
    world.observe()
    with pytest.raises(InvariantViolationError, match="no rule of decide takes up an input of topic candidates"):
        decide(world.state, world.observations)


def test_only_heartbeats_wait_for_no_decision() -> None:
    """They are observed as they come, and most of them say nothing new."""
    assert set(INPUT_TOPICS) - set(DECIDED_TOPICS) == {HEARTBEATS}
