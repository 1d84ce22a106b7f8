"""How far apart the loads of the nodes are, and whether loads are known well enough to say so.

It is the LoadStats of Pulsar's TransferShedder.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from controlplane.core.bundles.load.ieee import divide, greater, square_root, total_order
from controlplane.core.bundles.load.stored_load import StoredLoad
from controlplane.core.bundles.shedding.contract import Evidence, Skip, SkipReason
from controlplane.core.bundles.shedding.transfer_view import TransferView

_MS_PER_S = 1_000


class Spread(NamedTuple):
    """The mean and the standard deviation of the nodes' loads.

    Attributes:
        node_count: number of nodes.
        square_sum: sum of the squared loads.
        mean: mean load; offloading does not change it.
        deviation: standard deviation; not a number where rounding makes the variance negative.
    """

    node_count: int
    square_sum: float
    mean: float
    deviation: float

    def after_offload(self, most: float, least: float, amount: float) -> "Spread":
        """The spread after a node with load ``most`` has given ``amount`` to one with load ``least``."""
        square_sum = self.square_sum - (most * most + least * least)
        rest, more = greater(0.0, most - amount), least + amount
        square_sum += rest * rest + more * more
        variance = square_sum / self.node_count - self.mean * self.mean
        return self._replace(square_sum=square_sum, deviation=square_root(abs(variance)))


def spread_of(usages: Iterable[float]) -> Spread:
    """The spread of at least one load, summed in the given order."""
    total = square_sum = 0.0
    count = 0
    for usage in usages:
        total += usage
        square_sum += usage * usage
        count += 1
    mean = total / count
    return Spread(count, square_sum, mean, square_root(square_sum / count - mean * mean))


class Measured(NamedTuple):
    """The outcome of looking at the stored loads.

    Attributes:
        outcome: the spread of the loads, or the reason for which the cycle is skipped.
        by_load: the nodes that may be paired, the least loaded first; ties have the order of the view.
        unloaded_at_ms: nodes that shed and have not reported long enough after it.
    """

    outcome: Spread | Skip
    by_load: tuple[str, ...]
    unloaded_at_ms: Mapping[str, int]


def measure(
    view: TransferView, unloaded_at_ms: Mapping[str, int], *, lifetime_s: int, cool_down_s: int, pairs_outdated: bool
) -> Measured:
    """Look at the stored loads in their order.

    Args:
        view: the loads.
        unloaded_at_ms: when each node shed last.
        lifetime_s: a load that is older does not count.
        cool_down_s: time between the last shedding of a node and the sample of its load, so that the load shows it.
        pairs_outdated: whether nodes with an outdated load can be paired all the same.
    """
    resting = dict(unloaded_at_ms)
    fresh: dict[str, StoredLoad] = {}
    outdated: Evidence | None = None
    for node_id, load in view.loads.items():
        age_ms = view.now_ms - load.updated_at_ms
        if age_ms > lifetime_s * _MS_PER_S:
            outdated = Evidence("age_ms", age_ms, lifetime_s * _MS_PER_S)
            continue
        if node_id in resting:
            elapsed_ms = load.updated_at_ms - resting[node_id]
            if elapsed_ms < cool_down_s * _MS_PER_S:
                evidence = Evidence("elapsed_ms", elapsed_ms, cool_down_s * _MS_PER_S)
                return Measured(Skip(SkipReason.COOL_DOWN, evidence=(evidence,)), (), resting)
            del resting[node_id]
        fresh[node_id] = load
    if not fresh:
        skip = Skip(SkipReason.NO_NODES) if outdated is None else Skip(SkipReason.OUTDATED_LOAD, evidence=(outdated,))
        return Measured(skip, (), resting)
    if not view.registered <= view.loads.keys():
        return Measured(Skip(SkipReason.NO_LOAD), (), resting)
    paired = view.loads if pairs_outdated else fresh
    by_load = sorted(paired, key=lambda node_id: total_order(paired[node_id].smoothed_usage))
    return Measured(spread_of(load.smoothed_usage for load in fresh.values()), tuple(by_load), resting)


def underload(load: StoredLoad, most: StoredLoad, mean: float, target_deviation: float) -> Evidence | None:
    """Far less load than the mean, or far less throughput than the node with the most load; None if neither holds."""
    share = min(0.5, max(0.0, target_deviation / 2))
    if load.smoothed_usage < mean * share:
        return Evidence("least_load", load.smoothed_usage, mean * share)
    if load.smoothed_bytes_per_s < most.smoothed_bytes_per_s * share:
        return Evidence("least_smoothed_bytes_per_s", load.smoothed_bytes_per_s, most.smoothed_bytes_per_s * share)
    return None


def overload(load: StoredLoad, mean: float, target_deviation: float, threshold: float) -> Evidence | None:
    """A load above a threshold and far above the mean; None if one of them does not hold."""
    if load.smoothed_usage > threshold and load.smoothed_usage > mean + target_deviation:
        return Evidence("most_load", load.smoothed_usage, max(threshold, mean + target_deviation))
    return None


def offload_target(most: StoredLoad, least: StoredLoad) -> float:
    """The throughput that would make two loads equal, if load were proportional to throughput."""
    return divide(most.bytes_per_s * ((most.smoothed_usage - least.smoothed_usage) / 2), most.smoothed_usage)
