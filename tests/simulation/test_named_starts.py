"""Controllers start on machines with wrong clocks."""

import pytest

from tests.simulation.mutants.start_scenes import HOUR_MS, start_again_with_clocks_off

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("wall_step_ms", [-HOUR_MS, 0, HOUR_MS])
def test_controllers_read_back_by_the_brokers_time(wall_step_ms: int) -> None:
    """Ahead they would hear of no silence before their start; behind they would read hours of heartbeats."""
    script = start_again_with_clocks_off(wall_step_ms)
    script.world.kill("n4")
    script.go_on_until(lambda: not script.state.membership.nodes["n4"].lives, 4_000)
    script.go_on_until(script.is_well, 4_000)
    script.judge_end()
