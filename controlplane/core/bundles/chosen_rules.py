"""The rules that a composition chooses, made with its settings."""

from dataclasses import dataclass
from typing import Any, cast

from controlplane.core.bundles.load.manager_settings import ManagerSettings, NamespaceSettings
from controlplane.core.bundles.placement.contract import NodeFilter, PlacementStrategy
from controlplane.core.bundles.placement.extensible import ExtensiblePlacement, ExtensiblePlacementSettings
from controlplane.core.bundles.placement.modular import ModularPlacement, ModularPlacementSettings
from controlplane.core.bundles.profiles import Composition
from controlplane.core.bundles.rule_registry import Manager
from controlplane.core.bundles.shedding import plausible_loads
from controlplane.core.bundles.shedding.contract import Shedder
from controlplane.core.bundles.splitting.contract import SplitAlgorithm
from controlplane.core.bundles.splitting.lookup import SplitAlgorithms


@dataclass(frozen=True, slots=True)
class ChosenRules:
    """The rules of a composition. The views and memories are those of its load manager.

    Attributes:
        shedder: the rule for shedding.
        placement: the rule for placement.
        node_filters: users' own filters, in the order in which they are asked.
        split_algorithms: the algorithms that a split may name, by the names in the settings.
    """

    shedder: Shedder[Any, Any]
    placement: PlacementStrategy[Any, Any]
    node_filters: tuple[NodeFilter[Any], ...]
    split_algorithms: SplitAlgorithms


def chosen_rules(composition: Composition) -> ChosenRules:
    """The rules of a composition.

    Raises:
        ConfigurationError: a rule is known by name only, or refuses its settings.
    """
    namespaces = composition.settings(NamespaceSettings)
    algorithms = {
        name: cast("SplitAlgorithm", composition.make(rule))
        for name, rule in zip(namespaces.split_algorithms, composition.split_rules, strict=True)
    }
    shedder = cast("Shedder[Any, Any]", composition.make(composition.shedder_rule))
    if not composition.settings(ManagerSettings).sheds_on_implausible_loads:
        is_modular = composition.manager is Manager.MODULAR
        shedder = plausible_loads.modular(shedder) if is_modular else plausible_loads.extensible(shedder)
    return ChosenRules(
        shedder,
        cast("PlacementStrategy[Any, Any]", composition.make(composition.placement_rule)),
        tuple(cast("NodeFilter[Any]", composition.make(rule)) for rule in composition.filter_rules),
        SplitAlgorithms(algorithms, namespaces.split_algorithm),
    )


def selection_of(composition: Composition) -> ModularPlacement[Any] | ExtensiblePlacement[Any]:
    """The selection of nodes with the placement strategy and the filters of a composition.

    Raises:
        ConfigurationError: a rule is known by name only, or refuses its settings.
    """
    chosen = chosen_rules(composition)
    if composition.manager is Manager.MODULAR:
        modular = composition.settings(ModularPlacementSettings)
        return ModularPlacement(chosen.placement, modular, chosen.node_filters)
    extensible = composition.settings(ExtensiblePlacementSettings)
    return ExtensiblePlacement(chosen.placement, extensible, chosen.node_filters)
