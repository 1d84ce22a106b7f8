"""``tenants set``, ``tenants delete`` and ``tenants list``, against a leader on an in-memory cluster."""

import json

import pytest

from controlplane.cli.common.failures import ExitStatus
from tests.helpers.answering import answering_leader
from tests.helpers.commands import RunCommand
from tests.helpers.published_world import PublishedWorld
from tests.unit.cli.test_asking import sent_intents


@pytest.fixture
def led(world: PublishedWorld) -> PublishedWorld:
    """One node."""
    world.admit("n1")
    return world


def test_tenants_are_set_listed_and_deleted(cluster_command: RunCommand, led: PublishedWorld) -> None:
    """The list counts namespaces; what a namespace still needs is refused with status 1."""
    with answering_leader(led):
        for words, status, said in (
            (("tenants", "set", "acme"), ExitStatus.DONE, "tenant 'acme' allows cluster local"),
            (("tenants", "set", "idle", "--clusters", ""), ExitStatus.DONE, "tenant 'idle' allows no cluster"),
            (("namespaces", "create", "acme/orders"), ExitStatus.DONE, "'acme/orders' with 4 bundles"),
            (("namespaces", "create", "acme/eu/orders"), ExitStatus.FAILED, "would be in cluster 'eu'"),
            (("tenants", "set", "acme", "--clusters", "local,eu"), ExitStatus.DONE, "allows clusters eu, local"),
            (("namespaces", "create", "acme/eu/orders"), ExitStatus.DONE, "'acme/eu/orders' with 4 bundles"),
            (("tenants", "set", "acme", "--clusters", "local"), ExitStatus.FAILED, "has 1 namespace where"),
            (("tenants", "delete", "acme", "--dry-run"), ExitStatus.FAILED, "still has 2 namespaces"),
            (("tenants", "delete", "acme"), ExitStatus.FAILED, "still has 2 namespaces"),
            (("tenants", "delete", "idle", "--reason", "unused"), ExitStatus.DONE, "is deleted (reason given: unused)"),
            (("tenants", "set", "new", "--clusters", ""), ExitStatus.DONE, "allows no cluster"),
        ):
            ran = cluster_command(*words)
            assert (ran.status, said in f"{ran.out}{ran.err}") == (status, True), (words, ran)
    listed = json.loads(cluster_command("tenants", "list", "--format", "json").out)
    assert listed == [
        {"tenant": "acme", "allowed_clusters": ["eu", "local"], "namespaces": 2},
        {"tenant": "new", "allowed_clusters": [], "namespaces": 0},
    ]
    lines = cluster_command("tenants", "list").out.splitlines()
    assert lines[0].split() == ["tenant", "allowed", "clusters", "namespaces"]
    assert lines[1].split() == ["acme", "eu,", "local", "2"]
    assert "... and 1 more: --limit 0 prints all" in cluster_command("tenants", "list", "--limit", "1").out


@pytest.mark.parametrize("words", [("A B",), ("",), ("acme", "--clusters", "eu,"), ("acme", "--clusters", "a/b")])
def test_impossible_names_are_not_sent(
    cluster_command: RunCommand, led: PublishedWorld, words: tuple[str, ...]
) -> None:
    """The sender checks what no cluster could accept."""
    ran = cluster_command("tenants", "set", *words, "--wait", "0")
    assert (ran.status, sent_intents(led)) == (ExitStatus.CALLED_WRONGLY, []), ran
