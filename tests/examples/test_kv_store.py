"""The key-value example's fencing rules, and a property: whatever happens, an acknowledged PUT is in every leader."""

import pytest

from examples.kv.store import GRACE_S, Holding, Range, Refused, Row, SlotStore, Token, Value, Version

SLOT = 7


def row(leader: str, *followers: str, me: str, leader_epoch: int, term: int = 1) -> Row:
    """The slot's row as ``me`` sees it."""
    return Row(leader == me, Token(term, leader_epoch), leader, followers)


def leading(*followers: str, leader_epoch: int = 5) -> SlotStore:
    """The store of node ``a`` that leads the slot completely."""
    store = SlotStore()
    store.adopt(leader_epoch, {SLOT: row("a", *followers, me="a", leader_epoch=leader_epoch)}, 0)
    complete(store)
    return store


def following(leader_epoch: int = 5) -> SlotStore:
    """The store of node ``b`` that follows ``a`` and has not fetched yet."""
    store = SlotStore()
    store.adopt(leader_epoch, {SLOT: row("a", "b", me="b", leader_epoch=leader_epoch)}, 0)
    return store


def everything(through: int, **values: Value) -> Holding:
    """A complete holder's answer."""
    return Holding(values, (Range(0, through),), through)


def complete(store: SlotStore, **values: Value) -> None:
    """End the slot's fetch."""
    job = store.ticket(SLOT)
    assert job is not None
    assert store.fetched(job[0], everything(store.epoch, **values))


def refusal(request: object, *arguments: object) -> str:
    """With what a request is refused."""
    with pytest.raises(Refused) as refused:
        request(*arguments)  # type: ignore[operator]  # any bound method of a store
    return refused.value.status


def test_only_a_complete_slot_leader_serves() -> None:
    """A slot that is not held, only followed, or still fetched answers neither GET nor PUT."""
    assert refusal(SlotStore().put, SLOT, "k", "1") == "moved"
    assert refusal(SlotStore().get, SLOT, "k") == "moved"
    assert refusal(following().get, SLOT, "k") == "moved"
    gained = SlotStore()
    gained.adopt(5, {SLOT: row("a", me="a", leader_epoch=5)}, 0)
    assert refusal(gained.put, SLOT, "k", "1") == "migrating"
    complete(gained)
    gained.put(SLOT, "k", "1")
    assert gained.get(SLOT, "k") == "1"


def test_a_fetch_fences_the_old_leader() -> None:
    """Once a newer leader has fetched, the old one acknowledges nothing that the new one might lack."""
    old = leading("b")
    old.put(SLOT, "k", "1")
    answer = old.fetch_as_leader(SLOT, Token(1, 6))
    assert answer.covered == (Range(0, 5),)
    assert answer.values["k"].text == "1"
    assert refusal(old.put, SLOT, "k", "2") == "moved"
    assert refusal(old.get, SLOT, "k") == "moved"


def test_the_slot_leader_epoch_decides_also_across_terms() -> None:
    """A table of a newer term with the same slot leader is no newer leadership: it must not fence anybody."""
    store = leading("b")
    store.fetch_as_leader(SLOT, Token(9, 5))
    store.put(SLOT, "k", "1")
    assert store.get(SLOT, "k") == "1"


def test_a_fenced_leader_serves_again_only_under_a_newer_row() -> None:
    """A node that led, was overtaken, and leads again by the table is not held back by the old fence."""
    store = leading("b")
    store.fetch_as_leader(SLOT, Token(1, 6))
    store.adopt(8, {SLOT: row("a", "b", me="a", leader_epoch=8)}, 0)
    value, _ = store.put(SLOT, "k", "1")
    assert value.version == Version(8, 1)


def test_a_copy_under_an_older_leadership_is_refused() -> None:
    """A follower that knows a newer leader, by its row or by a fetch, lets the old one acknowledge nothing."""
    by_row = following(leader_epoch=6)
    assert refusal(by_row.copy, SLOT, Token(1, 5), 5, "k", Value("1", Version(5, 1))) == "fenced"
    by_fetch = following(leader_epoch=5)
    by_fetch.fetch_as_leader(SLOT, Token(1, 6))
    assert refusal(by_fetch.copy, SLOT, Token(1, 5), 5, "k", Value("1", Version(5, 1))) == "fenced"


