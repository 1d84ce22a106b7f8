"""Commands that operate nodes, the table and the policy, against a leader on an in-memory cluster."""

import getpass
import json

import pytest

from controlplane.cli.common.failures import ExitStatus
from controlplane.cli.table.suppositions import parse_supposition
from controlplane.config import INTENTS
from controlplane.core.deciding.what_if import NodeDies
from controlplane.core.intents.intent import Intent
from controlplane.core.log.state import State
from controlplane.core.membership.inputs import NodeJoined, NodeLeaving
from controlplane.core.membership.standing_orders import StandingOrder
from controlplane.core.slots.pins import Exclusion, Pin
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


def test_every_operation_reaches_the_leader(cluster_command: RunCommand, played: PublishedWorld) -> None:
    """Each command says what its intent means, and the views show it."""
    with answering_leader(played):
        for words in (
            ("nodes", "drain", "n1", "--no-wait"),
            ("nodes", "undrain", "n1"),
            ("nodes", "exclude", "n9", "--even-unknown"),
            ("nodes", "exclude", "n8", "--even-unknown"),
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
    assert dict(state.membership.orders) == {
        "n2": StandingOrder(weight=3, zone="b"),
        "n9": StandingOrder(excluded=True),
    }
    assert state.slots.pins == (
        Pin(3, "n1", leads=True),
        Pin(4, "n1"),
        Pin(7, "n1", leads=True),
        Pin(9, "n1", leads=True),
    )
    assert state.slots.exclusions == (Exclusion(5, "n1"),)
    assert (state.cluster.policy.tolerance_percent, state.slots.paused) == (50, True)
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
    assert not played.state.slots.paused


def test_orders_for_names_that_are_no_members_are_listed(cluster_command: RunCommand, played: PublishedWorld) -> None:
    """An order for a name with a typing error is seen, and so is one for a node that has left."""
    played.ask("set_node", node="n7", weight="2", zone="b")
    played.ask("exclude_node", node="n8")
    played.ask("set_node", node="n3", weight="4")
    played.left("n3")
    played.run(100)
    rows = {row["node"]: row for row in json.loads(cluster_command("nodes", "list", "--format", "json").out)}
    assert list(rows) == ["n1", "n2", "n3", "n7", "n8"]
    shown = {name: [rows[name][field] for field in ("status", "orders", "weight", "zone")] for name in rows}
    assert shown["n7"] == ["not joined", "weight 2, zone b", 2, "b"]
    assert shown["n8"] == ["not joined", "excluded", None, None]
    assert shown["n3"] == ["left", "weight 4", 4, None]
    assert all(row.keys() == rows["n1"].keys() for row in rows.values())
    text = cluster_command("nodes", "list").out
    assert "2 of 2 nodes live" in text
    assert "not joined" in text


def test_dry_run_touches_nothing(cluster_command: RunCommand, played: PublishedWorld) -> None:
    """It shows what would happen, and no intent is sent."""
    before = played.state
    ran = cluster_command("nodes", "drain", "n1", "--dry-run", "--format", "json")
    shown = json.loads(ran.out)
    assert (ran.status, shown["moved"], shown["least_moved"]) == (ExitStatus.DONE, 11, 11)
    assert shown["answers"][0]["outcome"] == "done"
    assert played.state == before
    assert cluster_command("policy", "set", "slot_count=8", "--dry-run").status == ExitStatus.FAILED


def test_refused_dry_run_prints_the_refusal_only(cluster_command: RunCommand, played: PublishedWorld) -> None:
    """A table of nodes to which nothing happens would say nothing."""
    assert played.state.slots.table
    ran = cluster_command("policy", "set", "slot_count=8", "--dry-run")
    first, last = ran.out.splitlines()
    assert (ran.status, last) == (ExitStatus.FAILED, "nothing was planned")
    assert first.startswith("change_policy: refused: slot_count 8 is less than 16")
    shown = json.loads(cluster_command("policy", "set", "slot_count=8", "--dry-run", "--format", "json").out)
    assert shown.keys() == {"refusals", "answers"}


@pytest.mark.parametrize(
    ("suppositions", "said"),
    [
        (("node n1 drains", "node n1 undrains"), "drain_node: superseded: the later intent 'undrain_node node=n1'"),
        (("pin 3 n1", "exclude 3 n1"), "'exclude_slots slots=3 node=n1'"),
        (("node n2 weight=2", "node n2 weight=3"), "'set_node node=n2 weight=3' asks for something else"),
        (("node n1 dies", "node n9 dies"), "refused: node 'n9' is unknown"),
    ],
)
def test_suppositions_that_cannot_be_together_are_refused_together(
    cluster_command: RunCommand, played: PublishedWorld, suppositions: tuple[str, str], said: str
) -> None:
    """Half of what was supposed is not what was asked."""
    assert played.state.slots.table
    ran = cluster_command("table", "plan", *(word for text in suppositions for word in ("--with", text)))
    assert ran.status == ExitStatus.FAILED
    assert said in ran.out
    assert "nothing was planned" in ran.out
    assert "would move" not in ran.out


def test_plan_shows_what_would_happen(cluster_command: RunCommand, played: PublishedWorld) -> None:
    """Several suppositions together, the counts of each node, the first rows."""
    ran = cluster_command("table", "plan", "--with", "node n1 dies", "--with", "node n7 joins weight=2", "--rows", "2")
    assert ran.status == ExitStatus.DONE
    assert "nothing was touched" in ran.out
    assert "(--rows shows more, --format json all)" in ran.out
    assert any(line.split()[:3] == ["n1", "11", "0"] for line in ran.out.splitlines())
    assert cluster_command("table", "plan", "--with", "node n9 dies").status == ExitStatus.FAILED
    assert "replicas that would move: 0 (least possible: 0);" in cluster_command("table", "plan").out


def test_plan_says_what_would_wait(cluster_command: RunCommand, played: PublishedWorld) -> None:
    """A plan that is not carried out at once is no small plan."""
    played.ask("change_policy", cool_down_ms="60000")
    ran = cluster_command("table", "plan", "--with", "node n4 joins")
    assert "replicas that would move: 8 (least possible: 8)" in ran.out
    assert "of these replicas 0 would move at once and 8 later" in ran.out
    ran = cluster_command("table", "plan", "--with", "node n2 joins")
    assert (ran.status, "refused: node 'n2' lives already" in ran.out) == (ExitStatus.FAILED, True)


def test_policy_is_shown(cluster_command: RunCommand, played: PublishedWorld) -> None:
    """Every field by name, and which silence limit still fences."""
    shown = json.loads(cluster_command("policy", "show", "--format", "json").out)
    assert (shown["slot_count"], shown["zone_rule"]) == (16, "soft")
    assert "slot_policy_options" in cluster_command("policy", "show").out
    played.ask("change_policy", silence_limit_ms="1000")
    assert "nodes are fenced after 2500 ms of silence until" in cluster_command("policy", "show").out


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
        ("table", "plan", "--with", "pin abc n1"),
        ("policy", "set", "slot_count=24", "--dry-run"),
    ],
)
def test_wrong_call_has_status_two(cluster_command: RunCommand, played: PublishedWorld, words: tuple[str, ...]) -> None:
    """With what would have been right."""
    assert cluster_command(*words).status == ExitStatus.CALLED_WRONGLY


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("nodes", "set", "n1", "--weight", "9" * 20), "expected a whole number, 1 to 1,000,000"),
        (("nodes", "set", "n1", "--weight", "abc"), "weight is 'abc', expected a whole number, 1 to 1,000,000"),
        (("nodes", "drain", ""), "the node must not be empty"),
        (("namespaces", "create", "A B"), "take namespace or tenant/namespace or tenant/cluster/namespace"),
        (("policy", "set", "replica_count=x"), "replica_count is 'x', expected a whole number"),
        (("policy", "set", "replica_count=9"), "replica_count is 9, expected 1 to 5"),
        (("policy", "set", "zone_rule=hardd"), "zone_rule is 'hardd', expected one of ignored, soft, hard"),
        (("controller", "run", "--policy", "zone_rule=hardd"), ": zone_rule is 'hardd', expected one of ignored, soft"),
        (("controller", "run", "--policy", "replica_count=x"), "replica_count is 'x', expected a whole number"),
        (("controller", "run", "--policy", "slot=x"), "slot_policy_options.NAME"),
        (("log", "show", "--last", "abc"), "'abc' is not a whole number"),
        (("nodes", "drain", "n1", "--wait", "soon"), "'soon' is not a number"),
        (("policy", "set", "replicas=3"), "the policy has no field 'replicas'"),
        (("table", "pin", "abc", "n1"), "slots 'abc': write numbers and ranges"),
        (("table", "pin", "9-3", "n1"), "runs backwards"),
        (("table", "pin", "", "n1"), "the slots must not be empty"),
        (("table", "pin", "3", ""), "the node must not be empty"),
        (("table", "exclude", "-1", "n1"), "slots '-1': slots are numbers from 0"),
    ],
)
def test_what_no_cluster_could_carry_out_is_not_sent(
    cluster_command: RunCommand, played: PublishedWorld, words: tuple[str, ...], told: str
) -> None:
    """It would stand in the log for ever; one sentence says what would have been right."""
    before = played.reader().end_offsets(INTENTS)
    ran = cluster_command(*words)
    assert (ran.status, told in ran.err, ran.out) == (ExitStatus.CALLED_WRONGLY, True, ""), ran
    assert played.reader().end_offsets(INTENTS) == before


