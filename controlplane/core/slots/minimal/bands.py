"""How many replicas and leaderships each node has to hold: its fair share, rounded down or up, or a tolerance more.

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


def bands_of(
    shares: Sequence[Fraction], tolerance_percent: int, least: Sequence[int], most: Sequence[int]
) -> list[Band]:
    """Bands around shares; a tolerance leads no node below ``least`` (its pins) or above ``most`` (its room)."""
    return [
        Band(
            min(floor(share), max(_part(share, 100 - tolerance_percent), own)),
            max(ceil(share), min(-_part(-share, 100 + tolerance_percent), room)),
        )
        for share, own, room in zip(shares, least, most, strict=True)
    ]


def _part(share: Fraction, percent: int) -> int:
    """So many percent of a share, rounded down; in integers, because there are many shares."""
    return share.numerator * percent // (share.denominator * 100)


def aims(counts: Sequence[int], bands: Sequence[Band], total: int) -> list[int]:
    """One number out of each band, ``total`` together, near to the counts that there are.

    What is left above the lower bounds goes first to nodes that already hold as many, then to all in turn.
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
