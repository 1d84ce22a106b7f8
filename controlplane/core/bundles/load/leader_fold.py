"""What the leader knows of loads, and how it takes in the latest reports (Pulsar's ModularLoadManagerImpl.updateAll).

A fold goes through all nodes: each bundle in a node's latest report is a sample of the bundle's averages, and the
node's averages are the sums over its bundles. The order of nodes is that in which they appeared.
"""

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import NamedTuple

from controlplane.core.bundles.load.averages import (
    UNSEEN_BUNDLE,
    MessageLoad,
    full_averages,
    message_load,
    node_averages,
)
from controlplane.core.bundles.load.load_order import NearTies, by_history
from controlplane.core.bundles.load.plausible import Implausible, implausible_load
from controlplane.core.bundles.load.top_bundles import partition_sort
from controlplane.core.bundles.load.view import BundleHistory, LoadView, NodeLoad, NodeView
from controlplane.core.values.ordered_map import OrderedMap


class PreallocationEnd(Enum):
    """When a bundle that was assigned to a node stops counting as preallocated."""

    REPORTED = "reported"
    """When the node reports it, or when the node is gone. This holds for nodes that have not reported yet, too."""
    REPORTED_OR_NOT_OWNED_BY_LEADER = "reported-or-not-owned-by-leader"
    """Quirk B, Pulsar 3 and 4: also when the leader's own process does not serve it. So the preallocations of all other
    nodes end at the next fold, and each node's bundles leave the map from bundle to node at once."""
    ANY_REPORTED = "any-reported"
    """Pulsar 2: when the node reports any of its preallocated bundles, all of them end that have a history. Each node's
    bundles leave the map from bundle to node at once."""


@dataclass(frozen=True, slots=True)
class FoldSettings:
    """Settings of the fold.

    Attributes:
        samples_unchanged_reports: quirk A: every fold samples the latest report of every node, also of those that have
            not reported since the last fold. So the number of samples follows the number of notifications. Off, a
            report is sampled once.
        samples_implausible_loads: average whatever is reported, as Pulsar does; a figure that is not a number then
            stays in a bundle's averages. Off, a sample that no working node reports is passed over, see
            :mod:`controlplane.core.bundles.load.plausible`.
        preallocation_end: when preallocations end.
        keeps_unreported_bundles: keep the history of bundles that no node reports, as Pulsar 2 does.
        near_ties: how nearly equal loads compare, when the busiest bundles are stored.
    """

    samples_unchanged_reports: bool = False
    samples_implausible_loads: bool = False
    preallocation_end: PreallocationEnd = PreallocationEnd.REPORTED
    keeps_unreported_bundles: bool = False
    near_ties: NearTies = NearTies.GRID


@dataclass(frozen=True, slots=True)
class Seeds:
    """What averages start from, for bundles that the leader does not know yet.

    Attributes:
        histories: stored histories by bundle.
        quotas: the expected load of a bundle (Pulsar's ResourceQuota); it counts like a whole history. It is used where
            no history is stored. Without both, the first sample is the average.
    """

    histories: Mapping[str, BundleHistory] = field(default_factory=dict)
    quotas: Mapping[str, MessageLoad] = field(default_factory=dict)

    def history(self, bundle_id: str) -> BundleHistory:
        """The history of a bundle before its first sample (Pulsar's getBundleDataOrDefault)."""
        if bundle_id in self.histories:
            return self.histories[bundle_id]
        if bundle_id in self.quotas:
            return BundleHistory(full_averages(self.quotas[bundle_id]))
        return BundleHistory(UNSEEN_BUNDLE)


NO_SEEDS = Seeds()


@dataclass(frozen=True, slots=True)
class LeaderLoads:
    """What the leader knows: the memory of the fold.

    Attributes:
        nodes: the nodes that have reported, by name, in the order in which they appeared.
        bundles: the known bundles.
        node_of_preallocated: the node to which a bundle was assigned lately, so that a second request for the same
            bundle gets the same answer (Pulsar's preallocatedBundleToBroker). Each ends with a fold.
    """

    nodes: Mapping[str, NodeView] = field(default_factory=dict)
    bundles: Mapping[str, BundleHistory] = field(default_factory=dict)
    node_of_preallocated: Mapping[str, str] = field(default_factory=dict)

    def view(self, recently_unloaded: AbstractSet[str] = frozenset()) -> LoadView:
        """The view on which rules decide."""
        return LoadView(self.nodes, self.bundles, recently_unloaded)

    def preallocated(self, bundle_id: str, node_id: str, history: BundleHistory) -> "LeaderLoads":
        """The same after a bundle was assigned to a node. A node that has not reported is only in the map.

        The first one after a fold copies the maps of nodes and of preallocations; the cost of the others grows with the
        logarithm of what is known. A bundle that was assigned to another node before leaves that one.
        """
        nodes, to_nodes = OrderedMap.of(self.nodes), OrderedMap.of(self.node_of_preallocated)
        former = to_nodes.get(bundle_id)
        if former is not None and former != node_id and former in nodes:
            held = OrderedMap.of(nodes[former].preallocated)
            if bundle_id in held:
                nodes = nodes.put([(former, replace(nodes[former], preallocated=held.drop([bundle_id])))])
        if node_id in nodes:
            node = nodes[node_id]
            preallocated = OrderedMap.of(node.preallocated).put([(bundle_id, history)])
            nodes = nodes.put([(node_id, replace(node, preallocated=preallocated))])
        return replace(self, nodes=nodes, node_of_preallocated=to_nodes.put([(bundle_id, node_id)]))