def test_what_depends_on_the_state_is_the_leaders(cluster_command: RunCommand, played: PublishedWorld) -> None:
    """Only the leader knows how many slots there are, and who."""
    with answering_leader(played):
        for words in (
            ("table", "pin", "16", "n1", "--even-unknown"),
            ("table", "pin", "3", "n9", "--even-unknown"),
            ("policy", "set", "slot_count=8"),
        ):
            ran = cluster_command(*words)
            assert (ran.status, "refused" in ran.out) == (ExitStatus.FAILED, True), ran


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("nodes", "drain", "n11"), "knows no node 'n11': did you mean 'n1'? Nothing was sent"),
        (("nodes", "drain", "n11", "--dry-run"), "did you mean 'n1'?"),
        (("nodes", "drain", "n11", "--wait", "0"), "did you mean 'n1'?"),
        (("nodes", "set", "mode", "--weight", "2"), "knows no node 'mode': it knows n1, n2, n3, n7. Nothing was sent"),
        (("table", "pin", "3", "n11"), "did you mean 'n1'?"),
        (("table", "exclude", "16", "n1"), "slot 16 is unknown; known are 0 to 15. Nothing was sent"),
    ],
)
def test_a_mistyped_name_does_not_become_a_decision(
    cluster_command: RunCommand, played: PublishedWorld, words: tuple[str, ...], sentence: str
) -> None:
    """A script is told by the status, and nobody is asked anything; names of orders are known as well."""
    played.ask("exclude_node", node="n7")
    seq, intents = played.state.seq, played.reader().end_offsets(INTENTS)
    ran = cluster_command(*words)
    assert (ran.status, sentence in ran.err, ran.out) == (ExitStatus.CALLED_WRONGLY, True, ""), ran
    assert (played.state.seq, played.reader().end_offsets(INTENTS)) == (seq, intents)


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
    supposed = parse_supposition(text, State(), "ada")
    assert isinstance(supposed, Intent)
    assert (supposed.kind, supposed.arguments) == SUPPOSITIONS[text]


