"""Scripts for controllers that start on machines with wrong clocks."""

from typing import Final

from controlplane.config import HEARTBEATS
from tests.simulation.script import Script, begun
from tests.simulation.setting import CONTROLLERS

LOOKS_BACK: Final = "a controller that starts reads back three silence limits by the brokers' time"
HOUR_MS: Final = 3_600_000
_TOLERANCE_MS: Final = 1_500
"""Time for the log and for the first ticks, and between two heartbeats."""


def start_again_with_clocks_off(wall_step_ms: int) -> Script:
    """Let a cluster be at work for a while, and start all its controllers again on machines whose clocks are off."""
    script = begun()
    script.go_on(12_000)
    world = script.world
    for name in CONTROLLERS:
        world.kill(name)
        world.machines[name].clock.wall_step_ms = wall_step_ms
        world.start_controller(name)
    began_ms = world.scheduler.now_ms
    script.go_on_until(script.is_well, 8_000)
    expected_ms = began_ms - 3 * script.state.cluster.silence_limit_ms
    for name in CONTROLLERS:
        reader = world.running[name].controller._components.input_reader  # noqa: SLF001 - where it began is told nobody
        for place, offset in reader.observed_from.items():
            if place.topic == HEARTBEATS:
                begins_ms = world.appended_ms[place.partition][offset]
                off_ms = abs(begins_ms - expected_ms)
                script.verdicts.judge(LOOKS_BACK, off_ms <= _TOLERANCE_MS, f"{name} begins {off_ms} ms off in {place}")
    return script


def controllers_start_with_clocks_behind() -> None:
    """An hour behind they would read everything."""
    script = start_again_with_clocks_off(-HOUR_MS)
    script.go_on(2_000)
    script.judge_end()
