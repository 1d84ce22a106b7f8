"""``controlplane nodes drain``: how it waits, what it tells meanwhile, and how it ends."""

import json

import pytest

from controlplane.cli.common.failures import ExitStatus
from controlplane.config import MEMBERSHIP
from controlplane.core.deciding.observations import Observations
from controlplane.core.membership.events import NodeUndrained
from controlplane.core.membership.inputs import NodeJoined
from controlplane.core.membership.node import NodeRole, NodeStatus
from controlplane.errors import LogUnavailableError
from controlplane.inspection import states
from controlplane.inspection.readers import DecisionFollower, LoggedDecision
from tests.helpers.answering import answering_leader
from tests.helpers.commands import RunCommand
from tests.helpers.published_world import PublishedWorld


@pytest.fixture
def played(world: PublishedWorld) -> PublishedWorld:
    """Three nodes."""
    world.admit("n1", "n2", "n3")
    return world


def test_drain_waits_until_the_node_holds_nothing(cluster_command: RunCommand, played: PublishedWorld) -> None:
    """The answer stands on standard output, how far it is on standard error."""
    with answering_leader(played):
        ran = cluster_command("nodes", "drain", "n1", "--reason", "disk", "--format", "json")
    assert (ran.status, json.loads(ran.out)["outcome"]) == (ExitStatus.DONE, "done")
    assert "n1 holds nothing any more" in ran.err
    assert played.state.membership.nodes["n1"].status is NodeStatus.DRAINING
    shown = cluster_command("log", "show", "--last", "1").out
    assert "drain_node by" in shown
    assert "(reason given: disk)" in shown


def test_drain_that_cannot_end_is_told_at_once(cluster_command: RunCommand, world: PublishedWorld) -> None:
    """Waiting for what never happens would look like a slow drain."""
    world.admit("n1")
    with answering_leader(world):
        ran = cluster_command("nodes", "drain", "n1")
    assert (ran.status, "no other node" in ran.err) == (ExitStatus.FAILED, True)
    assert cluster_command("nodes", "drain", "n1", "--wait", "0").status == ExitStatus.DONE


def test_drain_during_a_pause_is_told_at_once(cluster_command: RunCommand, played: PublishedWorld) -> None:
    """Its slots stay until somebody lets them go."""
    played.ask("pause_reconciliation")
    with answering_leader(played):
        ran = cluster_command("nodes", "drain", "n1")
    assert (ran.status, "reconciliation is paused" in ran.err) == (ExitStatus.FAILED, True)


def test_drain_of_a_last_copy_says_what_the_node_keeps(cluster_command: RunCommand, played: PublishedWorld) -> None:
    """It gives the rest away, and is no success: whoever stops the node now loses a slot's data."""
    played.ask("exclude_slots", slots="6", node="n1")
    played.ask("drain_node", node="n2")
    with answering_leader(played):
        ran = cluster_command("nodes", "drain", "n3")
    assert (ran.status, played.held("n3")) == (ExitStatus.FAILED, {6})
    assert "it keeps slot 6: no other node may hold it" in ran.out
    assert "n3 keeps slot 6: no other node may hold it; it holds nothing else any more" in ran.err
    shown = cluster_command("table", "status").out
    assert "slot 6 stays on 'n3', which is to be relieved of it: no other node may hold it" in shown


