"""Calls for bundles that take long, hang or fail: how long they are waited for, and how many are made at once."""

from dataclasses import replace

import pytest

from controlplane.core.bundles.ownership_channel.live_rows import (
    assigning,
    opened,
    releasing,
    taken,
)
from controlplane.core.bundles.reports import BundleStep
from controlplane.core.cluster.policy import ClusterPolicy
from controlplane.core.values.identifiers import Epoch
from controlplane.node.call_line import CallLine
from controlplane.node.callbacks import Access
from controlplane.node.handoff_settings import HandoffSettings
from controlplane.node.held_bundle import HeldBundle
from tests.unit.node.bundle_stories import NAMESPACE, SETTINGS, WHOLE, Story, owning, say


def test_as_many_bundles_move_at_once_as_a_node_calls_for() -> None:
    """More wait for their calls without an owner."""
    assert ClusterPolicy().bundle_moves_in_flight == HandoffSettings().calls_at_once


def test_a_release_waits_for_accepted_requests_and_voids_them_at_the_limit() -> None:
    """Until then the right to serve lasts; afterwards the answer must not say that a request was carried out."""
    story = owning()
    early, late = story.accept(), story.accept()
    story.write(releasing, "a")
    assert story.book.accept(NAMESPACE, 0)[1] is None
    assert story.run() == []
    assert not story.book.leave(early, story.now_ms), "another one is waited for"
    assert not early.is_void
    story.wait(SETTINGS.accepted_limit_ms - 1)
    assert (story.run(), late.is_void) == ([], False)
    story.wait(1)
    assert late.is_void
    assert story.run() == ["releasing 0-10"]
    assert not story.book.leave(late, story.now_ms)


def test_a_release_that_hangs_is_reported_at_its_limit_and_refused_all_along() -> None:
    """The cluster goes on without it. What it does after all comes in order."""
    story = owning()
    story.write(releasing, "a")
    call = story.begin()
    story.wait(SETTINGS.release_limit_ms - 1)
    assert story.steps() == []
    assert story.wait(1) == (call,)
    assert story.steps() == [BundleStep.RELEASED]
    assert story.access() is Access.MOVED
    story.write(assigning, "a")
    story.write(opened)
    assert story.run() == []
    story.book.finish(call, story.now_ms)
    assert story.run() == ["released 0-10 a"]


def test_a_bundle_whose_opening_hangs_stays_migrating_and_can_be_released() -> None:
    """It has never served, so its release is reported when the limits are over."""
    story = Story()
    story.write(taken, "n")
    call = story.begin()
    assert story.wait(SETTINGS.open_limit_ms) == (call,)
    assert story.access() is Access.MIGRATING
    story.write(releasing, "a")
    assert story.access() is Access.MOVED
    story.wait(SETTINGS.accepted_limit_ms + SETTINGS.release_limit_ms - 1)
    assert story.steps() == []
    story.wait(1)
    assert story.steps() == [BundleStep.RELEASED]
    story.book.finish(call, story.now_ms)
    assert story.run() == ["releasing 0-10"], "every opened bundle is closed"


def test_an_opening_that_returns_after_its_row_is_gone_does_not_count() -> None:
    """It opened the bundle for a holding that has ended; a new one has to be opened again."""
    story = Story()
    story.write(taken, "n")
    call = story.begin()
    story.write(taken, "a")
    story.write(taken, "n")
    story.book.finish(call, story.now_ms)
    assert story.access() is Access.MIGRATING
    assert story.run() == ["releasing 0-10", "assigned 0-10"]
    assert story.access() is Access.ACCEPT


def test_calls_for_different_bundles_are_made_at_the_same_time_up_to_a_bound() -> None:
    """A hung one does not count, so the others go on. If too many hang, no further one is made."""
    story = Story(8)
    for bundle_id in list(story.rows):
        story.rows[bundle_id] = taken(story.rows[bundle_id], "n", Epoch(1))
    story.follow()
    hung = []
    for _ in range(2):
        hung += [story.begin(), story.begin()]
        assert story.book.begin(story.now_ms) is None
        story.wait(SETTINGS.open_limit_ms)
    assert story.book.begin(story.now_ms) is None, "three hang at most, and two more that may hang later"
    assert len({id(call.held) for call in hung}) == 4
    waiting = max(story.rows)
    story.write(releasing, "a", bundle_id=waiting)
    story.wait(SETTINGS.accepted_limit_ms + SETTINGS.release_limit_ms)
    assert story.steps() == [BundleStep.RELEASED]
    story.book.finish(hung[0], story.now_ms)
    assert story.book.begin(story.now_ms) is None
    story.book.finish(hung[1], story.now_ms)
    assert story.book.begin(story.now_ms) is not None


def test_a_release_does_not_wait_behind_bundles_that_have_to_be_opened() -> None:
    """Another node waits for it."""
    story = Story(4)
    first, *others = story.rows
    story.write(taken, "n", bundle_id=first)
    story.run()
    for bundle_id in others:
        story.rows[bundle_id] = taken(story.rows[bundle_id], "n", Epoch(story.epoch + 1))
    story.write(releasing, "a", bundle_id=first)
    assert say(story.begin()) == "releasing 0-4"


