"""Operations of the shedders."""

from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from controlplane.core.bundles.load.stored_load import StoredLoad
from controlplane.core.bundles.load.view import LoadView
from controlplane.core.bundles.shedding.avg_shedder import AvgShedder
from controlplane.core.bundles.shedding.avg_shedder_plan import AvgShedderMemory
from controlplane.core.bundles.shedding.contract import Shedder, Shedding, ShedReason, SkipReason
from controlplane.core.bundles.shedding.overload import OverloadShedder
from controlplane.core.bundles.shedding.threshold import ThresholdMemory
from controlplane.core.bundles.shedding.transfer import (
    DEVIATION,
    DEVIATION_AFTER,
    MEAN_LOAD,
    TransferMemory,
)
from controlplane.core.bundles.shedding.transfer_view import ReportedBundle, TransferView
from tests.conformance.pulsar.numbers import number
from tests.conformance.pulsar.settings import EXTENSIBLE, shedder
from tests.conformance.pulsar.translation import NOW_MS, Document, history, nodes

M = TypeVar("M")
_REASONS: Final = {ShedReason.OVERLOADED: "Overloaded", ShedReason.UNDERLOADED: "Underloaded"}
_SKIPS: Final = {
    SkipReason.HIT_COUNT: "HitCount",
    SkipReason.NO_BUNDLES: "NoBundles",
    SkipReason.COOL_DOWN: "CoolDown",
    SkipReason.OUTDATED_LOAD: "OutDatedData",
    SkipReason.NO_LOAD: "NoLoadData",
    SkipReason.NO_NODES: "NoBrokers",
}


def views(given: Document) -> Iterator[tuple[LoadView, list[str] | None]]:
    """The view of each call, and the active nodes if they are told before it."""
    view = LoadView({})
    for tick in given["ticks"]:
        recent = frozenset(tick.get("recent", ()))
        known = {each["name"]: history(each) for each in tick["bundles"]} if "bundles" in tick else view.bundles
        view = LoadView(nodes(tick["brokers"]) if "brokers" in tick else view.nodes, known, recent)
        for call in range(tick.get("times", 1)):
            yield view, tick.get("active") if call == 0 else None


def run(rule: Shedder[LoadView, M], given: Document, describe: Callable[[LoadView, Shedding[M]], Document]) -> Document:
    """The calls of a rule one after the other; ``describe`` adds what a rule shows besides its choices."""
    memory = rule.first_memory
    calls = []
    for view, active in views(given):
        if active is not None:
            memory = rule.retain(memory, frozenset(active))
        shedding = rule.shed(view, memory)
        memory = shedding.memory
        calls.append({"unload": shedding.bundles_by_node(), **describe(view, shedding)})
    return {"calls": calls}


def threshold_shed(given: Document) -> Document:
    """ThresholdShedder."""

    def describe(_view: LoadView, shedding: Shedding[ThresholdMemory]) -> Document:
        return {"ema": shedding.memory.smoothed_usages}

    return run(shedder("ThresholdShedder", given), given, describe)


def overload_shed(given: Document) -> Document:
    """OverloadShedder."""
    rule = shedder("OverloadShedder", given)
    assert isinstance(rule, OverloadShedder)

    def describe(view: LoadView, _shedding: Shedding[None]) -> Document:
        return {"usage": {name: rule.usage(node.load) for name, node in view.nodes.items()}}

    return run(rule, given, describe)


def uniform_shed(given: Document) -> Document:
    """UniformLoadShedder."""
    return run(shedder("UniformLoadShedder", given), given, lambda _view, _shedding: {})


def avg_shed(given: Document) -> Document:
    """AvgShedder, which has to be the placement as well."""
    rule = shedder("AvgShedder", given, loadBalancerLoadPlacementStrategy="AvgShedder")
    assert isinstance(rule, AvgShedder)

    def describe(view: LoadView, shedding: Shedding[AvgShedderMemory]) -> Document:
        chosen = {choice.bundle_id for choice in shedding.choices}
        return {
            "scores": rule.scores(view),
            "hits_high": shedding.memory.high_hits,
            "hits_low": shedding.memory.low_hits,
            "plan": {name: planned_node_id(rule, name, view, shedding.memory) for name in chosen},
        }

    return run(rule, given, describe)


