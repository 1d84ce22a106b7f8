"""``ring owner`` and ``ring replicas``: from a key to its nodes, with what a client in another language has to find."""

import json
from typing import Any

import pytest

from controlplane.cli.common.failures import ExitStatus
from controlplane.core.slots.ring.hash_ring import HashRing
from controlplane.core.slots.ring.text_hash import text_hash
from tests.helpers.commands import RunCommand
from tests.helpers.published_world import PublishedWorld

KEYS = ("user-17", "", "Grüße/🚀")


@pytest.fixture
def played(world: PublishedWorld) -> PublishedWorld:
    """Three nodes, two of which share virtual nodes."""
    world.admit("n11", "n1", "a")
    return world


def asked(cluster_command: RunCommand, *words: str) -> dict[str, Any]:
    """The document of an answer."""
    ran = cluster_command("ring", *words, "--format", "json")
    assert ran.status == ExitStatus.DONE, ran.err
    found: dict[str, Any] = json.loads(ran.out)
    return found


@pytest.mark.parametrize("key", KEYS)
def test_the_owner_is_that_of_the_ring(cluster_command: RunCommand, played: PublishedWorld, key: str) -> None:
    """With the hash, and the virtual node at or after it."""
    found = asked(cluster_command, "owner", key)
    ring = HashRing(["a", "n1", "n11"])
    assert (found["owner"], found["virtual_node"]) == (ring.owner(key), ring.virtual_node(key).name)
    assert (found["hash"], found["virtual_node_hash"]) == (text_hash(key), text_hash(found["virtual_node"]))
    assert found["virtual_nodes"] == len(ring) == 1_400
    assert bytes.fromhex(found["key_bytes"]) == key.encode("utf-16-le")
    assert found["addresses"] == ["kv=localhost:4000"]
    assert (found["term"], found["epoch"]) == (played.state.term, played.state.epoch)


@pytest.mark.parametrize("key", KEYS)
def test_the_replicas_are_those_of_the_ring(cluster_command: RunCommand, played: PublishedWorld, key: str) -> None:
    """By default as many as the policy has, less the first."""
    del played
    ring = HashRing(["a", "n1", "n11"])
    for words, count in (((), 1), (("--count", "0"), 0), (("--count", "7"), 7)):
        found = asked(cluster_command, "replicas", key, *words)
        copies = sorted(ring.replicas(key, count))
        assert (found["owner"], found["count"], found["replicas"]) == (ring.owner(key), count, copies)
        assert (found["writable"], found["readable"]) == (copies, sorted([*copies, ring.owner(key)]))


def test_a_draining_node_is_responsible_and_its_heir_is_written_to(
    cluster_command: RunCommand, played: PublishedWorld
) -> None:
    """Until it has left."""
    key = next(f"k{number}" for number in range(100) if HashRing(["a", "n1", "n11"]).owner(f"k{number}") == "a")
    played.leave("a")
    played.run(300, ("n1", "n11"))
    found = asked(cluster_command, "replicas", key, "--count", "0")
    assert (found["owner"], found["writable"]) == ("a", [HashRing(["n1", "n11"]).owner(key)])


def test_the_text_has_a_line_for_each_property(cluster_command: RunCommand, played: PublishedWorld) -> None:
    """In the words of the document."""
    del played
    shown = dict(line.split(maxsplit=1) for line in cluster_command("ring", "owner", "a").out.splitlines()[1:])
    assert shown["hash"] == str(text_hash("a"))
    assert shown["owner"] == HashRing(["a", "n1", "n11"]).owner("a")


@pytest.mark.parametrize("question", ["owner", "replicas"])
def test_a_cluster_without_nodes_has_no_owner(
    cluster_command: RunCommand, world: PublishedWorld, question: str
) -> None:
    """A script that asks where to go must not take nobody for a node."""
    del world
    ran = cluster_command("ring", question, "a")
    assert (ran.status, ran.out) == (ExitStatus.FAILED, "")
    assert "no node is on the ring" in ran.err


@pytest.mark.parametrize("question", ["owner", "replicas"])
def test_a_key_that_is_no_text_is_refused(cluster_command: RunCommand, played: PublishedWorld, question: str) -> None:
    """Bytes have no UTF-16 units."""
    del played
    ran = cluster_command("ring", question, "a\udcff")
    assert ran.status == ExitStatus.CALLED_WRONGLY
    assert "no UTF-8" in ran.err
