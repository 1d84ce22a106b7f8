"""Slot policies of one's own: the example decides well, and the how-to page works as it stands there."""

import shutil
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from controlplane.bootstrap.slot_policies import load_slot_policies
from controlplane.cli.common.settings_option import parse_settings
from controlplane.cli.controller.commands import run as controller_run
from controlplane.core.cluster.policy import ClusterPolicy
from controlplane.core.intents.events import IntentOutcome
from controlplane.core.slots.answers import ask
from controlplane.core.slots.minimal.contract import PlacementNode
from controlplane.core.slots.policy_contract import SlotPolicies, SlotRequest
from controlplane.core.slots.table import Slot, empty_table
from controlplane.core.values.identifiers import Epoch
from controlplane.embedded.kafka import EmbeddedKafka
from controlplane.embedded.valkey import EmbeddedValkey
from tests.helpers.logs import complaints_of
from tests.helpers.memory_cluster import ObservedCluster
from tests.helpers.readme import ROOT, blocks, commands, console_commands, run
from tests.helpers.real_cluster import RealCluster
from tests.helpers.world import World

PAGE = ROOT / "docs" / "how-to" / "write-a-slot-policy.md"
EXAMPLE = ROOT / "examples" / "slot_policies" / "zoned_rendezvous.py"
NODES = ("n1", "n2", "n3", "n4")
SLOTS = 1_024


def nodes(*weights: int) -> tuple[PlacementNode, ...]:
    """Nodes n1, n2, ... of these weights."""
    return tuple(PlacementNode(f"n{number}", weight, 0) for number, weight in enumerate(weights, start=1))


def planned(members: tuple[PlacementNode, ...], before: tuple[Slot, ...] = (), replicas: int = 3) -> tuple[Slot, ...]:
    """The example's table for these members, judged as a leader judges it."""
    slots = before or empty_table(SLOTS)
    epoch = Epoch(max(slot.leader_epoch for slot in slots) + 1)
    policy = ClusterPolicy(slot_count=SLOTS, replica_count=replicas)
    request = SlotRequest(slots, members, frozenset(), policy, epoch, 0)
    answer, refusal = ask(load_slot_policies([EXAMPLE])["zoned-rendezvous"], request)
    assert refusal is None
    return answer.slots


def moved(before: tuple[Slot, ...], after: tuple[Slot, ...]) -> int:
    """Replicas on nodes that did not hold the slot."""
    return sum(len({*new.replicas} - {*old.replicas}) for old, new in zip(before, after, strict=True))


