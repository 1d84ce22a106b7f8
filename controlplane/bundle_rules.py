"""The names with which users write and try rules for bundles: see ``docs/how-to/write-a-bundle-rule.md``.

class Mine:
    name = "Mine"
    first_memory = None
    def shed(self, view, memory): return Shedding(choices, memory)
    def retain(self, memory, active): return memory
    def after_unload(self, memory, choice, outcome, now_ms): return memory

BUNDLE_RULES = (BundleRule(RuleKind.SHEDDER, Mine),)
"""

from controlplane.bootstrap.bundle_rules import load_bundle_rules
from controlplane.core.bundles.load.averages import (
    UNSEEN_BUNDLE,
    BundleAverages,
    MessageLoad,
    NodeAverages,
    TimeAverage,
)
from controlplane.core.bundles.load.leader_fold import LeaderLoads
from controlplane.core.bundles.load.resource_usage import ResourceWeights, weighted_usage
from controlplane.core.bundles.load.stored_load import StoredLoad
from controlplane.core.bundles.load.view import BundleHistory, LoadView, NodeLoad, NodeView
from controlplane.core.bundles.placement.context import (
    ExtensibleContext,
    ModularContext,
    NodeFacts,
    RegisteredNode,
    modular_context,
)
from controlplane.core.bundles.placement.contract import (
    BundleToPlace,
    Dropped,
    Filtering,
    MissingLoadError,
    NodeFilter,
    PlacementStrategy,
    Selection,
)
from controlplane.core.bundles.profiles.chosen_rules import ChosenRules, chosen_rules
from controlplane.core.bundles.profiles.composition import Composition, compose
from controlplane.core.bundles.profiles.registry import Registry, RuleKind
from controlplane.core.bundles.profiles.user_rules import BundleRule
from controlplane.core.bundles.ranges import HashRange
from controlplane.core.bundles.reports import BundleLoad, ResourceUsage
from controlplane.core.bundles.settings.allowed import Allowed
from controlplane.core.bundles.settings.knobs import knob
from controlplane.core.bundles.settings.managers import Manager
from controlplane.core.bundles.shedding.contract import (
    Evidence,
    ShedChoice,
    Shedder,
    Shedding,
    ShedReason,
    Skip,
    SkipReason,
    UnloadOutcome,
)
from controlplane.core.bundles.shedding.transfer_view import ReportedBundle, TransferView
from controlplane.core.bundles.splitting.contract import SplitAlgorithm, SplitPositions, SplitRequest

__all__ = [
    "UNSEEN_BUNDLE",
    "Allowed",
    "BundleAverages",
    "BundleHistory",
    "BundleLoad",
    "BundleRule",
    "BundleToPlace",
    "ChosenRules",
    "Composition",
    "Dropped",
    "Evidence",
    "ExtensibleContext",
    "Filtering",
    "HashRange",
    "LeaderLoads",
    "LoadView",
    "Manager",
    "MessageLoad",
    "MissingLoadError",
    "ModularContext",
    "NodeAverages",
    "NodeFacts",
    "NodeFilter",
    "NodeLoad",
    "NodeView",
    "PlacementStrategy",
    "RegisteredNode",
    "Registry",
    "ReportedBundle",
    "ResourceUsage",
    "ResourceWeights",
    "RuleKind",
    "Selection",
    "ShedChoice",
    "ShedReason",
    "Shedder",
    "Shedding",
    "Skip",
    "SkipReason",
    "SplitAlgorithm",
    "SplitPositions",
    "SplitRequest",
    "StoredLoad",
    "TimeAverage",
    "TransferView",
    "UnloadOutcome",
    "chosen_rules",
    "compose",
    "knob",
    "load_bundle_rules",
    "modular_context",
    "weighted_usage",
]
