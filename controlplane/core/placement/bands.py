"""How many replicas and leaderships each node has to hold: its water-filled share, rounded down or up.

Exact: integers and fractions only, so that every controller draws the same line.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor


@dataclass(frozen=True, slots=True)
class Band:
    """The least and the greatest number of units that a node may hold."""

    least: int
    most: int


@dataclass(frozen=True, slots=True)
class Demand:
    """What a slot table asks of its nodes.

    Attributes:
        replicas_per_slot: the same for every slot, at least 1.
        total: replicas in all. Less than slots times ``replicas_per_slot`` only when the nodes together cannot hold
            one replica of every slot; then ``replicas_per_slot`` is 1 and some slots stay without a node.
        replicas: each node's band of replicas.
        leaders: each node's band of slot leaderships, a part of the same share.
    """

    replicas_per_slot: int
    total: int
    replicas: tuple[Band, ...]
    leaders: tuple[Band, ...]


def demand(slot_count: int, replica_count: int, weights: Sequence[int], capacities: Sequence[int]) -> Demand:
    """The bands of nodes with these weights and capacities (0: no limit), for ``slot_count`` slots, at least 1."""
    caps = [
        0 if weight == 0 else min(capacity or slot_count, slot_count)
        for weight, capacity in zip(weights, capacities, strict=True)
    ]
    replicas_per_slot = max(1, min(replica_count, sum(caps) // slot_count))
    total = min(slot_count * replicas_per_slot, sum(caps))
    shares = _water_fill(total, weights, caps)
    return Demand(
        replicas_per_slot,
        total,
        tuple(Band(floor(share), ceil(share)) for share in shares),
        tuple(Band(floor(share / replicas_per_slot), ceil(share / replicas_per_slot)) for share in shares),
    )


def aims(counts: Sequence[int], bands: Sequence[Band], total: int) -> list[int]:
    """One number out of each band, ``total`` together; the upper ones go first to nodes that already hold as many."""
    chosen = [band.least for band in bands]
    open_bands = [index for index, band in enumerate(bands) if band.most > band.least]
    open_bands.sort(key=lambda index: (counts[index] < bands[index].most, index))
    for index in open_bands[: total - sum(chosen)]:
        chosen[index] += 1
    return chosen


def _water_fill(total: int, weights: Sequence[int], caps: Sequence[int]) -> list[Fraction]:
    """Shares proportional to the weights, none over its cap; what a cap cuts off goes to the others by weight."""
    shares = [Fraction(0)] * len(caps)
    willing = [index for index, cap in enumerate(caps) if cap > 0]
    willing.sort(key=lambda index: Fraction(caps[index], weights[index]))
    left, weight_left = total, sum(weights[index] for index in willing)
    for position, index in enumerate(willing):
        if left * weights[index] < caps[index] * weight_left:
            for uncapped in willing[position:]:
                shares[uncapped] = Fraction(left * weights[uncapped], weight_left)
            break
        shares[index] = Fraction(caps[index])
        left -= caps[index]
        weight_left -= weights[index]
    return shares
