"""``controlplane bundles`` and ``namespaces delete``: lists, orders, and waiting until orders have ended."""

import json

import pytest

from controlplane.cli.common.failures import ExitStatus
from controlplane.config import MEMBERSHIP
from controlplane.core.bundles.orders import BundleOrder, BundleOrderKind
from controlplane.core.intents.intent import Intent
from controlplane.core.membership.inputs import NodeJoined
from controlplane.core.membership.node import NodeRole
from controlplane.errors import LogUnavailableError
from controlplane.inspection.readers import DecisionFollower, LoggedDecision
from tests.helpers.answering import answering_leader
from tests.helpers.commands import RunCommand
from tests.helpers.published_world import PublishedWorld
from tests.unit.cli.test_asking import sent_intents

FIRST, SECOND = "kv/0x00000000_0x80000000", "kv/0x80000000_0xffffffff"


@pytest.fixture
def played(world: PublishedWorld) -> PublishedWorld:
    """Two nodes, which own a bundle of kv and one of acme/orders each. They take part in no handoffs."""
    world.admit("n1", "n2")
    for name in ("kv", "acme/orders"):
        world.ask("create_namespace", namespace=name, bundles="2")
    return world


@pytest.fixture
def handing_off(world: PublishedWorld) -> PublishedWorld:
    """Two nodes that take part in handoffs, and never say that they have released or divided anything."""
    for name in ("n1", "n2"):
        joined = NodeJoined(name, 1, NodeRole.DATA, (), "", 1, 0, "1", world.now_ms, hands_off=True)
        world.append(MEMBERSHIP, 0, joined)
        world.heartbeat(name)
    world.run(world.state.cluster.policy.join_linger_ms + 100)
    world.ask("create_namespace", namespace="kv", bundles="2")
    world.run(300, ("n1", "n2"))
    return world


def asked_for(played: PublishedWorld) -> list[Intent]:
    """The intents after those of the fixture :func:`played`."""
    return sent_intents(played)[2:]


def owner_of(world: PublishedWorld, bundle_id: str) -> str:
    """The node that owns a bundle."""
    owner = world.state.bundles.by_id[bundle_id].owner
    assert owner is not None
    return owner


def other_than(owner: str) -> str:
    """The other one of the two nodes."""
    return "n2" if owner == "n1" else "n1"


def test_list_shows_state_owner_and_epochs(cluster_command: RunCommand, played: PublishedWorld) -> None:
    """Of every bundle, by its id."""
    rows = json.loads(cluster_command("bundles", "list", "--format", "json").out)
    assert [row["bundle"] for row in rows] == sorted(played.state.bundles.by_id)
    bundle = played.state.bundles.by_id[FIRST]
    assert next(row for row in rows if row["bundle"] == FIRST) == {
        "bundle": FIRST,
        "state": "Owned",
        "owner": bundle.owner,
        "next_owner": None,
        "owner_epoch": bundle.owner_epoch,
        "state_epoch": bundle.state_epoch,
        "version": bundle.version,
        "order": None,
    }
    headings, *lines = cluster_command("bundles", "list", "--limit", "1").out.splitlines()
    assert headings.split()[:2] == ["bundle", "state"]
    assert lines[1] == "... and 3 more: --limit 0 prints all"


def test_list_can_be_narrowed_to_a_namespace_and_a_node(cluster_command: RunCommand, played: PublishedWorld) -> None:
    """Both together, too. A node is named by what it is to own next as well."""
    rows = json.loads(cluster_command("bundles", "list", "--namespace", "kv", "--format", "json").out)
    assert [row["bundle"] for row in rows] == [FIRST, SECOND]
    owner = owner_of(played, FIRST)
    rows = json.loads(cluster_command("bundles", "list", "--namespace", "kv", "--node", owner, "--format", "json").out)
    assert FIRST in [row["bundle"] for row in rows]
    assert {row["owner"] for row in rows} == {owner}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--namespace", "kw"), "there is no namespace 'kw' in cluster 'local': it knows acme/orders, kv."),
        (("--node", "n3"), "there is no node 'n3' in cluster 'local': it knows n1, n2."),
    ],
)
def test_list_of_what_there_is_not_fails(
    cluster_command: RunCommand, played: PublishedWorld, words: tuple[str, ...], said: str
) -> None:
    """An empty list would look like an answer."""
    del played
    ran = cluster_command("bundles", "list", *words, "--format", "json")
    assert (ran.status, ran.out, said in ran.err) == (ExitStatus.FAILED, "", True), ran


