"""The bundles that a rule may shed, and the choice of the busiest ones among them."""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from controlplane.core.bundles.load.averages import MessageLoad
from controlplane.core.bundles.load.ieee import total_order
from controlplane.core.bundles.load.view import BundleHistory, LoadView
from controlplane.core.bundles.names import namespace_of, serves_health_checks


class TrafficBundle(NamedTuple):
    """A bundle that may be shed, its averages and the traffic that a rule compares."""

    bundle_id: str
    history: BundleHistory
    traffic: float


def throughput(load: MessageLoad) -> float:
    """In plus out, bytes per second."""
    return load.throughput_bytes_per_s


def message_rate(load: MessageLoad) -> float:
    """In plus out, messages per second."""
    return load.message_rate_per_s


class SheddableBundles:
    """The bundles of a view that may be shed, found by node without a scan of all bundles for each node.

    They are the known bundles without those of nodes' health checks (Pulsar's getBundleDataForLoadShedding) and without
    those that were unloaded recently.
    """

    def __init__(self, view: LoadView) -> None:
        """Number the bundles in the order of the view."""
        self._bundles = view.bundles
        self._positions = {
            bundle_id: position
            for position, bundle_id in enumerate(view.bundles)
            if bundle_id not in view.recently_unloaded and not serves_health_checks(namespace_of(bundle_id))
        }

    def of(self, bundle_ids: Iterable[str], measure: Callable[[MessageLoad], float]) -> list[TrafficBundle]:
        """The bundles among ``bundle_ids``, the busiest in the short term first; ties have the order of the view."""
        known = sorted({each for each in bundle_ids if each in self._positions}, key=self._positions.__getitem__)
        return busiest_first(((each, self._bundles[each]) for each in known), measure)


def busiest_first(
    bundles: Iterable[tuple[str, BundleHistory]], measure: Callable[[MessageLoad], float]
) -> list[TrafficBundle]:
    """Bundles with their short-term traffic, the busiest first; ties keep their order."""
    measured = [TrafficBundle(name, each, measure(each.averages.short_term.load)) for name, each in bundles]
    # A reversed sort is stable too: equal elements keep their order.
    measured.sort(key=lambda each: total_order(each.traffic), reverse=True)
    return measured


def until_target(bundles: Sequence[TrafficBundle], target: float) -> list[TrafficBundle]:
    """The first bundle, and the next ones while the traffic chosen so far is less than ``target``."""
    chosen: list[TrafficBundle] = []
    marked = 0.0
    for bundle in bundles:
        # Not `marked >= target`: a target that is not a number chooses one bundle.
        if chosen and not marked < target:
            break
        chosen.append(bundle)
        marked += bundle.traffic
    return chosen
