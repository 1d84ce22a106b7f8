"""Reports of replaced processes, from what is known of each incarnation in a batch."""

from controlplane.core.bundles.load.averages import NO_LOAD
from controlplane.core.bundles.load.incarnations import Cutoff, IncarnationReports, cutoffs, newest_nodes
from controlplane.core.bundles.load.reported_state import BundleSums, NodeState, Position
from controlplane.core.bundles.load.view import Resources


def at(offset: int) -> Position:
    """A place in the log."""
    return Position(1_000 + offset, 0, offset)


def node(incarnation: int, offset: int) -> NodeState:
    """The node with a report."""
    return NodeState("n", at(offset), incarnation, Resources(), "1", 0.5, 2, NO_LOAD)


def reports(incarnation: int, first: int, newest: int) -> IncarnationReports:
    """Reports of an incarnation from one offset to another one."""
    return IncarnationReports("n", incarnation, at(first), node(incarnation, newest))


def test_one_incarnation_has_no_cutoff() -> None:
    """Neither the first one of a node, nor the known one, nor a later one."""
    assert cutoffs([reports(2, 5, 7)], {}) == []
    assert cutoffs([reports(2, 5, 7)], {"n": node(2, 4)}) == []
    assert cutoffs([reports(2, 5, 7)], {"n": node(1, 4)}) == []


def test_reports_count_until_the_first_one_of_a_later_incarnation() -> None:
    """Of three processes the middle one may have been replaced before it reported."""
    assert cutoffs([reports(1, 3, 9), reports(2, 5, 7)], {}) == [Cutoff("n", 1, at(5))]
    assert cutoffs([reports(1, 3, 9), reports(2, 5, 7), reports(3, 4, 8)], {}) == [
        Cutoff("n", 2, at(4)),
        Cutoff("n", 1, at(4)),
    ]


def test_no_report_counts_of_an_incarnation_before_the_known_one() -> None:
    """Wherever it stands."""
    assert cutoffs([reports(1, 3, 9), reports(3, 5, 7)], {"n": node(2, 4)}) == [Cutoff("n", 1, None)]


def test_reports_whose_figures_cannot_be_true_replace_no_process() -> None:
    """The node's row stays, so that the rule would forget them with the end of the batch."""
    implausible = IncarnationReports("n", 2, None, None)
    assert cutoffs([reports(1, 3, 9), implausible], {}) == []
    assert list(newest_nodes([reports(1, 3, 9), implausible])) == [node(1, 9)]


def test_a_node_is_what_its_latest_incarnation_says() -> None:
    """Also where a former one goes on reporting behind it."""
    assert list(newest_nodes([reports(2, 5, 7), reports(1, 3, 9)])) == [node(2, 7)]


def test_offsets_tell_the_order_within_a_partition() -> None:
    """A broker's clock went back: the later report has the earlier time, and is the later one all the same."""
    back = Position(1, 0, 9)
    assert cutoffs([reports(1, 3, 8), IncarnationReports("n", 2, back, None)], {}) == [Cutoff("n", 1, back)]
    later = [IncarnationReports("n", 2, back, None), IncarnationReports("n", 3, at(7), None)]
    assert cutoffs([reports(1, 3, 8), *later], {}) == [Cutoff("n", 2, at(7)), Cutoff("n", 1, at(7))]


def test_a_node_that_goes_on_in_another_partition_has_one_order() -> None:
    """The topic got partitions: append times tell which report of a process is the first, and which the newest."""
    there = Position(1_006, 1, 0)
    moved = IncarnationReports("n", 2, there, node(2, 0)._replace(position=there))
    for parts in ([reports(2, 4, 5), moved], [moved, reports(2, 4, 5)]):
        assert cutoffs([reports(1, 3, 9), *parts], {}) == [Cutoff("n", 1, at(4))]
        assert list(newest_nodes([reports(1, 3, 9), *parts])) == [moved.newest]


def test_what_evaluations_have_added_stays_with_the_node() -> None:
    """A report of an older process, or one that was seen before, changes nothing."""
    known = node(2, 7)._replace(sums=BundleSums(1, NO_LOAD, NO_LOAD), smoothed_usage=0.25, smoothed_at_ms=9)
    assert node(2, 8).after(None) == node(2, 8)
    after = node(2, 8).after(known)
    assert after == known._replace(position=at(8))
    assert node(1, 8).after(known) is node(2, 7).after(known) is known