def test_suppositions_of_nodes(played: PublishedWorld) -> None:
    """What nodes do by themselves is supposed as the record that they would send."""
    assert parse_supposition("node n1 dies", played.state, "ada") == NodeDies("n1")
    assert parse_supposition("node n1 leaves", played.state, "ada") == NodeLeaving("n1", 1, "supposed")
    joined = parse_supposition("node n1 joins weight=2 zone='a b'", played.state, "ada")
    assert isinstance(joined, NodeJoined)
    assert (joined.incarnation, joined.weight, joined.zone) == (2, 2, "a b")
    with pytest.raises(ConfigurationError, match="write one of"):
        parse_supposition("node n1 dances", played.state, "ada")


def test_plan_with_a_slot_policy_of_ones_own(cluster_command: RunCommand, played: PublishedWorld) -> None:
    """What another policy would do is seen before anybody chooses it; a file is needed to know it."""
    words = ("table", "plan", "--with", "policy slot_policy=zoned-rendezvous", "--format", "json")
    unknown = json.loads(cluster_command(*words).out)
    assert "is not known here" in unknown["answers"][0]["detail"]
    ran = cluster_command(
        *words, "--slot-policy-file", str(ROOT / "examples" / "slot_policies" / "zoned_rendezvous.py")
    )
    shown = json.loads(ran.out)
    assert (ran.status, shown["least_moved"]) == (ExitStatus.DONE, None)
    assert shown["moved"] > 0


