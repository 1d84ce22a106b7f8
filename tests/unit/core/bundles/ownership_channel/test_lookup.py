"""Who owns a bundle, by the state of its record."""

import pytest

from controlplane.core.bundles.ownership_channel.lookup import (
    Answer,
    Asker,
    Deferral,
    Deferred,
    NoOwner,
    Owner,
    Refusal,
    Refused,
    answer_after_record,
    answer_at_deadline,
    look_up,
    wait_for_owner,
)
from controlplane.core.bundles.ownership_channel.record import OwnershipRecord
from controlplane.core.bundles.ownership_state import OwnershipState

ME = Asker("me", frozenset({"me", "a", "b"}))
UNREGISTERED = Asker("me", frozenset(), is_registered=False)
NOW, IN_FLIGHT_MS = 1_000, 30_000
CHANGING = Deferred(NOW + IN_FLIGHT_MS, Deferral.CHANGING)
LOST = Deferred(NOW + IN_FLIGHT_MS, Deferral.OWNER_LOST)


def record(state: OwnershipState, destination: str | None = None, source: str | None = None) -> OwnershipRecord:
    """A record of some version."""
    return OwnershipRecord(state, destination, source, 3)


@pytest.mark.parametrize(
    ("present", "answer", "unregistered"),
    [
        (None, NoOwner(), NoOwner()),
        (record(OwnershipState.INIT, "a"), NoOwner(), NoOwner()),
        (record(OwnershipState.FREE, None, "a"), NoOwner(), NoOwner()),
        (record(OwnershipState.DELETED, None, "a"), Refused(Refusal.DELETED), Refused(Refusal.DELETED)),
        (record(OwnershipState.OWNED, "a"), Owner("a", is_checked=True), Owner("a", is_checked=False)),
        (record(OwnershipState.OWNED, "dead"), LOST, Owner("dead", is_checked=False)),
        (record(OwnershipState.SPLITTING, None, "a"), Owner("a", is_checked=True), Owner("a", is_checked=False)),
        (record(OwnershipState.SPLITTING, "me", "dead"), LOST, Owner("dead", is_checked=False)),
        # A destination elsewhere is answered at once, dead or alive: only there one knows when it owns the bundle.
        (record(OwnershipState.ASSIGNING, "a"), Owner("a", is_checked=False), Owner("a", is_checked=False)),
        (record(OwnershipState.ASSIGNING, "dead"), Owner("dead", is_checked=False), Owner("dead", is_checked=False)),
        (record(OwnershipState.RELEASING, "a", "b"), Owner("a", is_checked=False), Owner("a", is_checked=False)),
        (record(OwnershipState.RELEASING, None, "b"), NoOwner(), NoOwner()),
        (record(OwnershipState.ASSIGNING, "me"), CHANGING, Owner("me", is_checked=False)),
        (record(OwnershipState.RELEASING, "me", "b"), CHANGING, Owner("me", is_checked=False)),
    ],
)
def test_the_answer_by_state(present: OwnershipRecord | None, answer: Answer, unregistered: Answer) -> None:
    """A node that has lost the registry answers from its table alone, so that clients are served all the same."""
    assert look_up(present, ME, NOW, IN_FLIGHT_MS) == answer
    assert look_up(present, UNREGISTERED, NOW, IN_FLIGHT_MS) == unregistered


def test_look_ups_of_a_bundle_share_their_deadline() -> None:
    """The second one is not deferred for longer than the first."""
    dead = record(OwnershipState.OWNED, "dead")
    assert look_up(dead, ME, NOW + 5, IN_FLIGHT_MS, NOW + IN_FLIGHT_MS) == LOST
    # The record that settles the ownership ends the deferral; until the caller has seen to that, nobody overtakes it.
    assert look_up(record(OwnershipState.OWNED, "a"), ME, NOW + 5, IN_FLIGHT_MS, NOW + IN_FLIGHT_MS) == CHANGING


def test_whoever_assigns_a_bundle_waits_for_its_owner() -> None:
    """The first look-up of a bundle publishes an assignment and is answered when that has become true."""
    assert wait_for_owner(None, ME, NOW, IN_FLIGHT_MS) == CHANGING
    assert wait_for_owner(record(OwnershipState.OWNED, "b"), ME, NOW, IN_FLIGHT_MS) == Owner("b", is_checked=True)


@pytest.mark.parametrize(
    ("present", "answer", "after_refused"),
    [
        (record(OwnershipState.OWNED, "a"), *[Owner("a", is_checked=True)] * 2),
        (record(OwnershipState.OWNED, "dead"), *[Refused(Refusal.OWNER_LOST)] * 2),
        (record(OwnershipState.OWNED, None, "a"), None, None),
        (record(OwnershipState.FREE), NoOwner(), None),
        (None, NoOwner(), None),
        (record(OwnershipState.DELETED, None, "a"), Refused(Refusal.DELETED), None),
        (record(OwnershipState.SPLITTING, None, "a"), None, None),
        (record(OwnershipState.ASSIGNING, "me"), None, None),
    ],
)
def test_a_record_that_settles_the_ownership_ends_the_deferral(
    present: OwnershipRecord | None, answer: Answer | None, after_refused: Answer | None
) -> None:
    """Whoever lost against another node's assignment learns the owner from the record that is left."""
    assert answer_after_record(present, ME) == answer
    assert answer_after_record(present, ME, was_taken=False) == after_refused


def test_a_node_that_shuts_down_ends_its_look_ups() -> None:
    """Clients ask another node then."""
    assert answer_after_record(None, ME, is_disabled=True) == Refused(Refusal.DISABLED)
    owned = record(OwnershipState.OWNED, "a")
    assert answer_after_record(owned, ME, is_disabled=True) == Refused(Refusal.DISABLED)
    forced = OwnershipRecord(OwnershipState.OWNED, "a", "me", 4, is_forced=True)
    assert answer_after_record(forced, ME, is_disabled=True) == Owner("a", is_checked=True)


@pytest.mark.parametrize(
    ("present", "answer"),
    [
        (None, NoOwner()),
        (record(OwnershipState.FREE), NoOwner()),
        (record(OwnershipState.OWNED, "a"), Owner("a", is_checked=True)),
        (record(OwnershipState.OWNED, "dead"), Refused(Refusal.OWNER_LOST)),
        (record(OwnershipState.SPLITTING, None, "a"), Owner("a", is_checked=True)),
        (record(OwnershipState.ASSIGNING, "me"), Refused(Refusal.TIMED_OUT)),
        (record(OwnershipState.RELEASING, "me", "a"), Refused(Refusal.TIMED_OUT)),
        (record(OwnershipState.DELETED, None, "a"), Refused(Refusal.TIMED_OUT)),
    ],
)
def test_at_the_deadline_the_present_owner_is_the_answer(present: OwnershipRecord | None, answer: Answer) -> None:
    """What is still changing then is an error, and the client asks again."""
    assert answer_at_deadline(present, ME) == answer
