"""The progress of the orders that one answer gave, from the decisions of the log."""

from dataclasses import replace

from controlplane.core.bundles.bundle import Bundle
from controlplane.core.bundles.events import BundleOrdersEnded, BundleOrdersGiven, BundlesAssigned
from controlplane.core.bundles.orders import BundleOrder, BundleOrderKind, EndedOrder, OrderOutcome
from controlplane.core.bundles.ownership_state import OwnershipState
from controlplane.core.intents.events import IntentAnswered, IntentOutcome
from controlplane.core.log.events import Event
from controlplane.inspection.answers import LoggedAnswer
from controlplane.inspection.bundle_orders import OrderProgress
from controlplane.inspection.readers import LoggedDecision
from tests.helpers.world import World

DONE, FAILED = OrderOutcome.DONE, OrderOutcome.FAILED
DECISION = World().decisions[0]
OWNED = Bundle("kv", 0, 16, "n1", OwnershipState.OWNED, version=1)
A, B, C, D, E = (replace(OWNED, lower=lower) for lower in range(5))


def logged(offset: int, *events: Event) -> LoggedDecision:
    """A decision with these events."""
    return LoggedDecision(replace(DECISION, events=events), offset, 0)


def transfers(*bundles: Bundle) -> BundleOrdersGiven:
    """Orders for bundles to go to n2."""
    return BundleOrdersGiven(tuple(BundleOrder(each.bundle_id, BundleOrderKind.TRANSFER, "n2") for each in bundles))


def answered(intent_id: str) -> IntentAnswered:
    """The answer to an intent."""
    return IntentAnswered(intent_id, "transfer_bundles", "ada", IntentOutcome.DONE, "")


def progress_of(answer: IntentAnswered, decision: LoggedDecision) -> OrderProgress:
    """The progress of what an answer in this decision gave."""
    return OrderProgress(LoggedAnswer(answer, decision))


def test_the_orders_of_other_answers_are_not_counted() -> None:
    """One decision may answer several intents, and give orders of its own after them."""
    first, second = answered("first"), answered("second")
    without = answered("without an order")
    decision = logged(7, transfers(A), first, without, transfers(B, C), second, transfers(D))
    assert list(progress_of(first, decision).standing) == [A.bundle_id]
    assert list(progress_of(without, decision).standing) == []
    progress = progress_of(second, decision)
    assert list(progress.standing) == [B.bundle_id, C.bundle_id]
    assert progress.next_offset == 8


def test_orders_that_a_deletion_replaces_are_not_its_own() -> None:
    """They end before its answer; those that it gives stand."""
    answer = answered("delete")
    replaced = BundleOrdersEnded((EndedOrder(A.bundle_id, FAILED, "its namespace is being deleted"),))
    given = BundleOrdersGiven((BundleOrder(A.bundle_id, BundleOrderKind.END),))
    progress = progress_of(answer, logged(7, replaced, given, answer))
    assert list(progress.standing) == [A.bundle_id]
    assert progress.ended == {}


def test_steps_within_the_decision_of_the_answer_count() -> None:
    """A node that takes part in no handoffs loses its bundle at once."""
    answer = answered("only")
    ended = BundleOrdersEnded((EndedOrder(A.bundle_id, DONE, "n2 owns it"),))
    progress = progress_of(answer, logged(7, transfers(A), answer, BundlesAssigned((A,)), ended))
    assert (progress.standing, progress.failed, progress.end_text()) == ({}, [], "1 order carried out")


def test_progress_says_how_far_each_order_is() -> None:
    """Of the first ones; the last step of a bundle counts, and steps of other bundles do not."""
    answer = answered("only")
    progress = progress_of(answer, logged(7, transfers(A, B, C, D), answer))
    assert progress.standing_text() == (
        f"4 of 4 orders left: {A.bundle_id}: transfer to n2, waits for its turn; "
        f"{B.bundle_id}: transfer to n2, waits for its turn; {C.bundle_id}: transfer to n2, waits for its turn; "
        "and 1 more"
    )
    releasing = replace(A, state=OwnershipState.RELEASING, next_owner="n2", version=2)
    assigning = replace(B, state=OwnershipState.ASSIGNING, owner=None, next_owner="n2", version=3)
    free = replace(C, state=OwnershipState.FREE, owner=None)
    progress.take(logged(8, BundlesAssigned((releasing, assigning, replace(C, owner="n3"), E))))
    progress.take(logged(9, BundlesAssigned((free,)), BundleOrdersEnded((EndedOrder(D.bundle_id, DONE, ""),))))
    assert progress.next_offset == 10
    assert progress.standing_text() == (
        f"3 of 4 orders left: {A.bundle_id}: transfer to n2, is Releasing by n1 to n2; "
        f"{B.bundle_id}: transfer to n2, is Assigning to n2; {C.bundle_id}: transfer to n2, is Free"
    )


def test_failed_orders_are_named_with_their_reasons() -> None:
    """Also if others were carried out. Orders that another answer gave for other bundles do not count."""
    answer = answered("only")
    progress = progress_of(answer, logged(7, transfers(A, B), answer))
    ended = (EndedOrder(A.bundle_id, DONE, "n2 owns it"), EndedOrder(B.bundle_id, FAILED, "n2 is gone"))
    progress.take(logged(8, BundleOrdersEnded((*ended, EndedOrder(E.bundle_id, FAILED, "")))))
    assert [each.bundle_id for each in progress.failed] == [B.bundle_id]
    assert progress.end_text() == f"1 of 2 orders failed: {B.bundle_id}: n2 is gone"
