"""Cutoffs by offsets: the same reports count as by batches."""

from collections.abc import Sequence
from itertools import pairwise

import hypothesis.strategies as st
from hypothesis import given

from controlplane.core.bundles.load.averages import NO_LOAD
from controlplane.core.bundles.load.incarnations import IncarnationReports, cutoffs, newest_nodes
from controlplane.core.bundles.load.offset_cutoffs import NodeIncarnation, NodePlace, offset_cutoffs
from controlplane.core.bundles.load.reported_state import NodeState, Position
from controlplane.core.bundles.load.view import Resources
from controlplane.core.bundles.reports import ResourceUsage

RESOURCES = Resources(*(ResourceUsage(1.0, 2.0),) * 5)
REPORTS = st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 4), st.booleans()), max_size=30)
"""Node, incarnation, and whether the figures of the node can be true; the offset is the number."""
CUTS = st.lists(st.integers(0, 30), max_size=5)


def counted_by_stream(log: Sequence[tuple[str, int, bool]], cuts: Sequence[int]) -> set[int]:
    """The offsets of the reports that count in ``bundle_load``, in these batches."""
    nodes: dict[str, NodeState] = {}
    counted: set[int] = set()
    for start, end in pairwise(sorted({0, len(log), *(cut for cut in cuts if cut < len(log))})):
        by_incarnation: dict[tuple[str, int], IncarnationReports] = {}
        for offset in range(start, end):
            node_id, incarnation, plausible = log[offset]
            before = by_incarnation.get((node_id, incarnation), IncarnationReports(node_id, incarnation, None, None))
            if plausible:
                at = Position(offset, 0, offset)
                state = NodeState(node_id, at, incarnation, RESOURCES, "1", 0.5, 0, NO_LOAD)
                before = before._replace(first=before.first or at, newest=state)
            by_incarnation[node_id, incarnation] = before
        ends = {(each.node_id, each.incarnation): each.end for each in cutoffs(by_incarnation.values(), nodes)}
        for offset in range(start, end):
            end_at = ends.get(log[offset][:2], Position(end, 0, end))
            if end_at is not None and offset < end_at.offset:
                counted.add(offset)
        for node in newest_nodes(by_incarnation.values()):
            nodes[node.node_id] = node.after(nodes.get(node.node_id))
    return counted


def counted_by_history(log: Sequence[tuple[str, int, bool]], cuts: Sequence[int]) -> set[int]:
    """Those that count in ``bundle_load_history``, in these steps."""
    known: dict[NodePlace, int] = {}
    counted: set[int] = set()
    for start, end in pairwise(sorted({0, len(log), *(cut for cut in cuts if cut < len(log))})):
        first_offsets: dict[NodeIncarnation, int | None] = {}
        for offset in range(start, end):
            node_id, incarnation, plausible = log[offset]
            each = NodeIncarnation(NodePlace(0, node_id), incarnation)
            if first_offsets.setdefault(each) is None and plausible:
                first_offsets[each] = offset
        found = offset_cutoffs(first_offsets, known)
        for offset in range(start, end):
            node_id, incarnation, _ = log[offset]
            if offset < found.ends.get(NodeIncarnation(NodePlace(0, node_id), incarnation), end):
                counted.add(offset)
        known.update(found.newest)
    return counted


@given(REPORTS, CUTS, CUTS)
def test_cutoffs_are_the_streams(log: Sequence[tuple[str, int, bool]], batches: list[int], steps: list[int]) -> None:
    """Whatever the batches of the one and the steps of the other."""
    assert counted_by_history(log, steps) == counted_by_stream(log, batches)
