"""How a node keeps its own load: each measurement replaces the last one (Pulsar's LocalBrokerData.update)."""

from collections.abc import Iterable
from dataclasses import replace

from controlplane.core.bundles.load.averages import NO_LOAD, message_load
from controlplane.core.bundles.load.view import NodeLoad, Resources
from controlplane.core.bundles.reports import BundleLoad


def measured(load: NodeLoad, resources: Resources, stats: Iterable[BundleLoad]) -> NodeLoad:
    """The load of a node after a measurement of its resources and of all bundles that it serves.

    The totals are the sums over ``stats``, in their order. A bundle that is new is a gain, one that is missing a loss;
    both are kept until :func:`reported`.
    """
    by_id = {each.bundle_id: each for each in stats}
    before = set(load.bundles)
    traffic = NO_LOAD
    topics = consumers = producers = 0
    for each in by_id.values():
        traffic = traffic.plus(message_load(each))
        topics += each.topic_count
        consumers += each.consumer_count
        producers += each.producer_count
    return replace(
        load,
        **resources._asdict(),
        traffic=traffic,
        bundles=(*(each for each in load.bundles if each in by_id), *(each for each in by_id if each not in before)),
        stats=by_id,
        topic_count=topics,
        bundle_count=len(by_id),
        consumer_count=consumers,
        producer_count=producers,
        bundle_gains=_added(load.bundle_gains, (each for each in by_id if each not in before)),
        bundle_losses=_added(load.bundle_losses, (each for each in load.bundles if each not in by_id)),
    )


def reported(load: NodeLoad, now_ms: int) -> NodeLoad:
    """The load after its report was written at ``now_ms``, without gains and losses (Pulsar's cleanDeltas)."""
    return replace(load, updated_at_ms=now_ms, bundle_gains=(), bundle_losses=())


def _added(kept: tuple[str, ...], new: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*kept, *new)))