class Folded(NamedTuple):
    """The result of a fold.

    Attributes:
        loads: what the leader knows now.
        dropped_bundles: bundles that no node reports any more; their stored histories are to be deleted.
        dropped_nodes: nodes that are gone; their stored averages are to be deleted, and the rules for shedding and
            placement forget them.
        implausible: the figures for which samples were passed over.
    """

    loads: LeaderLoads
    dropped_bundles: tuple[str, ...]
    dropped_nodes: tuple[str, ...]
    implausible: tuple[Implausible, ...] = ()


def fold(
    loads: LeaderLoads,
    reports: Mapping[str, NodeLoad],
    settings: FoldSettings,
    seeds: Seeds = NO_SEEDS,
    owned_by_leader: AbstractSet[str] = frozenset(),
    registered: AbstractSet[str] = frozenset(),
) -> Folded:
    """Take in the latest reports.

    Args:
        loads: what the leader knows.
        reports: the latest report of each living node. A node without one is forgotten.
        settings: the settings of the fold.
        seeds: what the averages of unknown bundles start from.
        owned_by_leader: the bundles that the leader's own process serves. Only quirk B asks for them.
        registered: the living nodes; those with a report need not be named. A preallocation to any other node ends,
            but not in Pulsar, where that to a node which never reports has no end.
    """
    gone = {node_id: None for node_id in loads.nodes if node_id not in reports}
    known = {node_id: node for node_id, node in loads.nodes.items() if node_id in reports}
    to_nodes = {bundle: node for bundle, node in loads.node_of_preallocated.items() if node not in gone}
    if settings.preallocation_end is PreallocationEnd.REPORTED:
        to_nodes = _awaited(to_nodes, reports, registered)
    bundles = dict(loads.bundles)
    nodes: dict[str, NodeView] = {}
    reported: set[str] = set()
    implausible: list[Implausible] = []
    for node_id in (*known, *(each for each in reports if each not in known)):
        before, load = known.get(node_id), reports[node_id]
        reported.update(load.stats)
        if settings.samples_unchanged_reports or before is None or _is_new(load, before.load):
            implausible += _sample(bundles, load, settings, seeds)
        preallocated = before.preallocated if before is not None else {}
        kept = _kept(preallocated, load, bundles, owned_by_leader, settings.preallocation_end)
        if settings.preallocation_end is not PreallocationEnd.REPORTED:
            for bundle_id in preallocated:
                to_nodes.pop(bundle_id, None)
        averages = {each: bundles[each].averages for each in load.stats if each in bundles}
        nodes[node_id] = NodeView(load, node_averages(load.stats, averages), kept)
    unreported = () if settings.keeps_unreported_bundles else tuple(each for each in bundles if each not in reported)
    for bundle_id in unreported:
        del bundles[bundle_id]
    return Folded(LeaderLoads(nodes, bundles, to_nodes), unreported, tuple(gone), tuple(implausible))


def bundles_to_store(loads: LeaderLoads, max_bundles_per_node: int, settings: FoldSettings) -> tuple[str, ...]:
    """The bundles whose histories are stored now and then, the busiest first (Pulsar's writeBundleData).

    Args:
        loads: what the leader knows.
        max_bundles_per_node: so many bundles for each node that has reported, of all bundles; 0 or less stores all, in
            the order of ``loads``.
        settings: the settings of the fold.
    """
    bundle_ids = tuple(loads.bundles)
    if max_bundles_per_node <= 0:
        return bundle_ids
    histories = tuple(loads.bundles.values())
    count = max_bundles_per_node * len(loads.nodes)
    order = partition_sort(len(histories), count, by_history(histories, settings.near_ties))
    return tuple(bundle_ids[position] for position in order)


def _awaited(
    to_nodes: Mapping[str, str], reports: Mapping[str, NodeLoad], registered: AbstractSet[str]
) -> dict[str, str]:
    """The preallocations without those that their nodes have reported, and without those to nodes that are gone."""
    serves = {node_id: frozenset(reports[node_id].bundles) for node_id in {*to_nodes.values()} if node_id in reports}
    return {
        bundle: node
        for bundle, node in to_nodes.items()
        if (bundle not in serves[node] if node in serves else node in registered)
    }


def _is_new(load: NodeLoad, before: NodeLoad) -> bool:
    return load.updated_at_ms != before.updated_at_ms


def _sample(
    bundles: dict[str, BundleHistory], load: NodeLoad, settings: FoldSettings, seeds: Seeds
) -> Iterator[Implausible]:
    """Add a report's samples to ``bundles``, and give out the figures for which one is passed over."""
    for bundle_id, stats in load.stats.items():
        sample = message_load(stats)
        wrong = None if settings.samples_implausible_loads else implausible_load(sample)
        if wrong is not None:
            yield Implausible(load.node_id, bundle_id, *wrong)
            continue
        history = bundles[bundle_id] if bundle_id in bundles else seeds.history(bundle_id)
        bundles[bundle_id] = BundleHistory(history.averages.add(sample), stats.topic_count)


def _kept(
    preallocated: Mapping[str, BundleHistory],
    load: NodeLoad,
    bundles: Mapping[str, BundleHistory],
    owned_by_leader: AbstractSet[str],
    end: PreallocationEnd,
) -> dict[str, BundleHistory]:
    if not preallocated:
        return {}
    serves = set(load.bundles)
    if end is PreallocationEnd.ANY_REPORTED:
        any_reported = any(each in serves for each in preallocated)
        ended = {each for each in preallocated if any_reported and each in bundles}
    elif end is PreallocationEnd.REPORTED:
        ended = serves & preallocated.keys()
    else:
        ended = {each for each in preallocated if each in serves and each in bundles}
        ended |= preallocated.keys() - owned_by_leader
    return {each: history for each, history in preallocated.items() if each not in ended}
