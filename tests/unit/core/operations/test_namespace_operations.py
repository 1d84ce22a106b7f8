"""Namespaces: how many bundles a new one has, at which bounds, and which names and numbers are refused."""

import pytest

from controlplane.core.bundles.bundle import bundles_at_level_1
from controlplane.core.cluster.policy import ClusterPolicy
from controlplane.core.operations.namespace_operations import check_bundle_count
from controlplane.errors import ConfigurationError
from tests.golden.frozen import RECORDS, read_json
from tests.helpers.logs import complaints_of
from tests.helpers.recorded_log import RecordedLog
from tests.helpers.world import World


def bounds_of(world: World, namespace: str) -> list[tuple[int, int]]:
    """The bounds of its bundles, ascending."""
    bundles = world.state.bundles.by_id.values()
    return sorted((each.lower, each.upper) for each in bundles if each.namespace == namespace)


def test_a_namespace_has_as_many_bundles_as_asked_for() -> None:
    """Without a number, as many as the policy says."""
    world = World(ClusterPolicy(slot_count=4, bundles_per_namespace=5))
    world.admit("n1")
    assert world.ask("create_namespace", namespace="t/plain").detail == "namespace 't/plain' with 5 bundles"
    assert world.ask("create_namespace", namespace="t/one", bundles="1").detail == "namespace 't/one' with 1 bundle"
    assert world.ask("create_namespace", namespace="t/many", bundles="128").detail.endswith("128 bundles")
    assert world.ask("create_namespace", namespace="t/empty", bundles="").detail.endswith("5 bundles")
    ids = [bundle_id for bundle_id in world.state.bundles.by_id if bundle_id.startswith("t/one/")]
    assert ids == ["t/one/0x00000000_0xffffffff"]


def test_a_namespace_is_created_once() -> None:
    """A second one of the name is refused, whatever its number of bundles."""
    world = World()
    world.admit("n1")
    world.ask("create_namespace", namespace="t/n", bundles="2")
    assert world.ask("create_namespace", namespace="t/n", bundles="3").detail == "namespace 't/n' exists already"


@pytest.mark.parametrize("wrong", ["0", "129", "-1", "1.5", "four", "\u0664", " 4", "9" * 5_000])
def test_a_wrong_number_of_bundles_is_refused(wrong: str) -> None:
    """Before the intent is sent, and in the log if it is sent all the same."""
    with pytest.raises(ConfigurationError, match="expected a number from 1 to 128"):
        check_bundle_count(wrong)
    world = World()
    world.admit("n1")
    assert world.ask("create_namespace", namespace="t/n", bundles=wrong).outcome.value == "refused"
    assert "t/n" not in world.state.bundles.namespaces


def test_released_records_have_the_bounds_of_level_1() -> None:
    """A bundle as a release of feature level 1 wrote it."""
    (frozen,) = (each["value"] for each in read_json(RECORDS / "Bundle.v1.json") if each["name"] == "without an owner")
    last = bundles_at_level_1("kv", 2)[-1]
    assert (frozen["namespace"], frozen["lower"], frozen["upper"]) == (last.namespace, last.lower, last.upper)


def test_bounds_follow_the_level_of_the_log() -> None:
    """Below level 2 other controllers and clients may not know Pulsar's bounds: to them hash 2^32 - 1 has no bundle."""
    world = World(first_feature_level=1)
    world.admit("n1")
    world.ask("create_namespace", namespace="thirds", bundles="3")
    world.ask("raise_feature_level", level="2", upgraded="c1")
    world.ask("create_namespace", namespace="thirds/new", bundles="3")
    assert bounds_of(world, "thirds") == [
        (0, 1_431_655_765),
        (1_431_655_765, 2_863_311_530),
        (2_863_311_530, 2**32),
    ]
    assert bounds_of(world, "thirds/new")[-1] == (2_863_311_530, 2**32 - 1)
    assert complaints_of(world.decisions) == []


def test_audit_of_a_log_of_level_1_finds_nothing() -> None:
    """Its terms of level 1 are followed; the terms after it was raised are decided again, with namespaces of both."""
    world = World(first_feature_level=1)
    world.admit("n1", "n2")
    world.ask("create_namespace", namespace="kv", bundles="2")
    world.take_over(500)
    world.ask("create_namespace", namespace="second", bundles="5")
    world.ask("raise_feature_level", level="2", upgraded="c1")
    world.take_over(30_000)
    world.ask("create_namespace", namespace="third", bundles="5")
    log_audit, audited = RecordedLog(world).audit()
    assert [each.differences for each in audited if each.differences] == []
    followed = [each.followed_because for each in audited if each.followed_because]
    assert followed
    assert all(each.endswith("(feature level 1)") for each in followed)
    assert log_audit.retaken > 0
    assert log_audit.state == world.state
    assert [bounds_of(world, name)[-1][1] for name in ("kv", "second", "third")] == [2**32, 2**32, 2**32 - 1]
