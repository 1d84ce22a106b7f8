"""Operations of placement: strategies, filters, isolation, anti-affinity and the modular assignment."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeVar

from controlplane.core.bundles.load.averages import UNSEEN_BUNDLE
from controlplane.core.bundles.load.knobs import with_knobs
from controlplane.core.bundles.load.resource_usage import ResourceWeights
from controlplane.core.bundles.load.stored_load import StoredLoad
from controlplane.core.bundles.load.view import BundleHistory, LoadView, NodeLoad, NodeView
from controlplane.core.bundles.placement.anti_affinity import AntiAffinityFilter, allows_unload, anti_affinity_counts
from controlplane.core.bundles.placement.context import (
    ExtensibleContext,
    ModularContext,
    NodeFacts,
    PlacementRules,
    modular_context,
)
from controlplane.core.bundles.placement.contract import BundleToPlace, MissingLoadError
from controlplane.core.bundles.placement.filters import EvenDistributionFilter, TopicCountFilter
from controlplane.core.bundles.placement.isolation import IsolationFilter, IsolationPolicies, IsolationPolicy
from controlplane.core.bundles.placement.least_message_rate import LeastMessageRate, LeastMessageRateSettings
from controlplane.core.bundles.placement.least_resource_usage import (
    LeastResourceUsage,
    LeastResourceUsageSettings,
    LeastStoredUsage,
)
from controlplane.core.bundles.placement.modular import ModularPlacement, ModularPlacementSettings, assign
from controlplane.core.bundles.placement.round_robin import RoundRobin, RoundRobinMemory
from controlplane.core.bundles.placement.served import served_bundles
from tests.conformance.pulsar.numbers import number
from tests.conformance.pulsar.translation import Document, load_view, nodes

S = TypeVar("S", LeastMessageRateSettings, LeastResourceUsageSettings, ModularPlacementSettings)
ERRORS: Final = {MissingLoadError: "NullPointerException"}
_UNSEEN: Final = BundleHistory(UNSEEN_BUNDLE)
_NO_BUNDLE: Final = BundleToPlace("t/n/0x00000000_0xffffffff", _UNSEEN)
_OWNED: Final = "Owned"


def weights(conf: Document) -> ResourceWeights:
    """The resource weights; a bandwidth's misspelt former knob counts where the new one has its default."""

    def bandwidth(direction: str) -> float:
        new = number(conf.get(f"loadBalancerBandwidth{direction}ResourceWeight", 1.0))
        return new if new != 1.0 else number(conf.get(f"loadBalancerBandwith{direction}ResourceWeight", 1.0))

    return ResourceWeights(
        number(conf.get("loadBalancerCPUResourceWeight", 1.0)),
        number(conf.get("loadBalancerDirectMemoryResourceWeight", 0.0)),
        bandwidth("In"),
        bandwidth("Out"),
    )


def configured(settings: S, conf: Document) -> S:
    """Settings with the recorded overrides, those of the weights included."""
    return replace(with_knobs(settings, conf), weights=weights(conf))


def select_least_long_term(given: Document) -> object:
    """The least message rate."""
    strategy = LeastMessageRate(configured(LeastMessageRateSettings(), given["conf"]))
    chosen = strategy.select(_NO_BUNDLE, given["candidates"], LoadView(nodes(given["brokers"])), None)
    return {"best": sorted(chosen.best), "scores": chosen.scores}


def least_resource_usage(given: Document) -> object:
    """The least usage, smoothed by the strategy."""
    strategy = LeastResourceUsage(configured(LeastResourceUsageSettings(), given["conf"]))
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
    strategy = LeastStoredUsage(with_knobs(LeastResourceUsageSettings(), given["conf"]))
    chosen = strategy.select(_NO_BUNDLE, given["candidates"], ExtensibleContext({}, loads), None)
    return {"best": sorted(chosen.best)}


def round_robin(given: Document) -> object:
    """One node after the other."""
    strategy, memory = RoundRobin(), RoundRobinMemory(given.get("start", 0))
    answers = []
    for candidates in given["calls"]:
        chosen = strategy.select(_NO_BUNDLE, candidates, None, memory)
        memory = chosen.memory
        answers.append(chosen.pick(0.0))
    return answers


def even_bundles(given: Document) -> object:
    """The nodes with the fewest bundles of the namespace."""
    context = ModularContext(LoadView({}), (), served_bundles(given["owned"]))
    return sorted(EvenDistributionFilter().keep(to_place(given["bundle"]), given["candidates"], context).kept)


