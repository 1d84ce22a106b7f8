"""Namespaces: how many bundles a new one has, and which names and numbers are refused."""

import pytest

from controlplane.core.cluster.policy import ClusterPolicy
from controlplane.core.operations.namespace_operations import check_bundle_count
from controlplane.errors import ConfigurationError
from tests.helpers.world import World


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