def test_orders_that_stand_are_listed(cluster_command: RunCommand, handing_off: PublishedWorld) -> None:
    """With how far the bundle is, also for the node that it goes to."""
    destination = other_than(owner_of(handing_off, FIRST))
    handing_off.ask("transfer_bundles", bundles=FIRST, node=destination)
    rows = json.loads(cluster_command("bundles", "list", "--node", destination, "--format", "json").out)
    (row,) = [each for each in rows if each["bundle"] == FIRST]
    assert (row["state"], row["next_owner"], row["order"]) == (
        "Releasing",
        destination,
        f"transfer to {destination}",
    )


def test_transfer_until_done(cluster_command: RunCommand, played: PublishedWorld) -> None:
    """The answer on standard output, how the order ended on standard error."""
    destination = other_than(owner_of(played, FIRST))
    words = ("bundles", "transfer", FIRST, destination, "--until-done", "--reason", "disk", "--format", "json")
    with answering_leader(played):
        ran = cluster_command(*words)
    assert (ran.status, json.loads(ran.out)["outcome"]) == (ExitStatus.DONE, "done"), ran
    assert ran.err.splitlines()[-1] == "1 order carried out"
    assert owner_of(played, FIRST) == destination


def test_nothing_to_be_done_is_done_at_once(cluster_command: RunCommand, played: PublishedWorld) -> None:
    """No order was given, so none is waited for."""
    with answering_leader(played):
        ran = cluster_command("bundles", "transfer", FIRST, owner_of(played, FIRST), "--until-done", "60")
    assert (ran.status, "already" in ran.out) == (ExitStatus.DONE, True), ran
    assert ran.err == "no order was given, so none was waited for\n"


def test_an_order_that_fails_is_told(cluster_command: RunCommand, played: PublishedWorld) -> None:
    """The order was given, hence the answer is done; what came of it decides on the exit status."""
    with answering_leader(played):
        ran = cluster_command("bundles", "split", FIRST, "--by", "topic_count_equally_divide", "--until-done", "60")
    assert ran.status == ExitStatus.FAILED, ran
    assert ran.err.splitlines()[-1].startswith(f"1 of 1 order failed: {FIRST}: not split: ")


def test_an_order_that_lasts_is_left_standing(cluster_command: RunCommand, handing_off: PublishedWorld) -> None:
    """The command ends at its limit; the order does not."""
    with answering_leader(handing_off):
        ran = cluster_command("bundles", "unload", FIRST, "--until-done", "0.5")
    assert ran.status == ExitStatus.UNREACHABLE, ran
    first, *_, last = ran.err.splitlines()
    assert first == f"1 of 1 order left: {FIRST}: unload, is Releasing by {owner_of(handing_off, FIRST)}"
    assert "after 0.5 s (--until-done). They stay in the log" in last
    assert handing_off.state.bundles.orders[FIRST] == BundleOrder(FIRST, BundleOrderKind.UNLOAD)


