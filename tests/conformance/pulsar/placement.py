"""Operations of placement: strategies, filters, isolation, anti-affinity and the modular assignment."""

from collections.abc import Mapping
from typing import Final

from controlplane.core.bundles.load.averages import UNSEEN_BUNDLE
from controlplane.core.bundles.load.leader_fold import LeaderLoads
from controlplane.core.bundles.load.stored_load import StoredLoad
from controlplane.core.bundles.load.view import BundleHistory, LoadView
from controlplane.core.bundles.ownership_state import OwnershipState
from controlplane.core.bundles.placement.anti_affinity import AntiAffinityFilter, allows_unload, anti_affinity_counts
from controlplane.core.bundles.placement.assignment import assign
from controlplane.core.bundles.placement.context import (
    ExtensibleContext,
    ModularContext,
    NodeFacts,
    PlacementPolicies,
    modular_context,
)
from controlplane.core.bundles.placement.contract import BundleToPlace, MissingLoadError
from controlplane.core.bundles.placement.extensible import ExtensiblePlacementSettings
from controlplane.core.bundles.placement.filters import EvenDistributionFilter, TopicCountFilter
from controlplane.core.bundles.placement.modular import ModularPlacement, ModularPlacementSettings
from controlplane.core.bundles.placement.round_robin import RoundRobinMemory
from controlplane.core.bundles.placement.served import served_bundles
from tests.conformance.pulsar.numbers import number
from tests.conformance.pulsar.settings import EXTENSIBLE, placement, settings
from tests.conformance.pulsar.translation import Document, isolation_policies, load_view, nodes

ERRORS: Final = {MissingLoadError: "NullPointerException"}
_UNSEEN: Final = BundleHistory(UNSEEN_BUNDLE)
_NO_BUNDLE: Final = BundleToPlace("t/n/0x00000000_0xffffffff", _UNSEEN)
_STRATEGIES: Final = {"long_term": "LeastLongTermMessageRate", "least_resource": "LeastResourceUsageWithWeight"}


def select_least_long_term(given: Document) -> object:
    """The least message rate."""
    strategy = placement("LeastLongTermMessageRate", given)
    chosen = strategy.select(_NO_BUNDLE, given["candidates"], LoadView(nodes(given["brokers"])), None)
    return {"best": sorted(chosen.best), "scores": chosen.scores}


def least_resource_usage(given: Document) -> object:
    """The least usage, smoothed by the strategy."""
    strategy = placement("LeastResourceUsageWithWeight", given)
    memory, view = strategy.first_memory, LoadView({})
    answers = []
    for call in given["calls"]:
        if "brokers" in call:
            view = LoadView(nodes(call["brokers"]))
        if "active" in call:
            memory = strategy.retain(memory, frozenset(call["active"]))
        chosen = strategy.select(_NO_BUNDLE, call["candidates"], view, memory)
        memory = chosen.memory
        answers.append({"best": sorted(chosen.best), "ema": memory})
    return {"calls": answers}


def ext_least_resource(given: Document) -> object:
    """The least usage, as nodes stored it."""
    loads = {
        each["name"]: StoredLoad(number(each["ema"])) for each in given["brokers"] if not each.get("no_load", False)
    }
    strategy = placement("LeastResourceUsageWithWeight", given, EXTENSIBLE)
    chosen = strategy.select(_NO_BUNDLE, given["candidates"], ExtensibleContext({}, loads), None)
    return {"best": sorted(chosen.best)}


def round_robin(given: Document) -> object:
    """One node after the other."""
    strategy, memory = placement("RoundRobinBrokerSelector", given), RoundRobinMemory(given.get("start", 0))
    answers = []
    for candidates in given["calls"]:
        chosen = strategy.select(_NO_BUNDLE, candidates, None, memory)
        memory = chosen.memory
        answers.append(chosen.pick(0.0))
    return answers


def even_bundles(given: Document) -> object:
    """The nodes with the fewest bundles of the namespace."""
    context = ModularContext(LeaderLoads(), (), served_bundles(given["owned"]))
    return sorted(EvenDistributionFilter().keep(to_place(given["bundle"]), given["candidates"], context).kept)


def topic_count_filter(given: Document) -> object:
    """The nodes without too many topics."""
    context = modular_context(LeaderLoads(nodes(given["brokers"])), ())
    return sorted(TopicCountFilter(given["max"]).keep(_NO_BUNDLE, given["candidates"], context).kept)


def to_place(bundle_id: str) -> BundleToPlace:
    """A bundle without history."""
    return BundleToPlace(bundle_id, _UNSEEN)


