"""Every order of what controllers and nodes can do, to a stated depth, and that the search finds what is wrong."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from controlplane.core.deciding import consent, slot_witness
from controlplane.core.deciding.bundles import hand_off
from controlplane.core.deciding.bundles.bundle_round import BundleRound
from controlplane.core.election import election, steps
from controlplane.core.election.election import Contender, Holder
from controlplane.core.election.messages import Acquire, ElectionEvent, FloorRaised, LeaseGone
from controlplane.core.election.steps import ControllerAction, ControllerPhase, ControllerTrigger, Transition
from controlplane.core.session.messages import SessionAction
from controlplane.core.session.node_session import NodeSession
from controlplane.core.values.identifiers import Term
from tests.exploration.any_lease import TurnUnderAnyLease
from tests.exploration.search import Explorer, Start
from tests.exploration.searches import (
    SEARCHES,
    SHALLOW_SEARCHES,
    AnyLeaseSearch,
    ControllerSearch,
    HandoffSearch,
    NodeSearch,
    unused_rows,
)
from tests.exploration.stores import Kafka
from tests.exploration.turns import Turn
from tests.helpers.sizes import IS_THOROUGH


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_no_interleaving_breaks_anything() -> None:
    """Two million worlds and more, each looked at."""
    found = [search.run() for search in SHALLOW_SEARCHES]
    assert [(one.broken, one.trace) for one in found] == [("", ())] * len(SHALLOW_SEARCHES)
    assert sum(sum(one.worlds) for one in found) >= 2_000_000


@pytest.mark.slow
@pytest.mark.timeout(1_800)
@pytest.mark.skipif(not IS_THOROUGH, reason="takes five minutes: make thorough, or python -m tests.exploration")
def test_no_deeper_one_breaks_anything_and_every_row_is_used() -> None:
    """A row that nothing leads to would be dead."""
    found = [search.run() for search in SEARCHES]
    assert [(one.broken, one.trace) for one in found] == [("", ())] * len(SEARCHES)
    assert unused_rows(found) == []
    (under_any_lease,) = (
        one for search, one in zip(SEARCHES, found, strict=True) if isinstance(search, AnyLeaseSearch)
    )
    assert under_any_lease.is_everything


@pytest.mark.parametrize("turn", [Turn, TurnUnderAnyLease])
def test_a_search_is_the_same_every_time(turn: type[Turn]) -> None:
    """Numbers depend on the order in which things are met, and that on nothing but the code."""
    assert Explorer(2, turn).search(Start.COLD, depth=7) == Explorer(2, turn).search(Start.COLD, depth=7)


def _row(
    phase: ControllerPhase, trigger: ControllerTrigger, then: ControllerPhase, *actions: ControllerAction
) -> Callable[[pytest.MonkeyPatch], None]:
    """A mistake in the table of the controller's loop."""
    return lambda patch: patch.setitem(steps.TRANSITIONS, (phase, trigger), Transition(then, actions))


def _take_any_term(patch: pytest.MonkeyPatch) -> None:
    """Whatever term the log holds, ahead of the opening and after it."""
    for mistake in (
        _row(
            ControllerPhase.READING_AHEAD,
            ControllerTrigger.TERM_USED,
            ControllerPhase.OPENING_WRITER,
            ControllerAction.OPEN_WRITER,
        ),
        _row(
            ControllerPhase.READING_LOG,
            ControllerTrigger.TERM_USED,
            ControllerPhase.CATCHING_UP,
            ControllerAction.CATCH_UP,
        ),
    ):
        mistake(patch)


def _forget(event: type[ElectionEvent]) -> Callable[[pytest.MonkeyPatch], None]:
    """A holder that is told something asks for any term at all, as if it knew none."""
    row = election.TRANSITIONS[Holder, event]
    asks = (Contender(Term(0), 0), Acquire(Term(0)))
    wrong = replace(row, follow=lambda *_: asks)  # type: ignore[arg-type]  # a pair as well, of no name
    return lambda patch: patch.setitem(election.TRANSITIONS, (Holder, event), wrong)


