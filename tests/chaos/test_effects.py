"""What counts as a fault's effect: servers of this machine, and links by what they carried."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from controlplane.core.membership.inputs import Heartbeat
from controlplane.core.membership.node import NodeRole
from controlplane.core.values.identifiers import Epoch
from controlplane.embedded.valkey import EmbeddedValkey
from controlplane.inspection.readers import HeartbeatTail, LastHeartbeat
from tests.chaos.effects import dead, frozen, heard_in, silent
from tests.helpers.polling import poll_until


def test_a_server_is_dead_when_it_was_killed_and_frozen_while_it_is_paused(tmp_path: Path) -> None:
    """As a broker is that ended by itself, or that stands still."""
    with EmbeddedValkey(tmp_path) as server:
        assert (dead(server).had, frozen(server).had) == (False, False)
        server.pause()
        # A process stops when it takes the signal, not when that is sent.
        poll_until(lambda: frozen(server).had)
        assert not dead(server).had
        server.resume()
        server.kill()
        assert (dead(server).had, frozen(server).had) == (True, False)


@pytest.mark.parametrize(
    ("before", "after", "had"),
    [
        ({"c1": 7, "n1": 0}, {"c1": 7, "n1": 3}, True),
        ({"c1": 7, "n1": 2}, {"c1": 7, "n1": 3}, False),
        ({"c1": 0}, {"c1": 0}, False),
    ],
)
def test_links_are_silent_when_those_in_use_carry_nothing_more(
    before: dict[str, int], after: dict[str, int], *, had: bool
) -> None:
    """A link that carried nothing before cannot show that it was broken."""
    assert silent(before, after).had is had


def test_a_node_is_heard_while_its_heartbeats_arrive() -> None:
    """By the clock of its own partition, which another broker may keep."""
    beat = Heartbeat("n1", 1, 0, Epoch(0), NodeRole.DATA)
    tail = HeartbeatTail({0: 90_000, 1: 5_000}, {"n1": LastHeartbeat(beat, 1, 3_100)})
    assert heard_in(tail, "n1").had
    assert not heard_in(replace(tail, newest_ms={1: 5_100}), "n1").had
    assert not heard_in(tail, "n2").had


def test_a_fault_that_is_none_is_refused_with_all_names() -> None:
    """A wrong name would otherwise be a run without faults, in which every promise is kept."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.chaos", "--faults", "DISK_FUL"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "DISK_FULL" in done.stderr
