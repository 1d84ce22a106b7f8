"""Commands that operate nodes, the table and the policy, against a leader on an in-memory cluster."""

import json

import pytest

from controlplane.cli.failures import ExitStatus
from controlplane.cli.suppositions import parse_supposition
from controlplane.core.membership import NodeStatus
from controlplane.core.orders import Exclusion, Pin, StandingOrder
from controlplane.core.records import Intent, NodeJoined, NodeLeaving
from controlplane.core.state import State
from controlplane.core.what_if import NodeDies
from controlplane.errors import ConfigurationError
from tests.helpers.answering import answering_leader
from tests.helpers.commands import RunCommand
from tests.helpers.published_world import PublishedWorld
from tests.helpers.readme import ROOT


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
    assert played.state.nodes["n1"].status is NodeStatus.DRAINING
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


def test_drain_that_takes_too_long_says_what_is_left(
    cluster_command: RunCommand, played: PublishedWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command ends; the drain does not."""
    monkeypatch.setattr("controlplane.cli.nodes.operate", lambda *_: ExitStatus.DONE)
    ran = cluster_command("nodes", "drain", "n1", "--drain-timeout", "0.1")
    assert (ran.status, "still holds 11 slots and 0 bundles after 0.1 s" in ran.err) == (ExitStatus.UNREACHABLE, True)


def test_every_operation_reaches_the_leader(cluster_command: RunCommand, played: PublishedWorld) -> None:
    """Each command says what its intent means, and the views show it."""
    with answering_leader(played):
        for words in (
            ("nodes", "drain", "n1", "--no-wait"),
            ("nodes", "undrain", "n1"),
            ("nodes", "exclude", "n9"),
            ("nodes", "exclude", "n8"),
            ("nodes", "include", "n8"),
            ("nodes", "set", "n2", "--weight", "3", "--zone", "b"),
            ("nodes", "set", "n3", "--weight", "2"),
            ("nodes", "set", "n3", "--reset"),
            ("table", "pin", "3,7-9", "n1", "--leads"),
            ("table", "pin", "4", "n1"),
            ("table", "unpin", "8", "n1"),
            ("table", "exclude", "5-6", "n1"),
            ("table", "include", "6", "n1"),
            ("policy", "set", "tolerance_percent=50"),
            ("table", "refresh"),
            ("table", "pause", "--reason", "night"),
        ):
            ran = cluster_command(*words)
            assert ran.status == ExitStatus.DONE, (words, ran)
    state = played.state
    assert dict(state.orders) == {"n2": StandingOrder(weight=3, zone="b"), "n9": StandingOrder(excluded=True)}
    assert state.pins == (Pin(3, "n1", leads=True), Pin(4, "n1"), Pin(7, "n1", leads=True), Pin(9, "n1", leads=True))
    assert state.exclusions == (Exclusion(5, "n1"),)
    assert (state.policy.tolerance_percent, state.paused) == (50, True)
    table = json.loads(cluster_command("table", "show", "--format", "json").out)
    assert table["paused"]
    assert table["slots"][3]["orders"] == ["n1 leads"]
    assert table["slots"][5]["orders"] == ["not n1"]
    assert table["orders"][0] == {"order": "pinned as leader", "node": "n1", "slots": "3 7 9"}
    assert "reconciliation is paused" in cluster_command("table", "show").out.splitlines()[0]
    nodes = {row["node"]: row for row in json.loads(cluster_command("nodes", "list", "--format", "json").out)}
    assert (nodes["n2"]["weight"], nodes["n2"]["zone"], nodes["n2"]["orders"]) == (3, "b", "weight 3, zone b")
    assert cluster_command("log", "verify").status == ExitStatus.DONE
    with answering_leader(played):
        assert cluster_command("table", "resume").status == ExitStatus.DONE
    assert not played.state.paused


def test_dry_run_touches_nothing(cluster_command: RunCommand, played: PublishedWorld) -> None:
    """It shows what would happen, and no intent is sent."""
    before = played.state
    ran = cluster_command("nodes", "drain", "n1", "--dry-run", "--format", "json")
    shown = json.loads(ran.out)
    assert (ran.status, shown["moved"], shown["least_moved"]) == (ExitStatus.DONE, 11, 11)
    assert shown["answers"][0]["outcome"] == "done"
    assert played.state == before
    assert cluster_command("policy", "set", "slot_count=24", "--dry-run").status == ExitStatus.FAILED


def test_plan_shows_what_would_happen(cluster_command: RunCommand, played: PublishedWorld) -> None:
    """Several suppositions together, the counts of each node, the first rows."""
    ran = cluster_command("table", "plan", "--with", "node n1 dies", "--with", "node n7 joins weight=2", "--rows", "2")
    assert ran.status == ExitStatus.DONE
    assert "nothing was touched" in ran.out
    assert "(--rows shows more, --format json all)" in ran.out
    assert any(line.split()[:3] == ["n1", "11", "0"] for line in ran.out.splitlines())
    assert cluster_command("table", "plan", "--with", "node n9 dies").status == ExitStatus.FAILED
    assert "0 (least possible: 0) replicas" in cluster_command("table", "plan").out


def test_plan_before_a_leader_is_an_error(cluster_command: RunCommand, world: PublishedWorld) -> None:
    """There is nothing to plan."""
    world.broker.create_topic("local.decisions")
    ran = cluster_command("table", "plan")
    assert (ran.status, "no controller has led" in ran.err) == (ExitStatus.FAILED, True)
    ran = cluster_command("policy", "show")
    assert (ran.status, "no policy yet" in ran.err) == (ExitStatus.FAILED, True)


def test_policy_is_shown(cluster_command: RunCommand, played: PublishedWorld) -> None:
    """Every field by name, and which silence limit still fences."""
    shown = json.loads(cluster_command("policy", "show", "--format", "json").out)
    assert (shown["slot_count"], shown["zone_rule"]) == (16, "soft")
    assert "slot_policy_options" in cluster_command("policy", "show").out
    played.ask("change_policy", silence_limit_ms="1000")
    assert "2500 ms of silence go on to fence" in cluster_command("policy", "show").out


@pytest.mark.parametrize(
    "words",
    [
        ("nodes", "set", "n1"),
        ("nodes", "set", "n1", "--weight", "2", "--reset"),
        ("policy", "set", "replica_count"),
        ("policy", "set", "replica_count=1", "replica_count=2"),
        ("table", "plan", "--with", "node n1 flies"),
        ("table", "plan", "--with", "node n1 dies weight=3"),
        ("table", "plan", "--with", "node n1 joins weight=heavy"),
        ("table", "plan", "--with", "node n1 joins colour=red"),
        ("table", "plan", "--with", "'"),
    ],
)
def test_wrong_call_has_status_two(cluster_command: RunCommand, played: PublishedWorld, words: tuple[str, ...]) -> None:
    """Before anything is sent, with what would have been right."""
    assert cluster_command(*words).status == ExitStatus.CALLED_WRONGLY


SUPPOSITIONS = {
    "node n1 drains": ("drain_node", {"node": "n1"}),
    "node n1 undrains": ("undrain_node", {"node": "n1"}),
    "node n1 excluded": ("exclude_node", {"node": "n1"}),
    "node n1 included": ("include_node", {"node": "n1"}),
    "node n1 weight=3 zone=b": ("set_node", {"node": "n1", "weight": "3", "zone": "b"}),
    "pin 3,7-9 n1": ("pin_slots", {"slots": "3,7-9", "node": "n1"}),
    "pin 3 n1 leads": ("pin_slots", {"slots": "3", "node": "n1", "leads": "true"}),
    "unpin 3 n1": ("unpin_slots", {"slots": "3", "node": "n1"}),
    "exclude 3 n1": ("exclude_slots", {"slots": "3", "node": "n1"}),
    "include 3 n1": ("include_slots", {"slots": "3", "node": "n1"}),
    "policy replica_count=3 zone_rule=hard": ("change_policy", {"replica_count": "3", "zone_rule": "hard"}),
    "pause": ("pause_reconciliation", {}),
    "resume": ("resume_reconciliation", {}),
}


@pytest.mark.parametrize("text", SUPPOSITIONS)
def test_suppositions_of_operators(text: str) -> None:
    """What an operator could ask for is supposed as the intent that he would send."""
    supposed = parse_supposition(text, State())
    assert isinstance(supposed, Intent)
    assert (supposed.kind, supposed.arguments) == SUPPOSITIONS[text]


def test_suppositions_of_nodes(played: PublishedWorld) -> None:
    """What nodes do by themselves is supposed as the record that they would send."""
    assert parse_supposition("node n1 dies", played.state) == NodeDies("n1")
    assert parse_supposition("node n1 leaves", played.state) == NodeLeaving("n1", 1, "supposed")
    joined = parse_supposition("node n1 joins weight=2 zone='a b'", played.state)
    assert isinstance(joined, NodeJoined)
    assert (joined.incarnation, joined.weight, joined.zone) == (2, 2, "a b")
    with pytest.raises(ConfigurationError, match="write one of"):
        parse_supposition("node n1 dances", played.state)


def test_plan_with_a_slot_policy_of_ones_own(cluster_command: RunCommand, played: PublishedWorld) -> None:
    """What another policy would do is seen before anybody chooses it; a file is needed to know it."""
    words = ("table", "plan", "--with", "policy slot_policy=rendezvous", "--format", "json")
    unknown = json.loads(cluster_command(*words).out)
    assert "is not known here" in unknown["answers"][0]["detail"]
    ran = cluster_command(*words, "--slot-policy-file", str(ROOT / "examples" / "slot_policies" / "rendezvous.py"))
    shown = json.loads(ran.out)
    assert (ran.status, shown["least_moved"]) == (ExitStatus.DONE, None)
    assert shown["moved"] > 0
