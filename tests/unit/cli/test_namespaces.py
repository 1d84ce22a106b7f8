"""``namespaces show``: the bundles of one namespace."""

import json

import pytest

from controlplane.cli.common.failures import ExitStatus
from controlplane.core.bundles.ranges import equal_boundaries
from tests.helpers.commands import RunCommand
from tests.helpers.published_world import PublishedWorld


@pytest.fixture
def played(world: PublishedWorld) -> PublishedWorld:
    """A node and two namespaces."""
    world.admit("n1")
    world.intent("i1", "create_namespace", namespace="public/orders", bundles="3")
    world.intent("i2", "create_namespace", namespace="public/order")
    world.run(300, ("n1",))
    return world


def test_bounds_owners_and_nodes_are_shown(cluster_command: RunCommand, played: PublishedWorld) -> None:
    """Those of the namespace alone, ascending."""
    ran = cluster_command("namespaces", "show", "public/orders", "--format", "json")
    found = json.loads(ran.out)
    assert {name: value for name, value in found.items() if name != "bundles"} == {
        "namespace": "public/orders",
        "tenant": "public",
        "epoch": played.state.epoch,
    }
    ranges = equal_boundaries(3).ranges
    assert [each["bundle"] for each in found["bundles"]] == [f"public/orders/{each.name}" for each in ranges]
    assert found["bundles"][-1] == {
        "bundle": "public/orders/0xaaaaaaaa_0xffffffff",
        "lower": "0xaaaaaaaa",
        "upper": "0xffffffff",
        "owner": "n1",
        "status": "active",
        "addresses": ["kv=localhost:4000"],
    }


def test_the_text_is_a_line_and_a_table(cluster_command: RunCommand, played: PublishedWorld) -> None:
    """A row for each bundle, up to the limit."""
    ran = cluster_command("namespaces", "show", "public/orders", "--limit", "2")
    first, headings, *rows = ran.out.splitlines()
    assert first == f"namespace public/orders in epoch {played.state.epoch}: 3 bundles"
    assert headings.split() == ["bundle", "lower", "upper", "owner", "status", "addresses"]
    assert rows[0].split()[1:] == ["0x00000000", "0x55555555", "n1", "active", "kv=localhost:4000"]
    assert rows[2] == "... and 1 more: --limit 0 prints all"


def test_a_bundle_without_an_owner_has_no_node(cluster_command: RunCommand, world: PublishedWorld) -> None:
    """Nothing is shown in place of it."""
    world.intent("i1", "create_namespace", namespace="kv")
    world.run(300, ())
    (first, *_) = json.loads(cluster_command("namespaces", "show", "kv", "--format", "json").out)["bundles"]
    assert (first["owner"], first["status"], first["addresses"]) == (None, None, [])


def test_a_namespace_that_there_is_not_fails(cluster_command: RunCommand, played: PublishedWorld) -> None:
    """With the names that it may be."""
    del played
    ran = cluster_command("namespaces", "show", "public/ordrs", "--format", "json")
    assert (ran.status, ran.out) == (ExitStatus.FAILED, "")
    assert ran.err == (
        "there is no namespace 'public/ordrs' in cluster 'local': did you mean 'public/orders' or 'public/order'?\n"
    )