def test_a_copy_for_a_slot_that_is_not_held_is_refused() -> None:
    """A copy counts only where the table will look for it: the leader must not acknowledge by a stranger."""
    store = following()
    value = Value("1", Version(5, 1))
    assert refusal(store.copy, SLOT + 1, Token(1, 5), 5, "k", value) == "moved"
    assert refusal(store.copy, SLOT + 1, Token(1, 6), 6, "k", value) == "behind"
    store.adopt(6, {}, 0)
    assert refusal(store.copy, SLOT, Token(1, 6), 6, "k", value) == "moved"


def test_copies_during_a_fetch_win_over_older_fetched_values() -> None:
    """A PUT that was copied while the follower fetched is newer than what the fetch brings, whatever comes first."""
    store = following()
    store.copy(SLOT, Token(1, 5), 5, "k", Value("new", Version(5, 2)))
    complete(store, k=Value("old", Version(5, 1)), other=Value("1", Version(4, 9)))
    values = store.fetch_as_leader(SLOT, Token(1, 6)).values
    assert {key: value.text for key, value in values.items()} == {"k": "new", "other": "1"}


def test_an_incomplete_holder_is_no_complete_source() -> None:
    """What an incomplete holder has is given out, but never as all there is."""
    store = following()
    value = Value("1", Version(5, 1))
    store.copy(SLOT, Token(1, 5), 5, "k", value)
    assert store.fetch_as_leader(SLOT, Token(1, 6)) == Holding({"k": value}, (Range(5, 5),), 5)
    assert not SlotStore().fetch_as_leader(SLOT, Token(1, 6)).covered


def test_a_promoted_complete_follower_serves_at_once() -> None:
    """A leader's death costs no fetch where a complete follower takes its place; its versions are newer."""
    store = following()
    complete(store, k=Value("1", Version(5, 3)))
    store.adopt(6, {SLOT: row("b", me="b", leader_epoch=6)}, 0)
    assert store.incomplete() == []
    assert store.get(SLOT, "k") == "1"
    assert store.put(SLOT, "k", "2")[0].version == Version(6, 1)


def test_a_follower_may_fetch_only_from_a_leader_that_copies_to_it() -> None:
    """A leader with an older table would not copy its next PUT to the requester: the fetch has to wait."""
    store = leading("b")
    assert store.fetch_as_follower(SLOT, Token(1, 5), 5, "b") == everything(5)
    assert refusal(store.fetch_as_follower, SLOT, Token(1, 5), 6, "b") == "behind"
    assert refusal(store.fetch_as_follower, SLOT, Token(1, 5), 5, "c") == "moved"
    assert refusal(following().fetch_as_follower, SLOT, Token(1, 5), 5, "b") == "moved"
    gained = SlotStore()
    gained.adopt(5, {SLOT: row("a", "b", me="a", leader_epoch=5)}, 0)
    assert refusal(gained.fetch_as_follower, SLOT, Token(1, 5), 5, "b") == "migrating"


def test_a_lost_slot_stays_readable_for_a_while() -> None:
    """The old holder says until when it had everything, and forgets it after the grace period."""
    store = leading("b")
    store.put(SLOT, "k", "1")
    store.adopt(6, {}, 10)
    store.adopt(8, {}, 11)
    assert refusal(store.get, SLOT, "k") == "moved"
    answer = store.fetch_as_leader(SLOT, Token(1, 9))
    assert (answer.covered, answer.table_epoch) == ((Range(0, 5),), 8)
    store.adopt(9, {}, 10 + GRACE_S + 1)
    assert not store.fetch_as_leader(SLOT, Token(1, 9)).values


def test_only_what_joins_on_completes_a_slot() -> None:
    """Who held the slot some time ago may lack what others acknowledged since: its values count, its word does not."""
    store = SlotStore()
    store.adopt(9, {SLOT: row("a", me="a", leader_epoch=9)}, 0)
    job = store.ticket(SLOT)
    assert job is not None
    assert not store.fetched(job[0], Holding({"k": Value("1", Version(5, 1))}, (Range(0, 4),), 9))
    assert refusal(store.get, SLOT, "k") == "migrating"
    assert not store.fetched(job[0], Holding({}, (Range(6, 8),), 9))
    assert store.fetched(job[0], Holding({}, (Range(0, 5),), 9))
    assert store.get(SLOT, "k") == "1"


