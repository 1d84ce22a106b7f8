"""The answers of owners, policies and filters to a transfer shedder."""

from dataclasses import replace

import pytest

from controlplane.core.bundles.load.stored_load import StoredLoad
from controlplane.core.bundles.placement.context import ExtensibleContext, PlacementPolicies, RegisteredNode
from controlplane.core.bundles.placement.extensible import ExtensiblePlacement, ExtensiblePlacementSettings
from controlplane.core.bundles.placement.isolation import IsolationPolicies, IsolationPolicy
from controlplane.core.bundles.placement.least_resource_usage import LeastStoredUsage
from controlplane.core.bundles.placement.transfer_checks import PlacementChecks
from controlplane.core.bundles.settings.managers import EXTENSIBLE_MANAGER
from controlplane.core.bundles.shedding.transfer import TransferMemory, TransferSettings, TransferShedder
from controlplane.core.bundles.shedding.transfer_view import ReportedBundle, TransferView

NODES = ("busy:1", "idle:1", "spare:1")
RULES = PlacementPolicies(
    IsolationPolicies((IsolationPolicy("p", ("t/isolated",), ("busy", "spare"), ()),)),
    {"t/grouped": "g", "t/other": "G", "t/blank": " "},
)
OWNERS = {f"t/{name}/{at}": "busy:1" for name in ("n", "isolated", "grouped") for at in range(2)}
CONTEXT = ExtensibleContext(
    dict.fromkeys(NODES, RegisteredNode("1.0.0", EXTENSIBLE_MANAGER)),
    {"spare:1": StoredLoad(0.5, 10)},
    {**OWNERS, "t/other/0": "idle:1"},
    RULES,
)
CHECKS = PlacementChecks(ExtensiblePlacement(LeastStoredUsage()), CONTEXT)
ALL = frozenset(NODES)


def test_only_the_owner_of_a_bundle_may_give_it_away() -> None:
    """A bundle that moves has no owner in the context."""
    assert CHECKS.owns("busy:1", "t/n/0")
    assert not CHECKS.owns("idle:1", "t/n/0")
    assert not CHECKS.owns("busy:1", "t/n/moving")


@pytest.mark.parametrize(
    ("namespace", "found"),
    [("t/isolated", True), ("t/grouped", True), ("t/other", True), ("t/blank", False), ("t/n", False)],
)
def test_policies_are_those_of_isolation_and_of_groups(namespace: str, found: bool) -> None:
    """A blank group is none."""
    assert CHECKS.has_policies(namespace) is found


def test_allowed_nodes_are_those_that_every_filter_of_the_selection_leaves() -> None:
    """Without a policy the shared nodes; with one its nodes; of a group the nodes that serve least of it."""
    assert CHECKS.allowed_nodes("t/n/0", ALL) == {"idle:1"}
    assert CHECKS.allowed_nodes("t/isolated/0", ALL) == {"busy:1", "spare:1"}
    assert CHECKS.allowed_nodes("t/isolated/0", frozenset({"busy:1", "idle:1"})) == {"busy:1"}
    assert CHECKS.allowed_nodes("t/grouped/0", ALL) == frozenset()
    full = replace(
        CHECKS, selection=ExtensiblePlacement(LeastStoredUsage(), ExtensiblePlacementSettings(max_topics=10))
    )
    assert full.allowed_nodes("t/isolated/0", ALL) == {"busy:1"}


def test_the_kind_of_topics_counts() -> None:
    """A bundle with a non-persistent topic goes to a node that serves such topics."""
    takes_none = RegisteredNode("1.0.0", EXTENSIBLE_MANAGER, takes_non_persistent_topics=False)
    context = replace(CONTEXT, registered={**CONTEXT.registered, "idle:1": takes_none})
    checks = replace(CHECKS, context=context, non_persistent=frozenset({"t/n/1"}))
    assert checks.allowed_nodes("t/n/0", ALL) == {"idle:1"}
    assert checks.allowed_nodes("t/n/1", ALL) == frozenset()


def test_a_filter_that_fails_forbids_the_transfer() -> None:
    """In a selection it is passed over."""
    settings = ExtensiblePlacementSettings(prefers_later_versions=True)
    registered = {**CONTEXT.registered, "spare:1": RegisteredNode("bad", EXTENSIBLE_MANAGER)}
    selection = ExtensiblePlacement(LeastStoredUsage(), settings)
    context = replace(CONTEXT, registered=registered)
    assert PlacementChecks(selection, context).allowed_nodes("t/n/0", ALL) is None


def test_a_shedder_transfers_what_the_checks_allow() -> None:
    """The bundles of isolated and grouped namespaces, and those of another owner, stay."""
    loads = {
        name: StoredLoad(usage, 0, usage * 100, usage * 100, 0)
        for name, usage in zip(NODES, (0.9, 0.1, 0.5), strict=True)
    }
    names = ("t/n/moving", "t/isolated/0", "t/grouped/0", "t/n/0", "t/n/1")
    top = {"busy:1": tuple(ReportedBundle(name, 10.0) for name in names)}
    shedder = TransferShedder(TransferSettings(hit_count=0))
    choices = shedder.shed(TransferView(loads, ALL, 0, CHECKS, top), TransferMemory()).choices
    assert [(each.bundle_id, each.destination) for each in choices] == [("t/n/0", "idle:1"), ("t/n/1", "idle:1")]
