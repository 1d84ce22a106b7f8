"""Bands: how many replicas and leaderships each node has to hold, from its fair share and the tolerance.

All arithmetic is exact, in integers and fractions, so that every controller gets the same bounds.
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


def bands_of(
    shares: Sequence[Fraction], tolerance_percent: int, least: Sequence[int], most: Sequence[int]
) -> list[Band]:
    """The bands around shares. A tolerance extends no band below ``least`` (pins) or above ``most`` (room)."""
    return [
        Band(
            min(floor(share), max(_part(share, 100 - tolerance_percent), own)),
            max(ceil(share), min(-_part(-share, 100 + tolerance_percent), room)),
        )
        for share, own, room in zip(shares, least, most, strict=True)
    ]


def _part(share: Fraction, percent: int) -> int:
    """A percentage of a share, rounded down. Integers are used for speed, because there are many shares."""
    return share.numerator * percent // (share.denominator * 100)


def aims(counts: Sequence[int], bands: Sequence[Band], total: int) -> list[int]:
    """One number from each band, ``total`` together, close to the present counts.

    Units beyond the lower bounds go first to nodes that already hold as many, then to all nodes in turn.
    """
    chosen = [min(max(count, band.least), band.most) for count, band in zip(counts, bands, strict=True)]
    lack = total - sum(chosen)
    step = 1 if lack > 0 else -1
    while lack:
        movable = [
            index
            for index, band in enumerate(bands)
            if (chosen[index] < band.most if step > 0 else chosen[index] > band.least)
        ]
        if not movable:
            break
        movable.sort(key=lambda index: (step * chosen[index], index))
        for index in movable[: abs(lack)]:
            chosen[index] += step
            lack -= step
    return chosen
