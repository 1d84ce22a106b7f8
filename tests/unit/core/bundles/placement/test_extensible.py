"""The extensible selection and the bundles whose node is fixed."""

import pytest

from controlplane.core.bundles.load.averages import UNSEEN_BUNDLE
from controlplane.core.bundles.load.stored_load import StoredLoad
from controlplane.core.bundles.load.view import BundleHistory
from controlplane.core.bundles.placement.context import ExtensibleContext, PlacementPolicies, RegisteredNode
from controlplane.core.bundles.placement.contract import BundleToPlace
from controlplane.core.bundles.placement.extensible import ExtensiblePlacement, ExtensiblePlacementSettings
from controlplane.core.bundles.placement.fixed_owner import fixed_owner
from controlplane.core.bundles.placement.isolation import IsolationPolicies, IsolationPolicy
from controlplane.core.bundles.placement.least_resource_usage import LeastStoredUsage
from controlplane.core.bundles.settings.managers import EXTENSIBLE_MANAGER

BUNDLE = BundleToPlace("t/n/0x00000000_0xffffffff", BundleHistory(UNSEEN_BUNDLE))
RULE = ExtensiblePlacement(LeastStoredUsage())


def registered(*names: str, version: str = "1.0.0", manager: str = EXTENSIBLE_MANAGER) -> dict[str, RegisteredNode]:
    """Registered nodes."""
    return dict.fromkeys(names, RegisteredNode(version, manager))


def test_filters_come_in_order_over_one_set_of_candidates() -> None:
    """Each filter sees what the one before it left."""
    nodes = {
        **registered("other:1", manager="other"),
        **registered("full:1", "group:1", "reserved:1", "free:1"),
        **registered("old:1", version="0.9.0"),
    }
    loads = {"full:1": StoredLoad(0.1, 50_000), "free:1": StoredLoad(0.9, 49_999)}
    rules = PlacementPolicies(
        IsolationPolicies((IsolationPolicy("p", ("x",), ("reserved",)),)), {"t/n": "g", "t/m": "G"}
    )
    seen = ExtensibleContext(nodes, loads, {"t/m/1": "group:1"}, rules)
    rule = ExtensiblePlacement(LeastStoredUsage(), ExtensiblePlacementSettings(prefers_later_versions=True))
    found = rule.place(BUNDLE, seen, None, 0.0)
    assert [(step.filter_name, [each.node_id for each in step.dropped]) for step in found.steps] == [
        ("load-manager", ["other:1"]),
        ("topic-count", ["full:1"]),
        ("version", ["old:1"]),
        ("anti-affinity", ["group:1"]),
        ("isolation", ["reserved:1"]),
    ]
    assert found.node_id == "free:1"


def test_failing_filter_is_passed_over_and_the_others_still_count() -> None:
    """Unlike the modular selection, which brings every node back."""
    nodes = {**registered("a:1", version="bad"), **registered("b:1", "c:1"), **registered("d:1", manager="other")}
    rules = PlacementPolicies(IsolationPolicies((IsolationPolicy("p", ("t/n",), ("a", "d")),)))
    rule = ExtensiblePlacement(LeastStoredUsage(), ExtensiblePlacementSettings(prefers_later_versions=True))
    found = rule.place(BUNDLE, ExtensibleContext(nodes, rules=rules), None, 0.9)
    assert [step.filter_name for step in found.steps if step.failure] == ["version"]
    assert found.node_id == "a:1"


def test_nobody_is_chosen_if_filters_leave_nobody() -> None:
    """There is no way back: a filter that drops everybody leaves the bundle without a node."""
    full = ExtensibleContext(registered("a:1"), {"a:1": StoredLoad(0.1, 50_000)})
    found = RULE.place(BUNDLE, full, None, 0.0)
    assert (found.node_id, found.pick) == (None, None)
    assert RULE.place(BUNDLE, ExtensibleContext({}), None, 0.0).node_id is None


def test_excluded_nodes_are_no_candidates() -> None:
    """The node that is cleaned up must not get its bundles back."""
    seen = ExtensibleContext(registered("a:1", "b:1"), {"a:1": StoredLoad(0.0), "b:1": StoredLoad(0.9)})
    assert RULE.place(BUNDLE, seen, None, 0.0).node_id == "a:1"
    assert RULE.place(BUNDLE, seen, None, 0.0, excluded={"a:1"}).node_id == "b:1"
    assert RULE.place(BUNDLE, seen, None, 0.0, excluded={"a:1", "b:1"}).node_id is None


def test_request_that_only_reads_chooses_nobody() -> None:
    """A look-up of an owner must not create one."""
    found = RULE.place(BUNDLE, ExtensibleContext(registered("a:1")), None, 0.0, read_only=True)
    assert (found.node_id, found.steps) == (None, ())


def test_bundles_are_not_spread_evenly_over_nodes() -> None:
    """There is no such filter here: the owner of all other bundles gets this one too."""
    owners = {"t/n/1": "a:1", "t/n/2": "a:1"}
    seen = ExtensibleContext(registered("a:1", "b:1"), {"a:1": StoredLoad(0.1), "b:1": StoredLoad(0.5)}, owners)
    assert RULE.place(BUNDLE, seen, None, 0.0).node_id == "a:1"


@pytest.mark.parametrize(
    ("bundle_id", "expected"),
    [
        ("pulsar/a:1/0x0_0x1", "a:1"),
        ("pulsar/gone:1/0x0_0x1", "gone:1"),
        ("sla-monitor/a:1/0x0_0x1", "a:1"),
        ("sla-monitor/gone:1/0x0_0x1", None),
        ("pulsar/system/0x0_0x1", None),
        ("pulsar/[::1]:1/0x0_0x1", None),
        ("t/n/0x0_0x1", None),
    ],
)
def test_namespaces_of_heartbeats_belong_to_their_node(bundle_id: str, expected: str | None) -> None:
    """A node's monitoring may move to another node when it has gone; its heartbeats may not."""
    assert fixed_owner(bundle_id, {"a:1"}, "leader:1") == expected


def test_internal_topics_belong_to_the_owner_of_the_channel() -> None:
    """They are what the others' decisions are made from."""
    assert fixed_owner("pulsar/system/0x0_0x1", {"a:1"}, "leader:1", holds_internal_topic=True) == "leader:1"
    assert fixed_owner("pulsar/system/0x0_0x1", {"a:1"}, None, holds_internal_topic=True) is None