def _leave_transactions_open(patch: pytest.MonkeyPatch) -> None:
    """Opening a writer fences the predecessor and forgets to abort what it has sent."""
    patch.setattr(Kafka, "opened_by", lambda kafka, controller: kafka._replace(writer=controller))


def _trust_admissions(patch: pytest.MonkeyPatch) -> None:
    """A new member serves as soon as a heartbeat is acknowledged."""
    right = NodeSession._acknowledged  # noqa: SLF001 - the bug is in there

    def acknowledged(session: NodeSession, now_ms: int, sent_at_ms: int) -> list[SessionAction]:
        actions = right(session, now_ms, sent_at_ms)
        session.table_known_at_ms = session.table_known_at_ms or now_ms
        return actions

    patch.setattr(NodeSession, "_acknowledged", acknowledged)


def _count_from_acknowledgements(patch: pytest.MonkeyPatch) -> None:
    """A heartbeat counts as sent when it is acknowledged."""
    right = NodeSession._acknowledged  # noqa: SLF001 - the bug is in there
    patch.setattr(NodeSession, "_acknowledged", lambda session, now_ms, _: right(session, now_ms, now_ms))


def _hide_losses(patch: pytest.MonkeyPatch) -> None:
    """A late acknowledgement makes the node forget that its time was over, and passes for news of the table as well."""
    right = NodeSession._acknowledged  # noqa: SLF001 - the bug is in there

    def acknowledged(session: NodeSession, now_ms: int, sent_at_ms: int) -> list[SessionAction]:
        actions = right(session, now_ms, sent_at_ms)
        session.table_known_at_ms = session.table_known_at_ms and now_ms
        return actions

    patch.setattr(NodeSession, "_notice_log_loss", lambda *_: None)
    patch.setattr(NodeSession, "_acknowledged", acknowledged)


def _take_what_is_not_released(patch: pytest.MonkeyPatch) -> None:
    """No time passes before a bundle is taken whose owner says nothing."""
    patch.setattr(consent, "release_bound_ms", lambda _: 0)


def _move_slots_at_once(patch: pytest.MonkeyPatch) -> None:
    """A slot that is to be released is taken before anybody has read that."""

    class Told(consent.Consents):
        def why_released(self, *_: object, **__: object) -> str:
            return "it was told"

    patch.setattr(slot_witness, "Consents", Told)


def _leave_orders(patch: pytest.MonkeyPatch) -> None:
    """An order that was carried out stands, and is carried out again."""
    patch.setattr(BundleRound, "end_move", lambda *_: None)


def _leave_the_dead_their_bundles(patch: pytest.MonkeyPatch) -> None:
    """Nobody takes what a dead owner had; only its release goes on."""
    patch.setattr(hand_off, "_take_from_lost", lambda *_: None)