def test_every_slot_has_its_replicas_by_weight() -> None:
    """A node of weight 2 draws twice as often; with one replica that doubles its share; weight 0 holds nothing."""
    table = planned(nodes(100, 200, 0, 100), replicas=1)
    count = Counter(slot.leader for slot in table)
    assert set(count) == {"n1", "n2", "n4"}
    assert abs(count["n2"] - SLOTS // 2) < 100
    assert {len(slot.replicas) for slot in planned(nodes(1, 1, 1, 1, 1))} == {3}
    assert {len(slot.replicas) for slot in planned(nodes(1, 1, 0))} == {2}
    assert {slot.replicas for slot in planned(nodes(0, 0))} == {()}


def test_only_slots_of_those_who_come_or_go_move() -> None:
    """What the example promises of its movement, for a join and for a death, and that leaders stay where they can."""
    four = planned(nodes(1, 1, 1, 1))
    five = planned(nodes(1, 1, 1, 1, 1), four)
    assert moved(four, five) == sum("n5" in slot.replicas for slot in five)
    assert not any(new.leader == "n5" for new in five)
    dead = planned(nodes(1, 1, 1, 1, 1)[1:], five)
    assert moved(five, dead) == sum("n1" in slot.replicas for slot in five)
    for old, new in zip(five, dead, strict=True):
        assert new.leader == old.leader if old.leader != "n1" else new.leader in old.followers


def test_replicas_are_spread_over_zones() -> None:
    """As far as there are zones; the best node of all still holds the slot, and nobody is left out."""
    members = tuple(replace(node, zone=zone) for node, zone in zip(nodes(1, 1, 1, 1), "aabb", strict=True))
    zones = {node.node_id: node.zone for node in members}
    for slot, free in zip(planned(members, replicas=2), planned(nodes(1, 1, 1, 1), replicas=1), strict=True):
        assert {zones[name] for name in slot.replicas} == {"a", "b"}
        assert free.leader in slot.replicas
    assert all(len(slot.replicas) == 3 for slot in planned(members))
    assert {name for slot in planned(members, replicas=2) for name in slot.replicas} == set(NODES)


def test_the_table_does_not_depend_on_how_it_came_about() -> None:
    """The holders follow from the members alone; a second plan changes nothing."""
    five = planned(nodes(1, 1, 1, 1, 1))
    assert [{*slot.replicas} for slot in planned(nodes(1, 1, 1, 1, 1), planned(nodes(1, 1)))] == [
        {*slot.replicas} for slot in five
    ]
    assert planned(nodes(1, 1, 1, 1, 1), five) == five


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the page's policy in the file that its commands name."""
    (tmp_path / "my_policy.py").write_text(blocks(PAGE)["policy"], encoding="utf-8")
    return tmp_path


@pytest.fixture
def words() -> list[str]:
    """The page's command to run a controller, without the program's name."""
    (found,) = [words for words in commands("controlplane", PAGE) if words[:2] == ["controller", "run"]]
    return found


def test_trying_a_policy_prints_what_the_page_shows(folder: Path) -> None:
    """The page's own policy, asked as the page asks it."""
    (folder / "try.py").write_text(blocks(PAGE)["try"], encoding="utf-8")
    assert run([sys.executable, "try.py"], folder, {"PYTHONPATH": str(ROOT)}) == blocks(PAGE)["tried"]


@pytest.fixture
def chosen(folder: Path, words: list[str], monkeypatch: pytest.MonkeyPatch) -> tuple[SlotPolicies, ClusterPolicy]:
    """The policies and the first policy that the page's command gives its controller."""
    monkeypatch.chdir(folder)
    context = controller_run.make_context("run", words[2:])
    files, settings = context.params["slot_policy_files"], context.params["policy_settings"]
    return load_slot_policies(files), parse_settings("--policy", ClusterPolicy(), settings)


def test_the_pages_command_leads_a_cluster_by_the_policy(chosen: tuple[SlotPolicies, ClusterPolicy]) -> None:
    """In memory: nodes join, one dies, and the log verifies."""
    policies, policy = chosen
    with ObservedCluster() as world:
        world.policy = replace(policy, slot_count=8, join_linger_ms=50, silence_limit_ms=800)
        world.start("c1", slot_policies=policies)
        world.join("n1", "n2", "n3")
        world.wait_until(lambda: set(world.owners().values()) == {"n1", "n2", "n3"})
        world.silence("n2")
        world.wait_until(lambda: set(world.owners().values()) == {"n1", "n3"})
        assert complaints_of(world.decisions()) == []


def test_the_pages_command_gives_a_running_cluster_the_policy(folder: Path) -> None:
    """The table is planned in the very decision that chooses the policy, and ``minimal`` leads back."""
    on_consoles = [words for words in console_commands("controlplane", PAGE) if words[:2] == ["policy", "set"]]
    assert [words[2] for words in on_consoles] == ["slot_policy=fewest"] * 2
    world = World(ClusterPolicy(slot_count=8), load_slot_policies([folder / "my_policy.py"]))
    world.admit("n1", "n2", "n3")
    proven = []
    for name in ("fewest", "minimal"):
        assert world.ask("change_policy", slot_policy=name).outcome is IntentOutcome.DONE
        assert world.state.cluster.policy.slot_policy == name
        proven.append(world.decisions[-1].certificate is not None)
    assert proven == [False, True]
    assert complaints_of(world.decisions) == []


def test_the_file_can_be_named_in_the_environment(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Several paths, separated as in PATH."""
    variable = "CONTROLPLANE_CONTROLLER_RUN_SLOT_POLICY_FILE"
    assert variable in PAGE.read_text(encoding="utf-8")
    monkeypatch.setenv(variable, f"{folder / 'my_policy.py'}:{EXAMPLE}")
    context = controller_run.make_context("run", [])
    assert set(load_slot_policies(context.params["slot_policy_files"])) >= {"fewest", "zoned-rendezvous"}


@pytest.fixture
def cluster(
    kafka_broker: EmbeddedKafka, valkey_server: EmbeddedValkey, cluster_name: str, tmp_path: Path
) -> Iterator[RealCluster]:
    """A cluster on the shared servers without controllers."""
    with RealCluster(cluster_name, kafka_broker.bootstrap_servers, valkey_server.redis_url, tmp_path) as started:
        yield started


@pytest.mark.slow
@pytest.mark.kafka
@pytest.mark.timeout(300)
def test_a_real_cluster_is_led_by_the_example(cluster: RealCluster, tmp_path: Path, words: list[str]) -> None:
    """Controllers as a user starts them: a join, a death, a take-over, and one that has no file and never leads."""
    shutil.copy(EXAMPLE, tmp_path / "my_policy.py")
    options = [
        str(tmp_path / word) if word.endswith(".py") else word.replace("fewest", "zoned-rendezvous") for word in words
    ]
    cluster.start_controller("c1", *options[2:])
    cluster.join(*NODES)
    cluster.wait_until(lambda: cluster.slot_leaders() == set(NODES), "the first table")
    ignorant = cluster.start_controller("without the file")
    assert ignorant.wait(60) == 1
    assert "slot policy 'zoned-rendezvous' is not known here" in cluster.log_of("without the file").read_text()
    cluster.start_controller("c2", *options[2:])
    cluster.silence("n2")
    cluster.wait_until(lambda: cluster.slot_leaders() == {*NODES} - {"n2"}, "the table without n2")
    cluster.kill_leader()
    cluster.join("n5")
    cluster.wait_until(lambda: any("n5" in slot.replicas for slot in cluster.tables()[-1].slots), "n5 in the table")
    decisions = cluster.decisions()
    assert {decision.controller_id for decision in decisions} == {"c1", "c2"}
    assert [decision.certificate for decision in decisions] == [None] * len(decisions)
    assert complaints_of(decisions) == []