def test_a_release_that_waits_for_its_turn_is_not_given_up() -> None:
    """It would be reported without the service having heard of it, though it soon will."""
    story = Story(3)
    for bundle_id in list(story.rows):
        story.rows[bundle_id] = taken(story.rows[bundle_id], "n", Epoch(1))
    story.follow()
    story.run()
    for bundle_id in list(story.rows):
        story.rows[bundle_id] = releasing(story.rows[bundle_id], "a", Epoch(2))
    story.follow()
    story.begin()
    story.begin()
    story.wait(SETTINGS.release_limit_ms - 1)
    assert story.steps() == []
    story.wait(1)
    assert len(story.steps()) == 2
    story.begin()
    story.wait(SETTINGS.release_limit_ms)
    assert len(story.steps()) == 3


@pytest.mark.parametrize("voids", [False, True])
def test_an_agent_that_ends_closes_everything(*, voids: bool) -> None:
    """While the node still is a member, it waits for requests; later tables open nothing again."""
    story = owning()
    call = story.accept()
    story.book.end(story.now_ms, voids=voids)
    assert story.access() is Access.MOVED
    assert call.is_void is voids
    story.follow()
    if not voids:
        assert story.run() == []
        story.book.leave(call, story.now_ms)
    assert story.run() == ["releasing 0-10", "released 0-10 None"]
    story.follow()
    assert story.book.is_empty
    assert story.run() == []


def test_a_call_that_fails_is_the_last_one_for_its_bundle() -> None:
    """Nobody knows what the service has of it; the agent ends."""
    story = owning()
    story.write(releasing, "a")
    story.book.abandon(story.begin(), story.now_ms)
    assert story.book.is_empty
    assert story.run() == []


def test_a_release_that_was_given_up_does_not_speak_for_the_next_one() -> None:
    """The bundle has come back since, and is open."""
    story = owning()
    story.write(releasing, "a")
    call = story.begin()
    story.wait(SETTINGS.release_limit_ms)
    story.write(taken, "n")
    story.book.finish(call, story.now_ms)
    assert story.run() == ["assigned 0-10"]
    story.accept()
    story.write(releasing, "a")
    assert (story.run(), story.steps()) == ([], [])


def test_a_bundle_that_is_being_closed_is_not_served_whatever_its_row_says_meanwhile() -> None:
    """A leader that takes a release back changes nothing about the topics that are closed by then."""
    story = owning()
    before = story.rows[WHOLE]
    story.write(releasing, "a")
    call = story.begin()
    story.rows[WHOLE] = replace(before, version=story.rows[WHOLE].version + 1)
    story.follow()
    assert story.access() is Access.MIGRATING
    story.book.finish(call, story.now_ms)
    assert story.run() == ["assigned 0-10"]
    assert story.access() is Access.ACCEPT


def test_ends_of_requests_look_through_no_bundles_before_a_limit_may_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each end of a request may bring a look: with one look through all bundles each, their cost would be quadratic."""
    story = Story(count=16, settings=HandoffSettings(calls_at_once=16))
    for bundle_id in list(story.rows):
        story.write(taken, "n", bundle_id=bundle_id)
    story.run()
    requests = [story.accept(number << 28) for number in range(16)]
    looked_at: list[HeldBundle] = []
    limit_ms = CallLine.give_up_at_ms

    def noting(line: CallLine, held: HeldBundle, since_ms: int) -> int | None:
        looked_at.append(held)
        return limit_ms(line, held, since_ms)

    monkeypatch.setattr(CallLine, "give_up_at_ms", noting)
    for bundle_id in list(story.rows):
        story.write(releasing, "a", bundle_id=bundle_id)
    looked_at.clear()
    for request in requests:
        assert story.book.leave(request, story.now_ms)
        story.wait(1)
    assert len(looked_at) == 16, "each at the end of its own request"
    story.wait(HandoffSettings().shortest_limit_ms)
    assert len(set(looked_at)) == 16 < len(looked_at)


def test_a_hung_release_is_given_up_again_at_once_when_its_row_is_written_again() -> None:
    """A new leader, or a repair of the table, waits for the same word: it must not begin to wait for a whole limit."""
    story = owning()
    story.write(releasing, "a")
    story.begin()
    story.wait(SETTINGS.release_limit_ms)
    assert story.steps() == [BundleStep.RELEASED]
    story.rows[WHOLE] = replace(story.rows[WHOLE])
    story.follow()
    story.wait(0)
    assert story.steps() == [BundleStep.RELEASED]


def test_a_hung_release_is_given_up_at_once_for_a_later_row_too() -> None:
    """The node got the bundle back meanwhile, and has to release it to another one: the first call still hangs."""
    story = owning()
    story.write(releasing, "a")
    story.begin()
    story.wait(SETTINGS.release_limit_ms)
    story.write(assigning, "a")
    story.write(taken, "n")
    story.write(releasing, "b")
    story.wait(0)
    assert story.steps() == [BundleStep.RELEASED]