def test_what_joins_on_completes_a_slot_in_any_order() -> None:
    """The oldest range may be the first answer: it counts once the one between has come."""
    store = SlotStore()
    store.adopt(9, {SLOT: row("a", me="a", leader_epoch=9)}, 0)
    job = store.ticket(SLOT)
    assert job is not None
    assert not store.fetched(job[0], Holding({}, (Range(0, 3),), 9))
    assert not store.fetched(job[0], Holding({}, (Range(6, 8),), 9))
    assert store.fetched(job[0], Holding({}, (Range(2, 6),), 9))


def test_two_that_followed_in_turns_complete_each_other() -> None:
    """The leader died just after its follower was replaced, and the former follower follows again.

    ``b`` has everything until it was replaced, ``c`` everything since. Both would be asked, and say what they have.
    """
    former, latter = following(), SlotStore()
    complete(former, k=Value("1", Version(5, 1)))
    former.adopt(6, {}, 0)
    latter.adopt(6, {SLOT: row("a", "c", me="c", leader_epoch=5)}, 0)
    former.adopt(7, {SLOT: row("c", "b", me="b", leader_epoch=7)}, 1)
    latter.adopt(7, {SLOT: row("c", "b", me="c", leader_epoch=7)}, 1)
    job = latter.ticket(SLOT)
    assert job is not None
    assert latter.fetched(job[0], former.fetch_as_leader(SLOT, Token(1, 7)))
    assert latter.get(SLOT, "k") == "1"


def test_what_a_node_had_before_it_lost_the_slot_completes_it_once_the_rest_has_come() -> None:
    """The same, but the former follower leads now."""
    former = following()
    complete(former, k=Value("1", Version(5, 1)))
    former.adopt(6, {}, 0)
    former.adopt(8, {SLOT: row("b", "c", me="b", leader_epoch=8)}, 1)
    job = former.ticket(SLOT)
    assert job is not None
    assert former.fetched(job[0], Holding({}, (Range(6, 7),), 8))
    assert former.get(SLOT, "k") == "1"


def test_a_slot_that_a_skipped_epoch_may_have_given_to_others_covers_nothing() -> None:
    """Lost and gained by one table: others may have held it in the epochs that were skipped."""
    store = following()
    complete(store)
    store.adopt(8, {}, 0)
    store.adopt(8, {SLOT: row("b", me="b", leader_epoch=8)}, 0)
    job = store.ticket(SLOT)
    assert job is not None
    assert not store.fetched(job[0], Holding({}, (), 8))


def test_a_slot_that_was_lost_and_gained_again_has_to_be_fetched_again() -> None:
    """Meanwhile others went on without this node: what it kept is old, and an older fetch must not complete it."""
    store = following()
    job = store.ticket(SLOT)
    assert job is not None
    complete(store)
    store.adopt(6, {}, 0)
    store.adopt(7, {SLOT: row("a", "b", me="b", leader_epoch=5)}, 1)
    assert not store.fetched(job[0], everything(9))
    assert store.incomplete() == [SLOT]
    job = store.ticket(SLOT)
    assert job is not None
    assert not store.fetched(job[0], Holding({}, (), 9))


def test_a_fetch_under_a_former_leader_does_not_complete_the_slot() -> None:
    """The answer of a leader that is one no more may lack what the present one has acknowledged."""
    store = following()
    job = store.ticket(SLOT)
    assert job is not None
    store.adopt(6, {SLOT: row("c", "b", me="b", leader_epoch=6)}, 0)
    assert not store.fetched(job[0], everything(9))


def test_counters_go_on_behind_fetched_values() -> None:
    """A process that succeeds itself under the same leadership must not give out a version twice."""
    store = SlotStore()
    store.adopt(5, {SLOT: row("a", "b", me="a", leader_epoch=5)}, 0)
    complete(store, k=Value("1", Version(5, 41)))
    assert store.put(SLOT, "other", "2")[0].version == Version(5, 42)


def test_an_older_table_changes_nothing() -> None:
    """Two threads may bring tables in the wrong order; the store never goes back."""
    store = leading("b", leader_epoch=5)
    store.adopt(4, {}, 0)
    assert store.put(SLOT, "k", "1")
