"""``controlplane audit``: what it prints, in both formats, of a whole log and of an altered one."""

import json

from controlplane.cli.common.failures import ExitStatus
from controlplane.core.log.decision import CauseKind
from controlplane.core.log.draft import Draft, SealedDecision
from tests.helpers.commands import RunCommand
from tests.helpers.published_world import PublishedWorld


def test_a_whole_log(cluster_command: RunCommand, world: PublishedWorld) -> None:
    """Every decision is taken again, over two terms."""
    world.admit("n1", "n2")
    world.take_over(500)
    world.admit("n3")
    ran = cluster_command("audit")
    assert ran.status == ExitStatus.DONE
    count = len(world.decisions)
    first = f"{count} of {count} decisions taken again from decision 1 on, up to epoch {world.state.epoch}"
    assert ran.out.splitlines() == [first, "no difference"]
    document = json.loads(cluster_command("audit", "--format", "json").out)
    assert (document["retaken"], document["differences"], document["followed"]) == (count, [], [])


def test_a_leader_that_decides_by_something_else(cluster_command: RunCommand, world: PublishedWorld) -> None:
    """The digests fit and the rules hold: only who decides again sees that nobody asked for this."""
    world.admit("n1", "n2")
    forged = _without_asking(world)
    world.commit(forged)
    assert cluster_command("log", "verify").status == ExitStatus.DONE
    ran = cluster_command("audit")
    assert ran.status == ExitStatus.FAILED
    header, row, *rest = ran.out.splitlines()
    assert header.split() == ["seq", "epoch", "field", "recorded", "retaken", "causes", "inputs"]
    assert row.split()[:3] == [str(forged.decision.seq), str(forged.decision.epoch), "decision"]
    assert rest[-1] == "1 difference"
    (difference,) = json.loads(cluster_command("audit", "--format", "json").out)["differences"]
    assert difference["causes"] == [f"positions {world.state.leader}: 1 ms since the last decision"]


def _without_asking(world: PublishedWorld) -> SealedDecision:
    """A decision with positions alone, long before it is due."""
    draft = Draft(world.state)
    draft.because(CauseKind.POSITIONS, world.state.leader, "1 ms since the last decision")
    return draft.seal(world.state.decided_at_ms, {})
