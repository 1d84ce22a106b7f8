"""Every command that reads, on a cluster that has only topics yet, and on one that has lost its log."""

import json

import pytest

from controlplane.cli.common.failures import ExitStatus
from controlplane.config import DECISIONS, ROUTING_TABLE, SNAPSHOTS
from tests.helpers.commands import RunCommand
from tests.helpers.published_world import SINGLE_PARTITION_TOPICS, PublishedWorld
from tests.helpers.snapshots import append, points_of, snapshot_records


@pytest.fixture
def empty(world: PublishedWorld) -> PublishedWorld:
    """Nobody has led yet."""
    for topic in SINGLE_PARTITION_TOPICS:
        world.broker.create_topic(world.cluster.topic(topic))
    return world


@pytest.mark.parametrize("output_format", ["text", "json"])
@pytest.mark.parametrize(
    ("words", "status", "sentence"),
    [
        ("table show", ExitStatus.FAILED, "has no routing table yet: no controller has led it"),
        ("table show --as-of-seq 1", ExitStatus.FAILED, "seq 1 is not there yet"),
        ("table status", ExitStatus.FAILED, "has no routing table yet: no controller has led it"),
        ("table plan", ExitStatus.FAILED, "no controller has led this cluster yet"),
        ("ring owner key", ExitStatus.FAILED, "has no routing table yet: no controller has led it"),
        ("ring replicas key", ExitStatus.FAILED, "has no routing table yet: no controller has led it"),
        ("nodes list", ExitStatus.FAILED, "has no routing table yet: no controller has led it"),
        ("namespaces show kv", ExitStatus.FAILED, "has no routing table yet: no controller has led it"),
        ("namespaces list", ExitStatus.DONE, "has no routing table yet: no controller has led it"),
        ("bundles list", ExitStatus.DONE, "has no bundles yet: no controller has led it"),
        ("bundles list --node n1", ExitStatus.DONE, "has no bundles yet: no controller has led it"),
        ("tenants list", ExitStatus.DONE, "has no tenants yet: no controller has led it"),
        ("log show", ExitStatus.DONE, "has no decisions yet: no controller has led it"),
        ("log show --seq 1", ExitStatus.FAILED, "the log holds no decision of seq 1"),
        ("log replay", ExitStatus.FAILED, "has no decisions yet: no controller has led it"),
        ("log replay --from-snapshot", ExitStatus.FAILED, "has no decisions yet: no controller has led it"),
        ("log verify", ExitStatus.DONE, "has no decisions yet: no controller has led it"),
        ("audit", ExitStatus.DONE, "has no decisions yet: no controller has led it"),
        ("leader show", ExitStatus.UNREACHABLE, "no controller leads cluster 'local' now"),
        ("leader history", ExitStatus.DONE, "has no decisions yet: no controller has led it"),
        ("snapshot list", ExitStatus.FAILED, "there is no snapshot to begin from"),
        ("policy show", ExitStatus.FAILED, "has no policy yet: no controller has led it"),
        ("feature-level show", ExitStatus.FAILED, "has no feature level yet: no controller has led it"),
    ],
)
def test_a_cluster_that_nobody_has_led_is_said_to_be_one(
    cluster_command: RunCommand,
    empty: PublishedWorld,
    words: str,
    status: ExitStatus,
    sentence: str,
    output_format: str,
) -> None:
    """Whatever is asked first of a new cluster, the answer is a sentence."""
    ran = cluster_command(*words.split(), "--format", output_format)
    assert (ran.status, sentence in ran.err) == (status, True), ran


@pytest.mark.parametrize("words", ["log show", "leader history", "namespaces list", "bundles list", "tenants list"])
def test_a_list_of_an_empty_log_is_an_empty_list(
    cluster_command: RunCommand, empty: PublishedWorld, words: str
) -> None:
    """Columns without a row leave open whether the log is empty; programs still get their empty list."""
    assert json.loads(cluster_command(*words.split(), "--format", "json").out) == []


@pytest.mark.parametrize("kept", [ROUTING_TABLE, SNAPSHOTS])
@pytest.mark.parametrize(
    "words",
    [
        "table show",
        "table status",
        "table plan",
        "nodes list",
        "log show",
        "log replay",
        "log verify",
        "audit",
        "leader history",
        "leader resign",
        "policy show",
        "tenants list",
        "bundles list",
        "feature-level show",
    ],
)
def test_a_log_that_was_deleted_is_not_called_new(
    cluster_command: RunCommand, world: PublishedWorld, words: str, kept: str
) -> None:
    """The table, or a snapshot, still tells of decisions that are in the log no more."""
    world.admit("n1")
    append(world.cluster, world.broker, snapshot_records(points_of(world.reader())[-1]))
    for topic in {DECISIONS, ROUTING_TABLE, SNAPSHOTS} - {kept}:
        world.broker.create_topic(world.cluster.topic(topic))
    ran = cluster_command(*words.split())
    assert (ran.status, ran.out) == (ExitStatus.FAILED, ""), ran
    assert f"topic decisions is empty, but {kept} holds" in ran.err
    assert "the decision log was deleted or recreated" in ran.err


def test_a_controller_that_was_started_just_now_is_waited_for(
    cluster_command: RunCommand, empty: PublishedWorld
) -> None:
    """It needs some seconds until it leads, and another one would not help."""
    ran = cluster_command("nodes", "list")
    assert "start one with 'controlplane controller run', or wait some seconds if one was started just now" in ran.err
