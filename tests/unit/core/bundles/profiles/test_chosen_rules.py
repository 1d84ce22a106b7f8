"""The rules that a profile chooses, made with its settings."""

import math
from dataclasses import replace

import pytest

from controlplane.core.bundles.load.stored_load import StoredLoad
from controlplane.core.bundles.load.view import LoadView
from controlplane.core.bundles.profiles.chosen_rules import chosen_rules
from controlplane.core.bundles.profiles.composition import compose
from controlplane.core.bundles.profiles.values import (
    CONTROLPLANE,
    PULSAR_4_2_EXTENSIBLE,
    PULSAR_4_2_MODULAR,
    PULSAR_4_X_AVG,
)
from controlplane.core.bundles.shedding.contract import SkipReason
from controlplane.core.bundles.shedding.transfer_view import TransferView
from tests.helpers.load_views import bundle_history, loaded_node, traffic, view_of

HISTORIES = {"t/n/a": bundle_history(60), "t/n/b": bundle_history(40)}
BUSY = loaded_node("busy", 95, traffic(100), "t/n/a", "t/n/b")
IDLE = loaded_node("idle", 5, traffic(1))


def broken(view: LoadView) -> LoadView:
    """The view with a third node whose processor's usage is not a number."""
    third = loaded_node("broken", math.nan, traffic(1), "t/n/c")
    return replace(view, nodes={**view.nodes, "broken": third})


def test_our_own_policy_sheds_as_if_a_node_with_an_implausible_load_had_not_reported() -> None:
    """Under Pulsar's profile the node counts as idle, and the mean of all nodes falls."""
    view = view_of(BUSY, IDLE, bundles={**HISTORIES, "t/n/c": bundle_history(1)})
    own = chosen_rules(compose(CONTROLPLANE)).shedder
    shedding = own.shed(broken(view), own.first_memory)
    assert shedding.choices == own.shed(view, own.first_memory).choices != ()
    assert shedding.figures == {"mean_usage": 0.5}
    assert (shedding.skips[0].reason, shedding.skips[0].node_id) == (SkipReason.IMPLAUSIBLE_LOAD, "broken")
    assert shedding.skips[0].evidence[0].name == "cpu"
    pulsar = chosen_rules(compose(PULSAR_4_2_MODULAR)).shedder
    assert pulsar.shed(broken(view), pulsar.first_memory).figures == {"mean_usage": 1 / 3}


def test_a_bundle_with_implausible_averages_stays_where_it_is() -> None:
    """Its sample is named."""
    view = view_of(BUSY, IDLE, bundles={**HISTORIES, "t/n/a": bundle_history(math.inf)})
    own = chosen_rules(compose(CONTROLPLANE)).shedder
    shedding = own.shed(view, own.first_memory)
    assert shedding.bundles_by_node() == {"busy": ["t/n/b"]}
    assert shedding.skips[0].bundle_id == "t/n/a"


def test_the_same_under_the_extensible_manager() -> None:
    """A registered node without a load ends the cycle, so an implausible one does."""
    composition = compose(
        CONTROLPLANE,
        {
            "loadManagerClassName": "ExtensibleLoadManagerImpl",
            "loadBalancerLoadSheddingStrategy": "TransferShedder",
            "loadBalancerLoadPlacementStrategy": (
                "org.apache.pulsar.broker.loadbalance.extensions.strategy.LeastResourceUsageWithWeight"
            ),
        },
    )
    own = chosen_rules(composition).shedder
    loads = {"a": StoredLoad(0.5), "b": StoredLoad(math.nan)}
    shedding = own.shed(TransferView(loads, frozenset(loads), 0, None), own.first_memory)
    assert [skip.reason for skip in shedding.skips] == [SkipReason.IMPLAUSIBLE_LOAD, SkipReason.NO_LOAD]


@pytest.mark.parametrize("profile", [CONTROLPLANE, PULSAR_4_2_MODULAR, PULSAR_4_2_EXTENSIBLE])
def test_the_filter_keeps_the_name_and_the_memory_of_its_rule(profile: str) -> None:
    """Decisions refer to the rule."""
    composition = compose(profile)
    rules = chosen_rules(composition)
    assert rules.shedder.name == composition.shedder_rule.short_name
    assert rules.shedder.retain(rules.shedder.first_memory, frozenset()) == rules.shedder.first_memory
    assert rules.manager is composition.manager
    assert rules.selection.strategy.name == composition.placement_rule.short_name
    assert not rules.shares_memory


def test_one_rule_in_both_roles_has_one_memory() -> None:
    """What AvgShedder plans when it sheds is what it looks up when it places."""
    rules = chosen_rules(compose(PULSAR_4_X_AVG))
    assert rules.shares_memory
    assert rules.selection.strategy.first_memory == rules.shedder.first_memory