def test_kafka_that_goes_meanwhile_leaves_the_order(
    cluster_command: RunCommand, handing_off: PublishedWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody has to give it again."""

    def gone(*_: object) -> None:
        raise LogUnavailableError("the end of decisions[0] was not reached")

    monkeypatch.setattr("controlplane.cli.intent_commands.order_watch.DecisionFollower", gone)
    with answering_leader(handing_off):
        ran = cluster_command("bundles", "unload", FIRST, "--until-done", "60")
    assert ran.status == ExitStatus.UNREACHABLE, ran
    assert "The orders were given in decision" in ran.err
    assert "controlplane bundles list" in ran.err


def test_a_refused_order_is_not_waited_for(cluster_command: RunCommand, played: PublishedWorld) -> None:
    """It fails with the answer."""
    with answering_leader(played):
        ran = cluster_command("bundles", "unload", "kv/0x00000000_0x10000000", "--until-done", "60")
    assert (ran.status, ran.err) == (ExitStatus.FAILED, "")
    assert f"its hashes are in {FIRST}" in ran.out


def test_waiting_needs_the_answer(cluster_command: RunCommand, played: PublishedWorld) -> None:
    """It says which orders there are."""
    ran = cluster_command("bundles", "unload", FIRST, "--until-done", "--wait", "0")
    assert (ran.status, "--wait is not 0" in ran.err) == (ExitStatus.CALLED_WRONGLY, True)
    assert asked_for(played) == []


@pytest.mark.parametrize(
    ("words", "arguments"),
    [
        ((), {"by": "number", "numbers": "2"}),
        (("--into", "3"), {"by": "number", "numbers": "3"}),
        (("--at", "0x10000000,0x5"), {"by": "positions", "numbers": "0x10000000,0x5"}),
        (("--by", "range_equally_divide"), {"by": "range_equally_divide"}),
    ],
)
def test_ways_to_split(
    cluster_command: RunCommand, played: PublishedWorld, words: tuple[str, ...], arguments: dict[str, str]
) -> None:
    """One of three, and by default two equal parts."""
    assert cluster_command("bundles", "split", FIRST, *words, "--wait", "0").status == ExitStatus.DONE
    (sent,) = asked_for(played)
    assert (sent.kind, sent.arguments) == ("split_bundles", {"bundles": FIRST, **arguments})


@pytest.mark.parametrize(
    "words",
    [
        "--into 2 --at 0x5",
        "--into 1",
        "--into 129",
        "--at many",
        "--at 0x1,20000000",
        "--by luck",
        "--by specified_positions_divide",
    ],
)
def test_a_wrong_way_to_split_is_not_sent(cluster_command: RunCommand, played: PublishedWorld, words: str) -> None:
    """Two ways at once, or one that there is not."""
    assert cluster_command("bundles", "split", FIRST, *words.split(), "--wait", "0").status == ExitStatus.CALLED_WRONGLY
    assert asked_for(played) == []


def test_a_namespace_is_deleted_until_done(
    cluster_command: RunCommand, played: PublishedWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the last of its bundles; others stay."""

    class WhileTimePasses(DecisionFollower):
        def poll(self, timeout_ms: int) -> list[LoggedDecision]:
            played.run(100)
            return super().poll(timeout_ms)

    monkeypatch.setattr("controlplane.cli.intent_commands.order_watch.DecisionFollower", WhileTimePasses)
    with answering_leader(played):
        ran = cluster_command("namespaces", "delete", "kv", "--until-done", "60")
    assert (ran.status, ran.err.splitlines()[-1]) == (ExitStatus.DONE, "2 orders carried out"), ran
    assert set(played.state.bundles.namespaces) == {"acme/orders"}
    assert {bundle.namespace for bundle in played.state.bundles.by_id.values()} == {"acme/orders"}


def test_a_dry_run_sends_nothing(cluster_command: RunCommand, played: PublishedWorld) -> None:
    """It says what the answer would be, and whether it would be refused."""
    ran = cluster_command("bundles", "unload", "kv", "--dry-run", "--until-done")
    assert (ran.status, f"unload_bundles: done: 2 bundles ({FIRST}, {SECOND})" in ran.out) == (ExitStatus.DONE, True)
    assert "bundles that would get an order: 2; bundles that would change at once: 2" in ran.out
    assert "replicas" not in ran.out
    shown = json.loads(cluster_command("bundles", "unload", "kv", "--dry-run", "--format", "json").out)
    assert [(row["bundle"], row["order"], row["destination"]) for row in shown["bundles"]] == [
        (FIRST, "unload", None),
        (SECOND, "unload", None),
    ]
    owners = {each: played.state.bundles.by_id[each].owner for each in (FIRST, SECOND)}
    assert {row["bundle"]: row["before"] for row in shown["bundles"]} == {
        bundle_id: f"Owned {owner}" for bundle_id, owner in owners.items()
    }
    assert all(row["after"] not in (None, row["before"]) for row in shown["bundles"])
    assert (shown["moved"], shown["slots"]) == (0, [])
    assert cluster_command("namespaces", "delete", "kw", "--dry-run").status == ExitStatus.FAILED
    assert asked_for(played) == []
