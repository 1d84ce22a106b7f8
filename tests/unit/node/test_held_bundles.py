"""What a node may serve of its bundles, and which calls its service gets: rows as a leader writes them, one by one."""

from controlplane.core.bundles.bundle import Bundle
from controlplane.core.bundles.ownership_channel.live_rows import (
    assigned_again,
    assigning,
    freed,
    lost,
    opened,
    releasing,
    taken,
)
from controlplane.core.bundles.reports import BundleStep
from controlplane.core.membership.node import NodeStatus
from controlplane.core.values.identifiers import Epoch, Term
from controlplane.core.values.replica_status import ReplicaStatus
from controlplane.node.callbacks import Access, BundleOwnership, FencingToken
from tests.unit.node.bundle_stories import INCARNATION, WHOLE, Story, owning


def test_an_owner_releases_in_steps_and_each_step_has_its_call() -> None:
    """It refuses at once and names the next owner, reports after the call, and sends its clients away at the end."""
    story = owning()
    assert story.access() is Access.ACCEPT
    story.write(releasing, "a")
    answer = story.asked()
    assert (answer.access, answer.ask) == (Access.MOVED, "a")
    assert story.steps() == []
    assert story.run() == ["releasing 0-10"]
    assert story.steps() == [BundleStep.RELEASED]
    assert story.book.count() == 1
    story.write(assigning, "a")
    assert (story.run(), story.steps()) == ([], [])
    story.write(opened)
    assert story.book.count() == 0
    assert story.run() == ["released 0-10 a"]
    assert story.book.is_empty


def test_the_next_owner_prepares_opens_and_serves_from_owned_on() -> None:
    """It serves at once then, because it has opened the bundle; the token under which it did is smaller."""
    story = Story()
    story.write(taken, "a")
    former = story.asked().token
    story.write(releasing, "n")
    assert story.run() == ["preparing 0-10"]
    assert (story.access(), story.asked().ask) == (Access.MIGRATING, "n")
    story.write(assigning, "n")
    assert story.steps() == []
    assert story.run() == ["assigned 0-10"]
    assert story.access() is Access.MIGRATING, "the former owner may still be the owner for others"
    assert story.steps() == [BundleStep.OPENED]
    story.write(opened)
    assert story.run() == []
    assert story.access() is Access.ACCEPT
    assert former < story.made[-1].token < story.asked().token
    assert story.asked().token.since_epoch == story.rows[WHOLE].owner_epoch


def test_a_forced_owner_is_migrating_until_it_has_opened_the_bundle() -> None:
    """Nobody has prepared anything: the former owner died."""
    story = Story()
    story.write(taken, "n")
    assert story.access() is Access.MIGRATING
    call = story.begin()
    assert story.access() is Access.MIGRATING
    assert story.book.report().statuses[0].status is ReplicaStatus.MIGRATING
    story.book.finish(call, story.now_ms)
    assert story.access() is Access.ACCEPT
    assert story.book.report().statuses[0].status is ReplicaStatus.HEALTHY


def test_a_bundle_that_was_prepared_and_goes_elsewhere_is_told_as_released() -> None:
    """What the service has prepared would stay for good."""
    story = Story()
    story.write(taken, "a")
    story.write(releasing, "n")
    story.run()
    story.write(taken, "b")
    assert story.run() == ["released 0-10 b"]
    assert story.book.is_empty


def test_the_end_of_the_last_accepted_request_lets_the_release_begin() -> None:
    """Nobody waits for a limit if there is nothing to wait for."""
    story = owning()
    call = story.accept()
    story.write(releasing, "a")
    assert story.book.leave(call, story.now_ms)
    assert not call.is_void
    assert story.run() == ["releasing 0-10"]


