"""The topic of dead letters is away, and inputs are refused. Every invariant is looked at."""

import pytest

from controlplane.config import DEAD_LETTERS, INTENTS, MEMBERSHIP
from controlplane.core.membership.node import NodeStatus
from tests.simulation.audit import what_the_audit_finds
from tests.simulation.mutants.log_scenes import let_letters_have_no_place
from tests.simulation.script import begun

pytestmark = pytest.mark.slow


def test_a_dead_node_is_fenced_although_no_dead_letter_can_be_written() -> None:
    """Decisions do not need the topic. What stands behind a refused intent or join waits, and nothing is lost."""
    script = begun()
    before = script.state.positions
    let_letters_have_no_place(script)
    script.world.kill("n4")
    script.ask("behind", "refresh_table")
    script.go_on_until(lambda: script.state.membership.nodes["n4"].status is NodeStatus.FENCED, 4_000)
    script.go_on(10_000)
    assert len(script.terms) == 1
    assert not script.answered("behind")
    waiting = [f"{topic}[0]" for topic in (INTENTS, MEMBERSHIP)]
    assert [script.state.positions[key] for key in waiting] == [before[key] for key in waiting]
    script.world.elect_leader(DEAD_LETTERS, 0)
    script.world.start_node("n4")
    script.go_on_until(lambda: script.answered("behind") and script.is_well(), 8_000)
    assert all(script.state.positions[key] > before[key] for key in waiting)
    assert what_the_audit_finds(script.world) == []
    script.judge_end()