def planned_node_id(shedder: AvgShedder, bundle_id: str, view: LoadView, memory: AvgShedderMemory) -> str | None:
    """The node that the memory plans for a bundle."""
    planned = shedder.planned(bundle_id, view, memory)
    return None if planned is None else planned.node_id


@dataclass(frozen=True)
class RecordedChecks:
    """The answers of owners, policies and filters, as the recorded input gives them.

    Attributes:
        not_owned: bundles that their node does not own.
        with_policies: namespaces to which a policy or a group applies.
        kept: by bundle, what the filters left of the nodes; None for a failure. Other bundles may go to every node.
    """

    not_owned: frozenset[str]
    with_policies: frozenset[str]
    kept: Mapping[str, frozenset[str] | None]

    def owns(self, node_id: str, bundle_id: str) -> bool:
        """Whether the ownership channel says so."""
        del node_id
        return bundle_id not in self.not_owned

    def has_policies(self, namespace: str) -> bool:
        """Whether it is named."""
        return namespace in self.with_policies

    def allowed_nodes(self, bundle_id: str, nodes: AbstractSet[str]) -> AbstractSet[str] | None:
        """What is recorded; a filter gets and leaves only nodes that are asked for."""
        kept = self.kept.get(bundle_id, frozenset(nodes))
        return None if kept is None else kept & nodes


def _checks(given: Document) -> RecordedChecks | None:
    """A text in the place of a bundle's nodes stands for the failure of a filter."""
    if not given.get("policies"):
        return None
    return RecordedChecks(
        frozenset(given["not_owned"]),
        frozenset((*given["isolation_namespaces"], *given["anti_affinity_namespaces"])),
        {name: None if isinstance(kept, str) else frozenset(kept) for name, kept in given["allowed"].items()},
    )


def _smoothed(given: Document) -> StoredLoad:
    throughput = number(given["ti"]) + number(given["to"])
    updated_at_ms = NOW_MS - given.get("age_ms", 0)
    return StoredLoad(number(given["ema"]), 0, number(given["thr_ema"]), throughput, updated_at_ms)


def _transfer_view(given: Document, brokers: list[Document]) -> TransferView:
    return TransferView(
        loads={each["name"]: _smoothed(each) for each in brokers if not each.get("no_load")},
        registered=frozenset(each["name"] for each in brokers if not each.get("unregistered")),
        top_bundles={
            each["name"]: tuple(ReportedBundle(name, number(ti) + number(to)) for name, ti, to in each["top"])
            for each in brokers
            if "top" in each
        },
        now_ms=NOW_MS,
        recently_unloaded=frozenset(given.get("recent_bundles", ())),
        checks=_checks(given),
    )


def transfer_shed(given: Document) -> Document:
    """TransferShedder."""
    rule = shedder("TransferShedder", given, EXTENSIBLE)
    memory, mean, deviation = rule.first_memory, 0.0, 0.0
    calls: list[Document] = []
    brokers: list[Document] = []
    for tick in given["ticks"]:
        brokers = tick.get("brokers", brokers)
        view = _transfer_view(given, brokers)
        # Also of a broker whose load is not stored.
        ages = {each["name"]: each.get("age_ms", 0) for each in brokers}
        rested = {
            name: NOW_MS - ages.get(name, 0) - elapsed for name, elapsed in tick.get("recent_brokers", {}).items()
        }
        memory = TransferMemory(memory.condition_hits, rested)
        for _ in range(tick.get("times", 1)):
            shedding = rule.shed(view, memory)
            memory, figures = shedding.memory, shedding.figures
            mean, deviation = figures.get(MEAN_LOAD, mean), figures.get(DEVIATION, deviation)
            calls.append(
                {
                    "decisions": sorted(
                        (
                            [each.node_id, each.bundle_id, each.destination, f"Success/{_REASONS[each.reason]}"]
                            for each in shedding.choices
                        ),
                        key=str,
                    ),
                    "counted": [f"Skip/{_SKIPS[each.reason]}" for each in shedding.skips if not each.node_id],
                    "counter_avg": mean,
                    "counter_std": deviation,
                    "std_after": figures.get(DEVIATION_AFTER, 0.0),
                    "hit_count": memory.condition_hits,
                    "recent_brokers": sorted(memory.unloaded_at_ms),
                }
            )
    return {"calls": calls}


OPERATIONS: Final[Mapping[str, Callable[[Any], object]]] = {
    each.__name__: each for each in (threshold_shed, overload_shed, uniform_shed, avg_shed, transfer_shed)
}
