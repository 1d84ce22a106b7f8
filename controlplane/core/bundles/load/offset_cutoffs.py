"""Until which offsets the reports of an incarnation count, decided from offsets alone.

A node's reports stand in one partition, in the order in which they count; so whether a report counts follows from what
stands before it there, in whatever steps a table of them is read. The rule is that of
:mod:`controlplane.core.bundles.load.incarnations`, which goes by batches of all partitions.
"""

from collections.abc import Mapping
from typing import NamedTuple


class NodePlace(NamedTuple):
    """A node in one partition."""

    partition: int
    node_id: str


class NodeIncarnation(NamedTuple):
    """An incarnation of a node in one partition."""

    place: NodePlace
    incarnation: int


class OffsetCutoffs(NamedTuple):
    """What the reports of a step make of their incarnations.

    Attributes:
        ends: the offset from which the reports of an incarnation do not count; one that is not named counts.
        newest: of each node of which the step has a report with plausible figures, the latest such incarnation.
    """

    ends: Mapping[NodeIncarnation, int]
    newest: Mapping[NodePlace, int]


def offset_cutoffs(
    first_offsets: Mapping[NodeIncarnation, int | None], known: Mapping[NodePlace, int]
) -> OffsetCutoffs:
    """The rule: a report counts if none of a later incarnation of its node, with plausible figures, stands before it.

    Args:
        first_offsets: of each incarnation that has reports in the step, the first one whose figures of the node can be
            true; None if there is none.
        known: the latest incarnations before the step that had such a report.
    """
    ends: dict[NodeIncarnation, int] = {}
    newest: dict[NodePlace, int] = {}
    end_of: dict[NodePlace, int] = {}
    for each in sorted(first_offsets, key=lambda each: each.incarnation, reverse=True):
        place, incarnation = each
        if incarnation < known.get(place, incarnation):
            ends[each] = 0
            continue
        if place in end_of:
            ends[each] = end_of[place]
        first = first_offsets[each]
        if first is not None:
            end_of[place] = min(first, end_of.get(place, first))
            newest.setdefault(place, incarnation)
    return OffsetCutoffs(ends, newest)