BUGS: dict[str, tuple[Callable[[pytest.MonkeyPatch], None], ControllerSearch | NodeSearch | HandoffSearch, str]] = {
    "a writer is opened without asking for the lease again": (
        _row(
            ControllerPhase.FOLLOWING,
            ControllerTrigger.LEASE_HELD,
            ControllerPhase.READING_AHEAD,
            ControllerAction.READ_AHEAD,
        ),
        ControllerSearch(2, Start.COLD, 4),
        "opens a writer and has not asked",
    ),
    "a term is opened without asking for the lease again": (
        _row(
            ControllerPhase.CATCHING_UP,
            ControllerTrigger.DONE,
            ControllerPhase.OPENING_TERM,
            ControllerAction.OPEN_TERM,
        ),
        ControllerSearch(2, Start.COLD, 8),
        "opens a term and has not asked",
    ),
    "no answer about the lease is taken for yes": (
        _row(
            ControllerPhase.CONFIRMING_AGAIN,
            ControllerTrigger.LEASE_UNCONFIRMED,
            ControllerPhase.OPENING_TERM,
            ControllerAction.OPEN_TERM,
        ),
        ControllerSearch(2, Start.CONTESTED, 8),
        "opens a term and has not asked",
    ),
    "the log is not read again once the others are fenced": (
        _row(
            ControllerPhase.OPENING_WRITER,
            ControllerTrigger.DONE,
            ControllerPhase.CATCHING_UP,
            ControllerAction.CATCH_UP,
        ),
        ControllerSearch(2, Start.CONTESTED, 8),
        "without knowing what the log holds",
    ),
    "a term that the log holds is opened": (
        _take_any_term,
        ControllerSearch(2, Start.LED, 10),
        "term 1 is opened twice",
    ),
    "the term of the log is forgotten": (
        _forget(FloorRaised),
        ControllerSearch(2, Start.LED, 6),
        "asks for a term above 0",
    ),
    "a leader forgets its own term when the lease is gone": (
        _forget(LeaseGone),
        ControllerSearch(2, Start.LED, 2),
        "asks for a term above 0",
    ),
    "a commit without an answer is taken for aborted": (
        _row(ControllerPhase.LEADING, ControllerTrigger.UNANSWERED, ControllerPhase.LEADING, ControllerAction.OBSERVE),
        ControllerSearch(2, Start.LED, 4),
        "commits while a commit of its own has no answer",
    ),
    "an aborted opening is taken for an open term": (
        _row(
            ControllerPhase.OPENING_TERM, ControllerTrigger.ABORTED, ControllerPhase.LEADING, ControllerAction.OBSERVE
        ),
        ControllerSearch(2, Start.CONTESTED, 8),
        "leads term 2, and the log says",
    ),
    "a fenced leader leads on with a new writer": (
        _row(
            ControllerPhase.LEADING,
            ControllerTrigger.FENCED,
            ControllerPhase.OPENING_WRITER,
            ControllerAction.DISCARD,
            ControllerAction.OPEN_WRITER,
        ),
        ControllerSearch(2, Start.CONTESTED, 8),
        "opens a writer and has not asked",
    ),
    "opening a writer leaves the predecessor's transaction open": (
        _leave_transactions_open,
        ControllerSearch(2, Start.CONTESTED, 11),
        "without knowing what the log holds",
    ),
    "a node that was just admitted serves without asking for the table": (
        _trust_admissions,
        NodeSearch(1, in_all_ways=False, depth=9),
        "n0 serves, and the log says that it is fenced",
    ),
    "a node counts its silence from the acknowledgement": (
        _count_from_acknowledgements,
        NodeSearch(1, in_all_ways=False, depth=7),
        "n0 serves, and the log says that it is fenced",
    ),
    "a late acknowledgement hides that a node's time was over": (
        _hide_losses,
        NodeSearch(1, in_all_ways=False, depth=7),
        "n0 serves, and the log says that it is fenced",
    ),
    "a release that no node has said is not waited for": (
        _take_what_is_not_released,
        HandoffSearch("a bundle is transferred", 4),
        "n1 and n2 serve the same hashes",
    ),
    "a slot is taken before its leader has released it": (
        _move_slots_at_once,
        HandoffSearch("a leadership moves in sync", 2),
        "n1 and n2 serve the slot",
    ),
    "an order stands after it was carried out": (
        _leave_orders,
        HandoffSearch("a bundle is unloaded", 1),
        "has not come to an end",
    ),
    "the bundles of the dead are left to them": (
        _leave_the_dead_their_bundles,
        HandoffSearch("a bundle is split by number", 1),
        "has not come to an end",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("bug", BUGS)
def test_the_search_finds(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """At exactly this depth and not before: the way there is a shortest one, to be followed with a finger."""
    make, search, broken = BUGS[bug]
    make(monkeypatch)
    found = search.run()
    assert broken in found.broken
    assert len(found.trace) == search.depth, found.trace
