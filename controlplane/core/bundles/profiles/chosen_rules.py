"""The rules that a composition chooses, made with its settings."""

from dataclasses import dataclass
from typing import Any, cast

from controlplane.core.bundles.placement.contract import NodeFilter, PlacementStrategy
from controlplane.core.bundles.placement.extensible import ExtensiblePlacement, ExtensiblePlacementSettings
from controlplane.core.bundles.placement.modular import ModularPlacement, ModularPlacementSettings
from controlplane.core.bundles.profiles.composition import Composition
from controlplane.core.bundles.settings.manager_settings import ManagerSettings, NamespaceSettings
from controlplane.core.bundles.settings.managers import Manager
from controlplane.core.bundles.shedding import plausible_loads
from controlplane.core.bundles.shedding.contract import Shedder
from controlplane.core.bundles.splitting.contract import SplitAlgorithm
from controlplane.core.bundles.splitting.named_algorithms import SplitAlgorithms


@dataclass(frozen=True, slots=True)
class ChosenRules:
    """The rules of a composition. The views and memories are those of its load manager.

    Attributes:
        manager: the load manager.
        shedder: the rule for shedding.
        selection: the selection of a node for a bundle: the placement strategy, the manager's filters, and users' own
            filters in the order in which they are asked.
        shares_memory: the shedder and the placement strategy have one memory: each starts from what the other left.
        split_algorithms: the algorithms that a split may name, by the names in the settings.
    """

    manager: Manager
    shedder: Shedder[Any, Any]
    selection: ModularPlacement[Any] | ExtensiblePlacement[Any]
    shares_memory: bool
    split_algorithms: SplitAlgorithms


def chosen_rules(composition: Composition) -> ChosenRules:
    """The rules of a composition.

    Raises:
        ConfigurationError: a rule refuses its settings.
    """
    namespaces = composition.settings(NamespaceSettings)
    algorithms = {
        name: cast("SplitAlgorithm", composition.make(rule))
        for name, rule in zip(namespaces.split_algorithms, composition.split_rules, strict=True)
    }
    return ChosenRules(
        composition.manager,
        _shedder(composition),
        _selection(composition),
        composition.shedder_rule.needs_partner,
        SplitAlgorithms(algorithms, namespaces.split_algorithm),
    )


def _shedder(composition: Composition) -> Shedder[Any, Any]:
    shedder = cast("Shedder[Any, Any]", composition.make(composition.shedder_rule))
    if composition.settings(ManagerSettings).sheds_on_implausible_loads:
        return shedder
    is_modular = composition.manager is Manager.MODULAR
    return plausible_loads.modular(shedder) if is_modular else plausible_loads.extensible(shedder)


def _selection(composition: Composition) -> ModularPlacement[Any] | ExtensiblePlacement[Any]:
    strategy = cast("PlacementStrategy[Any, Any]", composition.make(composition.placement_rule))
    filters = tuple(cast("NodeFilter[Any]", composition.make(rule)) for rule in composition.filter_rules)
    if composition.manager is Manager.MODULAR:
        return ModularPlacement(strategy, composition.settings(ModularPlacementSettings), filters)
    return ExtensiblePlacement(strategy, composition.settings(ExtensiblePlacementSettings), filters)