def test_a_bundle_that_is_taken_away_voids_its_requests_at_once() -> None:
    """Another node serves it already: there is nothing to wait for."""
    story = owning()
    call = story.accept()
    story.write(taken, "a")
    assert call.is_void
    assert (story.access(), story.asked().ask) == (Access.MOVED, "a")
    assert story.run() == ["releasing 0-10", "released 0-10 a"]


def test_a_bundle_lost_and_gained_again_in_skipped_epochs_is_opened_again() -> None:
    """Two tables that give it to this node do not say that no other node had it in between: the owner epoch does."""
    story = owning()
    call = story.accept()
    story.write_unseen(taken, "a")
    story.write(taken, "n")
    assert story.access() is Access.MIGRATING
    assert call.is_void
    assert story.run() == ["releasing 0-10", "assigned 0-10"]
    assert story.access() is Access.ACCEPT


def test_a_bundle_that_is_assigned_while_it_is_still_open_is_closed_first() -> None:
    """The node has not seen that it had to release it."""
    story = owning()
    story.write_unseen(releasing, "a")
    story.write_unseen(taken, "b")
    story.write_unseen(releasing, "n")
    story.write(assigning, "n")
    assert story.access() is Access.MIGRATING
    assert story.steps() == []
    assert story.run() == ["releasing 0-10", "assigned 0-10"]
    assert story.steps() == [BundleStep.OPENED]


def test_what_was_opened_as_next_owner_counts_only_if_no_other_row_lay_between() -> None:
    """Another node may have been the owner, and have written."""
    story = Story()
    story.write(assigning, "n")
    story.run()
    story.write_unseen(taken, "a")
    story.write(taken, "n")
    assert story.access() is Access.MIGRATING
    assert story.run() == ["releasing 0-10", "assigned 0-10"]


def test_a_fenced_node_loses_everything_and_opens_again_what_it_gets_back() -> None:
    """What the table takes a node for, it is; rows that were not moved yet do not matter."""
    story = owning()
    call = story.accept()
    story.status(NodeStatus.FENCED)
    story.follow()
    assert story.access() is Access.MOVED
    assert call.is_void
    assert story.run() == ["releasing 0-10", "released 0-10 None"]
    assert story.book.is_empty
    story.status(NodeStatus.ACTIVE)
    story.follow()
    assert story.run() == ["assigned 0-10"]


def test_a_node_whose_own_row_was_written_in_skipped_epochs_may_have_been_fenced() -> None:
    """So it opens everything again, though every row of a bundle is as it was."""
    story = owning()
    story.status(NodeStatus.FENCED)
    story.table()
    story.status(NodeStatus.ACTIVE)
    story.follow()
    assert story.access() is Access.MIGRATING
    assert story.run() == ["releasing 0-10", "assigned 0-10"]


def test_rows_of_another_process_give_nothing() -> None:
    """A restarted process must not take over what the table still gives to the one that died."""
    story = Story()
    story.rows[WHOLE] = taken(story.rows[WHOLE], "n", Epoch(1))
    story.book.follow(story.table(), INCARNATION + 1, story.now_ms)
    assert (story.access(), story.run()) == (Access.MOVED, [])


def test_a_draining_node_serves_until_the_table_takes_its_bundles() -> None:
    """That is what a drain is for."""
    story = owning()
    story.status(NodeStatus.DRAINING)
    story.follow()
    assert story.access() is Access.ACCEPT


def test_an_unloaded_bundle_is_held_until_another_node_owns_it() -> None:
    """Its clients stay as long as nobody can tell them where to go."""
    story = owning()
    story.write(releasing, None)
    assert story.asked().ask is None
    story.run()
    story.write(freed)
    assert (story.run(), story.book.count()) == ([], 1)
    story.write(assigning, "a")
    assert (story.run(), story.book.count()) == ([], 1)
    story.write(opened)
    assert (story.run(), story.book.count()) == (["released 0-10 a"], 0)