def test_intents_bear_the_name_of_who_asks(cluster_command: RunCommand, played: PublishedWorld) -> None:
    """The given name, else that of the login to Kafka, else that of the system's user: the log shows it."""
    login = ("--security", "sasl.username=svc-ops")
    with answering_leader(played):
        assert cluster_command("--as", "ada", "table", "pause").status == ExitStatus.DONE
        assert cluster_command(*login, "table", "resume").status == ExitStatus.DONE
        assert cluster_command(*login, "table", "pause", "--as", "ada").status == ExitStatus.DONE
        assert cluster_command("table", "resume").status == ExitStatus.DONE
    told = [answer["principal"] for answer in _answers(cluster_command)]
    assert told == ["ada", "svc-ops", "ada", getpass.getuser()]
    assert "resume_reconciliation by svc-ops: done" in cluster_command("log", "show").out


def test_who_may_not_ask_is_told_so(cluster_command: RunCommand, played: PublishedWorld) -> None:
    """Rights are set like every other field of the policy; a refusal fails the command, a dry run says it before."""
    with answering_leader(played):
        rights = ("intent_rights.ada=*", "intent_rights.ops-*=drain_node undrain_node")
        assert cluster_command("--as", "ada", "policy", "set", *rights).status == ExitStatus.DONE
        refused = cluster_command("--as", "bob", "table", "refresh")
        tried = cluster_command("--as", "bob", "table", "refresh", "--dry-run")
        supposed = cluster_command("--as", "bob", "table", "plan", "--with", "pause")
        rightful = cluster_command("--as", "ops-1", "nodes", "drain", "n1", "--no-wait")
    sentence = "principal 'bob' may not ask for"
    assert [ran.status for ran in (refused, tried, supposed)] == [ExitStatus.FAILED] * 3
    assert all(sentence in ran.out + ran.err for ran in (refused, tried, supposed))
    assert rightful.status == ExitStatus.DONE
    assert json.loads(cluster_command("policy", "show", "--format", "json").out)["intent_rights"] == {
        "ada": "*",
        "ops-*": "drain_node undrain_node",
    }


def _answers(cluster_command: RunCommand) -> list[dict[str, str]]:
    decisions = json.loads(cluster_command("log", "show", "--format", "json", "--last", "100").out)
    events = [event for decision in decisions for event in decision["events"]]
    return [event for event in events if event["type"] == "IntentAnswered"]