def placement_rules(given: Document) -> PlacementPolicies:
    """Recorded policies, groups and domains."""
    return PlacementPolicies(
        isolation_policies(given.get("policies")), given.get("groups") or {}, given.get("domains") or {}
    )


def isolation(given: Document) -> object:
    """The nodes that the isolation policies allow."""
    brokers = given["brokers"]
    off, non_persistent_off = given.get("persistent_off", ()), given.get("non_persistent_off", ())
    view = nodes(
        [
            {"name": name, "persistent": name not in off, "non_persistent": name not in non_persistent_off}
            for name in brokers
        ]
    )
    rules = placement_rules(given)
    namespace = given["namespace"]
    bundle = BundleToPlace(f"{namespace}/0x00000000_0xffffffff", _UNSEEN, given["non_persistent"])
    rule = ModularPlacement(placement("LeastLongTermMessageRate", given), settings(ModularPlacementSettings, given))
    kept = rule.allowed(bundle, modular_context(LeaderLoads(view), brokers, rules)).kept
    return {
        "candidates": sorted({*kept, *given.get("existing", ())}),
        "candidates_async": sorted(kept),
        "has_policy": rules.isolation.of(namespace) is not None,
        "role": {name: rules.isolation.role(namespace, name).value for name in brokers},
    }


def _spread(given: Document, context: NodeFacts, *, uses_domains: bool) -> tuple[list[str], Mapping[str, int] | None]:
    bundle = to_place(given["bundle"])
    chosen = AntiAffinityFilter(uses_domains).keep(bundle, given["candidates"], context)
    return sorted(chosen.kept), anti_affinity_counts(bundle.namespace, context)


def anti_affinity(given: Document) -> object:
    """The nodes with the fewest namespaces of the group."""
    context = ModularContext(LeaderLoads(), (), served_bundles(given["owned"]), placement_rules(given))
    rule = settings(ModularPlacementSettings, given)
    kept, counts = _spread(given, context, uses_domains=rule.uses_domains)
    unload = {name: allows_unload(counts, name, given["candidates"]) for name in given["candidates"]}
    return {"candidates": kept, "unload": unload, "counts": counts}


def anti_affinity_ext(given: Document) -> object:
    """The nodes with the fewest owned bundles of the group."""
    owners = {
        bundle_id: owner
        for bundle_id, (state, owner, _) in given["ownership"].items()
        if OwnershipState(state) is OwnershipState.OWNED
    }
    rule = settings(ExtensiblePlacementSettings, given, EXTENSIBLE)
    context = ExtensibleContext({}, {}, owners, placement_rules(given))
    kept, counts = _spread(given, context, uses_domains=rule.uses_domains)
    return {"candidates": kept, "counts": counts}


def assignments(given: Document) -> object:
    """Assignments one after the other. The recorded random pick is the first name of the best set."""
    rule = ModularPlacement(placement(_STRATEGIES[given["strategy"]], given), settings(ModularPlacementSettings, given))
    view = load_view(given["brokers"], given["bundles"])
    available = sorted(view.nodes.keys() - {*given["unavailable"]})
    loads = LeaderLoads(view.nodes, view.bundles)
    context = ModularContext(loads, available, served_bundles(given["owned"]), placement_rules(given))
    memory = rule.first_memory
    answers = []
    for each in given["assign"]:
        bundle_id, non_persistent = (each, False) if isinstance(each, str) else each
        bundle = BundleToPlace(bundle_id, view.bundles.get(bundle_id, _UNSEEN), non_persistent)
        assigned = assign(rule, bundle, context, memory, (0.0, 0.0))
        memory, context = assigned.memory, assigned.context
        picks = () if assigned.placement is None else assigned.placement.picks
        answers.append(
            {
                "bundle": bundle_id,
                "broker": assigned.node_id,
                "picks": [
                    {"candidates": list(pick.candidates), "best": list(pick.best)}
                    for pick in picks
                    if pick.strategy == rule.strategy.name
                ],
            }
        )
    return answers


OPERATIONS: Final = {
    "select_least_long_term": select_least_long_term,
    "least_resource_usage": least_resource_usage,
    "ext_least_resource": ext_least_resource,
    "round_robin": round_robin,
    "even_bundles": even_bundles,
    "topic_count_filter": topic_count_filter,
    "isolation": isolation,
    "anti_affinity": anti_affinity,
    "anti_affinity_ext": anti_affinity_ext,
    "assign": assignments,
}