def test_a_bundle_that_comes_back_before_another_node_owned_it_keeps_its_clients() -> None:
    """They need not find out that nothing has changed for them."""
    story = owning()
    story.write(releasing, "a")
    story.run()
    story.write(assigning, "a")
    story.write(assigned_again, "n")
    assert story.run() == ["assigned 0-10"]


def test_a_bundle_that_ends_is_told_without_a_row() -> None:
    """Its namespace was deleted."""
    story = owning()
    story.write(releasing, None)
    story.run()
    del story.rows[WHOLE]
    story.follow()
    assert story.run() == ["released 0-10 None"]
    assert (story.access(), story.asked().bundle, story.asked().ask) == (Access.UNSUPPORTED, None, None)
    assert story.book.is_empty


def test_a_node_told_to_release_what_it_never_opened_has_done_so() -> None:
    """It gained the bundle in an epoch that it has not seen."""
    story = Story()
    story.write_unseen(taken, "n")
    story.write(releasing, "a")
    assert story.run() == []
    assert story.steps() == [BundleStep.RELEASED]
    story.write(lost)
    assert story.book.is_empty


def test_below_level_3_bundles_are_lost_and_gained_by_single_rows() -> None:
    """A lost one is closed and its clients are sent away; the tokens of two holdings differ."""
    story = Story(has_handoffs=False)
    story.own(WHOLE, "n")
    story.follow()
    assert story.run() == ["assigned 0-10"]
    first = story.asked().token
    story.own(WHOLE, "a")
    story.follow()
    assert (story.access(), story.asked().ask) == (Access.MOVED, "a")
    assert story.run() == ["releasing 0-10", "released 0-10 a"]
    story.own(WHOLE, "n")
    story.follow()
    assert story.run() == ["assigned 0-10"]
    assert first < story.asked().token
    assert story.steps() == []


def test_below_level_3_a_row_written_in_skipped_epochs_counts_as_lost_and_gained() -> None:
    """No owner epoch says that no other node had it. The first row of level 3 continues what was held."""
    story = Story(has_handoffs=False)
    story.own(WHOLE, "n")
    story.follow()
    story.run()
    story.table()
    story.own(WHOLE, "n")
    story.follow()
    assert story.run() == ["releasing 0-10", "assigned 0-10"]
    story.write(releasing, "a")
    assert story.run() == ["releasing 0-10"]
    assert story.steps() == [BundleStep.RELEASED]


def test_news_are_told_once() -> None:
    """A step is reported in every heartbeat, but only its first report is worth one of its own."""
    story = owning()
    news = [story.book.has_news]
    story.write(releasing, "a")
    story.run()
    for _ in range(2):
        news.append(story.book.has_news)
        assert story.steps() == [BundleStep.RELEASED]
    assert news == [False, True, False]


def test_bundles_of_unknown_namespaces_and_before_the_first_table_are_refused() -> None:
    """With an answer and no error."""
    story = Story()
    assert story.asked() == BundleOwnership(Access.MOVED, FencingToken(Term(0), Epoch(0)), Epoch(0), None, None)
    story.follow()
    other = story.book.ownership("other", 0)
    assert (other.access, other.bundle, other.ask) == (Access.UNSUPPORTED, None, None)


def test_a_bundle_is_released_by_version_also_behind_the_greatest() -> None:
    """The least version follows the greatest one."""
    story = Story()
    row: Bundle = story.rows[WHOLE]
    story.rows[WHOLE] = Bundle(
        row.namespace, row.lower, row.upper, None, row.state, state_epoch=Epoch(1), version=(1 << 63) - 2
    )
    story.write(assigning, "n")
    story.run()
    story.write(opened)
    assert story.rows[WHOLE].version == -(1 << 63)
    assert story.access() is Access.ACCEPT


def test_skipped_epochs_of_other_bundles_change_nothing() -> None:
    """The row is the same, so the holding goes on."""
    story = owning()
    story.table()
    story.follow()
    assert (story.access(), story.run()) == (Access.ACCEPT, [])