def topic_count_filter(given: Document) -> object:
    """The nodes without too many topics."""
    context = modular_context(LoadView(nodes(given["brokers"])), ())
    return sorted(TopicCountFilter(given["max"]).keep(_NO_BUNDLE, given["candidates"], context).kept)


def to_place(bundle_id: str) -> BundleToPlace:
    """A bundle without history."""
    return BundleToPlace(bundle_id, _UNSEEN)


def isolation_policies(given: Sequence[Document] | None) -> IsolationPolicies:
    """Recorded policies; null is none."""
    return IsolationPolicies(
        tuple(
            IsolationPolicy(
                each["name"],
                tuple(each["namespaces"]),
                tuple(each["primary"]),
                tuple(each["secondary"]),
                int(each["min_limit"]),
            )
            for each in given or ()
        )
    )


def placement_rules(given: Document) -> PlacementRules:
    """Recorded policies, groups and domains."""
    return PlacementRules(
        isolation_policies(given.get("policies")), given.get("groups") or {}, given.get("domains") or {}
    )


def isolation(given: Document) -> object:
    """The nodes that the isolation policies allow."""
    off, non_persistent_off = frozenset(given.get("persistent_off", ())), frozenset(given.get("non_persistent_off", ()))
    brokers = given["brokers"]
    view = {
        name: NodeView(
            NodeLoad(
                name,
                takes_persistent_topics=name not in off,
                takes_non_persistent_topics=name not in non_persistent_off,
            )
        )
        for name in brokers
    }
    rules = placement_rules(given)
    namespace = given["namespace"]
    bundle = BundleToPlace(f"{namespace}/0x00000000_0xffffffff", _UNSEEN, given["non_persistent"])
    kept = IsolationFilter().keep(bundle, brokers, modular_context(LoadView(view), brokers, rules)).kept
    return {
        "candidates": sorted({*kept, *given.get("existing", ())}),
        "candidates_async": sorted(kept),
        "has_policy": rules.isolation.of(namespace) is not None,
        "role": {name: rules.isolation.role(namespace, name).value for name in brokers},
    }


def _spread(given: Document, context: NodeFacts) -> tuple[list[str], Mapping[str, int] | None]:
    bundle = to_place(given["bundle"])
    chosen = with_knobs(AntiAffinityFilter(), given["conf"]).keep(bundle, given["candidates"], context)
    return sorted(chosen.kept), anti_affinity_counts(bundle.namespace, context)


def anti_affinity(given: Document) -> object:
    """The nodes with the fewest namespaces of the group."""
    context = ModularContext(LoadView({}), (), served_bundles(given["owned"]), placement_rules(given))
    kept, counts = _spread(given, context)
    unload = {name: allows_unload(counts, name, given["candidates"]) for name in given["candidates"]}
    return {"candidates": kept, "unload": unload, "counts": counts}


def anti_affinity_ext(given: Document) -> object:
    """The nodes with the fewest owned bundles of the group."""
    owners = {bundle_id: owner for bundle_id, (state, owner, _) in given["ownership"].items() if state == _OWNED}
    kept, counts = _spread(given, ExtensibleContext({}, {}, owners, placement_rules(given)))
    return {"candidates": kept, "counts": counts}


def assignments(given: Document) -> object:
    """Assignments one after the other. The recorded random pick is the first name of the best set."""
    settings = configured(ModularPlacementSettings(), given["conf"])
    if given["strategy"] == "long_term":
        return _assign(
            given, ModularPlacement(LeastMessageRate(configured(LeastMessageRateSettings(), given["conf"])), settings)
        )
    return _assign(
        given, ModularPlacement(LeastResourceUsage(configured(LeastResourceUsageSettings(), given["conf"])), settings)
    )


def _assign(given: Document, rule: ModularPlacement[Any]) -> object:
    view = load_view(given["brokers"], given["bundles"])
    available = sorted(view.nodes.keys() - {*given["unavailable"]})
    context = ModularContext(view, available, served_bundles(given["owned"]), placement_rules(given))
    memory, preallocated = rule.first_memory, dict[str, str]()
    answers = []
    for each in given["assign"]:
        bundle_id, non_persistent = (each, False) if isinstance(each, str) else each
        bundle = BundleToPlace(bundle_id, view.bundles.get(bundle_id, _UNSEEN), non_persistent)
        assigned = assign(rule, bundle, context, preallocated, memory, (0.0, 0.0))
        memory, context = assigned.memory, assigned.context
        if assigned.node_id is not None:
            preallocated[bundle_id] = assigned.node_id
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
