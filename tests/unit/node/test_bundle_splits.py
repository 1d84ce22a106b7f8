"""A bundle that is split while it is served, and its parts: whatever of it the node has seen."""

from controlplane.core.bundles.ownership_channel.live_rows import (
    given_up,
    releasing,
    splitting,
    taken,
)
from controlplane.core.bundles.reports import BundleStep, BundleStepReport
from controlplane.node.callbacks import Access
from controlplane.node.held_bundle import CallKind
from tests.unit.node.bundle_stories import SETTINGS, WHOLE, owning

HALF = 1 << 31


def test_a_split_lets_the_children_serve_without_a_gap() -> None:
    """Requests that were accepted for the parent go on under the child of their hash, whatever the service does."""
    story = owning()
    story.write(splitting, ("0x00000000_0x80000000", "0x80000000_0xffffffff"), "")
    assert story.steps() == [BundleStep.DIVIDED]
    low, high = story.accept(1), story.accept(HALF + 1)
    children = story.split(HALF)
    story.follow()
    assert (story.access(1), story.access(HALF + 1)) == (Access.ACCEPT, Access.ACCEPT)
    assert not low.is_void
    assert story.run() == ["split 0-10 at 8"]
    story.write(releasing, "a", bundle_id=children[1])
    assert story.access(1) is Access.ACCEPT
    assert story.run() == [], "the request of this child is waited for"
    story.book.leave(low, story.now_ms)
    assert story.run() == []
    story.book.leave(high, story.now_ms)
    assert story.run() == ["releasing 8-10"]
    assert not high.is_void


def test_the_calls_for_children_come_after_the_split() -> None:
    """A service cannot close a child of which it has not heard."""
    story = owning()
    story.write(splitting, (), "topic_count_equally_divide")
    topics = story.begin()
    children = story.split(HALF)
    story.follow()
    story.write(releasing, "a", bundle_id=children[0])
    assert story.run() == []
    story.book.finish(topics, story.now_ms)
    assert story.run() == ["split 0-10 at 8", "releasing 0-8"]
    assert story.steps() == [BundleStep.RELEASED]


def test_a_split_of_which_the_service_never_returns_holds_no_release_up() -> None:
    """The child is reported as released when the limits are over, and refused before."""
    story = owning()
    story.write(splitting, ("0x00000000_0x80000000", "0x80000000_0xffffffff"), "")
    children = story.split(HALF)
    story.follow()
    call = story.begin()
    story.write(releasing, "a", bundle_id=children[0])
    assert (story.access(), story.access(HALF)) == (Access.MOVED, Access.ACCEPT)
    story.wait(SETTINGS.accepted_limit_ms + SETTINGS.release_limit_ms)
    assert story.steps() == [BundleStep.RELEASED]
    story.book.finish(call, story.now_ms)
    assert story.run() == ["releasing 0-8"]


def test_a_split_in_a_skipped_epoch_is_known_by_its_lineage() -> None:
    """Grandchildren too. A child that another node owns by now was opened here as a part of the parent."""
    story = owning()
    call = story.accept(1)
    lost_call = story.accept(HALF + 1)
    low, high = story.split(HALF)
    story.table()
    story.split(HALF // 2, bundle_id=low)
    story.write_unseen(taken, "a", bundle_id=high)
    story.follow()
    assert (story.access(1), story.access(HALF // 2), story.access(HALF)) == (
        Access.ACCEPT,
        Access.ACCEPT,
        Access.MOVED,
    )
    assert (call.is_void, lost_call.is_void) == (False, True)
    assert story.run() == ["split 0-10 at 4 8", "releasing 8-10", "released 8-10 a"]


def test_a_bundle_that_is_gone_without_children_of_this_node_is_closed() -> None:
    """It was taken away and split by its new owner, in epochs that this node has not seen."""
    story = owning()
    story.write_unseen(taken, "a")
    story.split(HALF)
    story.follow()
    assert story.run() == ["releasing 0-10", "released 0-10 None"]
    assert story.access() is Access.MOVED


def test_children_of_another_owner_epoch_are_opened_after_the_parent_was_closed() -> None:
    """They came back to this node after another one had them."""
    story = owning()
    story.write_unseen(taken, "a")
    story.write_unseen(taken, "n")
    story.split(HALF)
    story.follow()
    assert story.access() is Access.MIGRATING
    assert story.run() == ["releasing 0-10", "released 0-10 None", "assigned 0-8", "assigned 8-10"]
    assert story.access() is Access.ACCEPT


def test_an_owner_that_is_asked_for_bounds_reports_those_of_its_topics() -> None:
    """Without topics there are none, and the report says so; a later row is asked for again."""
    story = owning()
    story.write(splitting, (), "topic_count_equally_divide")
    assert story.steps() == []
    call = story.begin()
    assert call.kind is CallKind.TOPICS
    assert story.access() is Access.ACCEPT
    story.book.finish(call, story.now_ms, (HALF,))
    version = story.rows[WHOLE].version
    assert story.book.report().steps == (BundleStepReport(WHOLE, version, BundleStep.DIVIDED, (HALF,)),)
    story.write(given_up)
    assert story.steps() == []
    story.write(splitting, (), "topic_count_equally_divide")
    assert story.steps() == []
    assert story.run() == ["topics 0-10"]
    assert story.book.report().steps[0].bounds == ()
