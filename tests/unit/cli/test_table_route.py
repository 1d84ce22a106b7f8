"""``table route``: from a key to its owner, with the numbers that a client in another language has to find as well."""

import json
from typing import Any

import pytest

from controlplane.cli.common.failures import ExitStatus
from controlplane.core.bundles.ranges import equal_boundaries
from controlplane.core.cluster.policy import ClusterPolicy, HashFunction
from controlplane.inspection import readers, routes
from tests.helpers.commands import RunCommand
from tests.helpers.published_world import PublishedWorld
from tests.helpers.sources import source_of
from tests.unit.cli.conftest import CLUSTER
from tests.vectors import rewrite


@pytest.fixture
def played(world: PublishedWorld) -> PublishedWorld:
    """Two nodes and a namespace."""
    world.admit("n1", "n2")
    world.intent("i1", "create_namespace", namespace="kv")
    world.run(300, ("n1", "n2"))
    return world


def asked(cluster_command: RunCommand, *words: str) -> dict[str, Any]:
    """The document of a route that was found."""
    ran = cluster_command("table", "route", "--format", "json", *words)
    assert ran.status == ExitStatus.DONE, ran.err
    found: dict[str, Any] = json.loads(ran.out)
    return found


def hash_of(case: dict[str, Any], function: HashFunction) -> int:
    """The signed hash that a vector names."""
    if function is HashFunction.CRC32C:
        return int(case["crc32c"])
    return int.from_bytes(bytes.fromhex(case["md5"])[:4], "little", signed=True)


@pytest.mark.parametrize("case", rewrite.read("hashes"), ids=lambda case: case["name"])
def test_every_vectors_key_is_routed_to_its_slot(
    cluster_command: RunCommand, played: PublishedWorld, case: dict[str, Any]
) -> None:
    """Somebody who checks a client compares hash and slot: both have to be those of the vectors."""
    found = asked(cluster_command, "--", case["key"])
    slot = played.state.slots.table[found["slot"]]
    assert (found["hash"], found["absolute_hash"]) == (case["crc32c"], abs(case["crc32c"]))
    assert found["slot"] == case["slots"]["crc32c"]["16"]
    assert bytes.fromhex(found["key_bytes"]) == case["key"].encode()
    assert (found["leader"], tuple(found["followers"]), found["leader_epoch"]) == (
        slot.leader,
        slot.followers,
        slot.leader_epoch,
    )
    assert (found["term"], found["epoch"]) == (played.state.term, played.state.epoch)
    assert found["addresses"] == ["kv=localhost:4000"]


@pytest.mark.parametrize("case", rewrite.read("hashes"), ids=lambda case: case["name"])
def test_md5_is_shown_as_its_first_four_bytes(case: dict[str, Any]) -> None:
    """The other hash function has its own arithmetic."""
    world = PublishedWorld(CLUSTER, ClusterPolicy(slot_count=16, hash_function=HashFunction.MD5))
    table = readers.read_routing_table(source_of(world.reader()))
    assert table is not None
    found = routes.slot_route(table, case["key"])
    assert (found["hash"], found["slot"]) == (hash_of(case, HashFunction.MD5), case["slots"]["md5"]["16"])
    assert routes.route_rows(found)[-1]["value"] == f"|{found['hash']}| mod 16 = {found['slot']}"


@pytest.mark.parametrize("case", rewrite.read("bundles"), ids=lambda case: case["name"])
def test_every_vectors_key_is_routed_to_its_bundle(
    cluster_command: RunCommand, played: PublishedWorld, case: dict[str, Any]
) -> None:
    """With a namespace the bundle counts, which has an owner and no leader epoch."""
    found = asked(cluster_command, "--namespace", "kv", "--", case["key"])
    assert (found["hash"], found["bundle"]) == (case["crc32"], case["bundles"]["4"])
    assert found["owner"] == played.state.bundles.by_id[found["bundle"]].owner


def test_namespace_of_a_tenant_is_created_and_routed(cluster_command: RunCommand, world: PublishedWorld) -> None:
    """Its name holds a slash, as in Pulsar."""
    world.admit("n1")
    world.intent("i1", "create_namespace", namespace="tenant/orders")
    world.run(300, ("n1",))
    topic = "persistent://tenant/orders/new"
    found = asked(cluster_command, "--namespace", "tenant/orders", topic)
    assert (found["namespace"], found["owner"]) == ("tenant/orders", "n1")
    assert found["bundle"] == f"tenant/orders/{equal_boundaries(4).range_of_topic('tenant/orders', topic).name}"


def test_text_has_the_arithmetic(cluster_command: RunCommand, played: PublishedWorld) -> None:
    """The absolute value is what clients forget."""
    del played
    last = cluster_command("table", "route", "a").out.splitlines()[-1]
    assert last.split(maxsplit=1) == ["arithmetic", "|-1043315920| & (16 - 1) = 0"]
    last = cluster_command("table", "route", "a", "--namespace", "kv").out.splitlines()[-1]
    assert last.split(maxsplit=1) == ["arithmetic", "crc32(key) = 0xe8b7be43, within the bounds of the bundle"]


def test_what_has_no_owner_fails(cluster_command: RunCommand, world: PublishedWorld) -> None:
    """A script that asks where to go must not take nobody for a node."""
    ran = cluster_command("table", "route", "a", "--format", "json")
    assert (ran.status, json.loads(ran.out)["leader"]) == (ExitStatus.FAILED, None)
    assert f"no node serves this key in epoch {world.state.epoch}" in ran.err
    ran = cluster_command("table", "route", "a", "--namespace", "none")
    assert (ran.status, ran.out) == (ExitStatus.FAILED, "")
    assert "'none'" in ran.err


def test_a_key_that_is_no_text_is_refused(cluster_command: RunCommand, played: PublishedWorld) -> None:
    """A byte that is no UTF-8 would be routed as a question mark."""
    del played
    ran = cluster_command("table", "route", "a\udcff")
    assert ran.status == ExitStatus.CALLED_WRONGLY
    assert "no UTF-8" in ran.err


@pytest.mark.parametrize(
    ("key", "hint"),
    [
        ("t1", "write its full name: persistent://tenant/orders/t1 "),
        ("tenant/orders/t1", "write its full name: persistent://tenant/orders/t1 "),
        ("persistent://tenant/other/t1", "is a topic of another namespace than 'tenant/orders'"),
        ("non-persistent://tenant/orders/t1", ""),
        ("https://example.org/a", ""),
    ],
)
def test_a_short_name_of_a_topic_is_pointed_out(
    cluster_command: RunCommand, world: PublishedWorld, key: str, hint: str
) -> None:
    """It is hashed as it is, which is another hash than Pulsar's."""
    world.admit("n1")
    world.intent("i1", "create_namespace", namespace="tenant/orders")
    world.run(300, ("n1",))
    ran = cluster_command("table", "route", key, "--namespace", "tenant/orders")
    assert ran.status == ExitStatus.DONE
    assert hint in ran.err if hint else ran.err == ""


def test_keys_of_a_namespace_without_a_tenant_are_no_topics(
    cluster_command: RunCommand, played: PublishedWorld
) -> None:
    """Pulsar has no such namespaces."""
    del played
    assert cluster_command("table", "route", "t1", "--namespace", "kv").err == ""