def test_drain_that_takes_too_long_says_what_is_left(
    cluster_command: RunCommand, played: PublishedWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command ends; the drain does not. What the rows wait for is said, and where to look."""
    played.ask("change_policy", moves_in_flight="1")
    played.ask("drain_node", node="n1")
    held = len(played.held("n1"))
    assert held
    monkeypatch.setattr("controlplane.cli.nodes.commands.operate", lambda *_: ExitStatus.DONE)
    ran = cluster_command("nodes", "drain", "n1", "--drain-timeout", "0.1")
    assert ran.status == ExitStatus.UNREACHABLE
    first, last = ran.err.splitlines()
    assert first.startswith(f"n1 still holds {held} slots and 0 bundles; slot")
    assert "moves_in_flight is 1" in first
    assert f"still holds {held} slots and 0 bundles after 0.1 s" in last
    assert "controlplane log show --node n1" in last


def test_drain_that_somebody_takes_back_ends_at_once(
    cluster_command: RunCommand, played: PublishedWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The line names who did it and in which decision; nobody waits for ten minutes."""
    played.ask("change_policy", moves_in_flight="1")
    played.ask("drain_node", node="n1")
    monkeypatch.setattr("controlplane.cli.nodes.commands.operate", lambda *_: ExitStatus.DONE)
    polls = []

    def undrain_after_a_while(follower: DecisionFollower, timeout_ms: int) -> list[LoggedDecision]:
        polls.append(timeout_ms)
        if len(polls) == 5:
            played.ask("undrain_node", node="n1")
        return poll(follower, 1)

    poll = DecisionFollower.poll
    monkeypatch.setattr(DecisionFollower, "poll", undrain_after_a_while)
    ran = cluster_command("nodes", "drain", "n1")
    lines = ran.err.splitlines()
    seq = next(each.seq for each in played.decisions if any(isinstance(event, NodeUndrained) for event in each.events))
    assert (ran.status, lines[-1]) == (
        ExitStatus.FAILED,
        f"n1 no longer drains: undrained by tester in decision {seq}",
    )
    assert len(lines) == 2, "a line for each change, not for each look"


def test_drain_of_a_node_that_dies_is_no_success(
    cluster_command: RunCommand, played: PublishedWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It holds nothing any more because it is gone, and what only it had is lost."""
    played.ask("exclude_slots", slots="6", node="n1")
    played.ask("drain_node", node="n2")
    played.ask("change_policy", moves_in_flight="1")
    played.ask("drain_node", node="n3")
    monkeypatch.setattr("controlplane.cli.nodes.commands.operate", lambda *_: ExitStatus.DONE)
    played.run(31_000, ("n1", "n2"))
    ran = cluster_command("nodes", "drain", "n3")
    assert ran.status == ExitStatus.FAILED
    assert "n3 no longer drains: it was fenced in decision" in ran.err
    assert "the last copy of slot 6 with it" in ran.err


def test_drain_that_leaves_slots_to_nobody_is_no_success(
    cluster_command: RunCommand, world: PublishedWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The node has given all away, and not everything has found room."""
    for name in ("n1", "n2"):
        world.append(MEMBERSHIP, 0, NodeJoined(name, 1, NodeRole.DATA, (), "", 1, 8, "1", world.now_ms))
        world.heartbeat(name)
    world.run(world.state.cluster.policy.join_linger_ms + 100)
    own = sorted(world.held("n2"))
    assert len(own) == 8
    world.ask("drain_node", node="n2")
    monkeypatch.setattr("controlplane.cli.nodes.commands.operate", lambda *_: ExitStatus.DONE)
    ran = cluster_command("nodes", "drain", "n2")
    assert ran.status == ExitStatus.FAILED
    assert "n2 holds nothing any more, but no node took slots" in ran.err


def test_drain_during_which_kafka_goes_says_that_it_goes_on(
    cluster_command: RunCommand, played: PublishedWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The order is in the log: nobody has to give it again."""
    played.ask("change_policy", moves_in_flight="1")
    played.ask("drain_node", node="n1")
    seq = played.state.seq
    monkeypatch.setattr("controlplane.cli.nodes.commands.operate", lambda *_: ExitStatus.DONE)

    def gone(*_: object, **__: object) -> Observations:
        raise LogUnavailableError("the end of heartbeats[0] was not reached")

    monkeypatch.setattr(states, "read_observations", gone)
    ran = cluster_command("nodes", "drain", "n1")
    assert ran.status == ExitStatus.UNREACHABLE
    assert f"The order to drain n1 was accepted (decision {seq})" in ran.err
    assert "controlplane table status" in ran.err
