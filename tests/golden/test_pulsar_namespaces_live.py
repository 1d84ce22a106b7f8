"""Namespaces of a live cluster against recorded answers of Pulsar: the bundles that an order makes, and their keys."""

from itertools import pairwise

import pytest

from controlplane.core.bundles.bundle import Bundle, Namespace
from controlplane.core.bundles.ranges import Boundaries
from controlplane.core.cluster.policy import ClusterPolicy, HashFunction
from controlplane.core.cluster.rows import TableSettings
from controlplane.core.routing.replica import TableReplica
from controlplane.core.routing.rows import SETTINGS_KEY, TableRow, key_of
from tests.conformance.recorded import Case, recorded
from tests.helpers.table_topics import TableTopic
from tests.helpers.world import World

NAMESPACE = "t/n"


def answered(operation: str) -> list[Case]:
    """The cases of an operation that have an answer."""
    return [case for case in recorded("pulsar")[operation] if "out" in case]


@pytest.mark.parametrize("case", answered("create_bundles"), ids=lambda case: str(case["in"]["n"]))
def test_created_bundles_have_the_recorded_bounds(case: Case) -> None:
    """Every id of a namespace is the one that Pulsar would give it."""
    world = World(ClusterPolicy(slot_count=16, bundles_per_namespace=case["in"]["n"]))
    world.admit("n1", "n2")
    world.ask("create_namespace", namespace=NAMESPACE)
    bounds = case["out"]
    expected = [f"{NAMESPACE}/{lower}_{upper}" for lower, upper in pairwise(bounds)]
    assert sorted(world.state.bundles.by_id) == expected


@pytest.mark.parametrize("case", answered("find_bundle"), ids=lambda case: case["id"])
def test_topics_are_routed_to_the_recorded_bundle(case: Case) -> None:
    """A reader of the routing table finds the bundle that Pulsar names, by the topic's full name as the key."""
    boundaries = Boundaries(tuple(int(each, 16) for each in case["in"]["boundaries"]))
    bundles = [Bundle(NAMESPACE, *each, "n1") for each in boundaries.ranges]
    rows: list[TableRow] = [Namespace(NAMESPACE, len(bundles)), *bundles]
    topic = TableTopic()
    topic.commit({SETTINGS_KEY: TableSettings(16, 2, HashFunction.CRC32C, 2_500)} | {key_of(row): row for row in rows})
    replica = TableReplica()
    for record in topic.records:
        replica.fold(record.key, record.value, record.row)
    table = replica.table
    assert table is not None
    found = [table.bundle_for(NAMESPACE, name).bundle_id for name, _, _ in case["out"]]
    assert found == [f"{NAMESPACE}/{name}" for _, _, name in case["out"]]
