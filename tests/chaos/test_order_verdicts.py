"""The judge of orders and tables names what was forged, and accuses nothing that is in order."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from controlplane.core.bundles.bundle import Bundle, Namespace
from controlplane.core.bundles.events import BundleOrdersEnded, BundleOrdersGiven
from controlplane.core.bundles.orders import BundleOrder, BundleOrderKind, EndedOrder, OrderOutcome
from controlplane.core.bundles.ownership_channel.live_rows import assigning, freed, releasing, splitting
from controlplane.core.bundles.ownership_state import OwnershipState
from controlplane.core.cluster.policy import ClusterPolicy
from controlplane.core.intents.events import IntentAnswered, IntentOutcome
from controlplane.core.intents.intent import Intent, IntentKind
from controlplane.core.log.decision import Decision
from controlplane.core.log.events import Event
from controlplane.core.values.identifiers import Epoch, Seq, Term
from tests.chaos.order_verdicts import judge_orders, judge_tables, longest_order_ms, unanswered, unowned
from tests.helpers.bundle_tables import owned_bundles, table_of

INTENT = Intent("i1", IntentKind.UNLOAD_BUNDLES.value, "chaos", {"bundles": "a"})
LIMIT_MS = longest_order_ms(ClusterPolicy())


def log(*decisions: tuple[int, Sequence[Event]]) -> list[Decision]:
    """Decisions with these events, each at its log time."""
    blank = Decision(Seq(0), Term(1), Epoch(1), "log", "c1", 3, 0, (), (), {}, "", None, "", "")
    return [
        replace(blank, seq=Seq(seq), decided_at_ms=at_ms, events=tuple(events))
        for seq, (at_ms, events) in enumerate(decisions, 1)
    ]


def given(bundle_id: str, kind: BundleOrderKind = BundleOrderKind.UNLOAD) -> BundleOrdersGiven:
    """An order."""
    return BundleOrdersGiven((BundleOrder(bundle_id, kind),))


def ended(bundle_id: str, outcome: OrderOutcome = OrderOutcome.DONE) -> BundleOrdersEnded:
    """Its end."""
    return BundleOrdersEnded((EndedOrder(bundle_id, outcome, "why"),))


def answered(outcome: IntentOutcome, detail: str = "") -> IntentAnswered:
    """An answer to :data:`INTENT`."""
    return IntentAnswered("i1", INTENT.kind, "chaos", outcome, detail)


def test_orders_are_counted_by_what_came_of_them() -> None:
    """The longest one counts in log time, and one that has not ended stands."""
    verdict = judge_orders(
        [INTENT],
        2,
        log(
            (100, [answered(IntentOutcome.DONE), given("a"), given("b", BundleOrderKind.SPLIT)]),
            (400, [ended("a"), ended("b", OrderOutcome.FAILED)]),
            (500, [given("a", BundleOrderKind.TRANSFER)]),
        ),
    )
    assert (verdict.done, verdict.failed) == ({"unload": 1}, {"split": 1})
    assert (verdict.longest_ms, verdict.answered, verdict.refused, verdict.unacknowledged) == (300, 1, 0, 2)
    assert verdict.standing == {"a": (BundleOrderKind.TRANSFER, 500)}
    assert not verdict.wrong


def test_an_order_that_takes_too_long_is_named() -> None:
    """By a millisecond of log time."""
    assert not judge_orders([], 0, log((0, [given("a")]), (LIMIT_MS, [ended("a")]))).wrong
    assert judge_orders([], 0, log((0, [given("a")]), (LIMIT_MS + 1, [ended("a")]))).wrong == [
        f"an order took {LIMIT_MS + 1} ms of log time; {LIMIT_MS} are bounded"
    ]


def test_an_order_that_stands_for_too_long_is_named() -> None:
    """By the log time of the last decision."""
    assert not judge_orders([], 0, log((0, [given("a")]), (LIMIT_MS, []))).wrong
    assert judge_orders([], 0, log((0, [given("a")]), (LIMIT_MS + 1, []))).wrong == [
        f"a: unload stands for {LIMIT_MS + 1} ms of log time; {LIMIT_MS} are bounded"
    ]


def test_orders_that_are_given_or_ended_twice_are_named() -> None:
    """A bundle has one order at a time."""
    wrong = judge_orders([], 0, log((0, [given("a")]), (1, [given("a")]), (2, [ended("a")]), (3, [ended("a")]))).wrong
    assert wrong == ["seq 2: a has an order already", "seq 4: an order of a ended that did not stand"]


def test_a_refusal_is_expected_where_nodes_die_and_orders_stand() -> None:
    """Any other refusal is named, and a second answer."""
    for detail in (
        "bundle 'a' is ordered already: unload; it takes",
        "node 'n1' is fenced: it cannot own bundles until it joins again",
    ):
        verdict = judge_orders([INTENT], 0, log((0, [answered(IntentOutcome.REFUSED, detail)])))
        assert (verdict.refused, verdict.wrong) == (1, [])
    (wrong,) = judge_orders([INTENT], 0, log((0, [answered(IntentOutcome.REFUSED, "no right to")]))).wrong
    assert "was refused: no right to" in wrong
    (wrong,) = judge_orders(
        [INTENT], 0, log((0, [answered(IntentOutcome.DONE)]), (1, [answered(IntentOutcome.DONE)]))
    ).wrong
    assert wrong == "intent i1 was answered 2 times"


def test_an_intent_without_an_answer_is_named() -> None:
    """Kafka acknowledged it, so a leader has to read it."""
    assert unanswered([INTENT], log((0, []))) == ["i1"]
    assert not unanswered([INTENT], log((0, [answered(IntentOutcome.DONE)])))


BUNDLES = owned_bundles("shop", 4)
FIRST = BUNDLES[0]
EPOCH = Epoch(7)


@pytest.mark.parametrize(
    "row",
    [
        FIRST,
        releasing(FIRST, "n2", EPOCH),
        releasing(FIRST, None, EPOCH),
        freed(releasing(FIRST, None, EPOCH), EPOCH),
        assigning(releasing(FIRST, "n2", EPOCH), "n2", EPOCH),
        splitting(FIRST, (), "", EPOCH),
    ],
    ids=lambda row: row.state.value,
)
def test_a_bundle_with_an_owner_or_in_a_step_is_in_order(row: Bundle) -> None:
    """At the end of a run every one is owned."""
    table = table_of([row, *BUNDLES[1:]])
    assert not judge_tables([table])
    assert bool(unowned(table)) == (row.state is not OwnershipState.OWNED)


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        (replace(FIRST, owner=None), "is Owned with owner None"),
        (replace(FIRST, next_owner="n2"), "is Owned with owner n1, next owner n2"),
        (replace(FIRST, owner="n9"), "is owned by n9, which does not live"),
        (replace(FIRST, state=OwnershipState.ASSIGNING), "is Assigning with owner n1, next owner None"),
        (replace(FIRST, state=OwnershipState.FREE), "is Free with owner n1"),
        (replace(FIRST, state=OwnershipState.DELETED), "is Deleted"),
    ],
)
def test_a_bundle_without_one_owner_or_a_step_is_named(row: Bundle, problem: str) -> None:
    """With the epoch of the table."""
    (said,) = judge_tables([table_of([row, *BUNDLES[1:]])])
    assert said.startswith(f"epoch 7: {FIRST.bundle_id}")
    assert problem in said


def test_bundles_that_do_not_tile_are_named() -> None:
    """A gap, an overlap, an end that is missing, and a namespace without any."""
    (gap,) = judge_tables([table_of([BUNDLES[0], *BUNDLES[2:]])])
    assert "do not tile" in gap
    (overlap,) = judge_tables([table_of([*BUNDLES[:3], replace(BUNDLES[3], lower=BUNDLES[2].lower + 1)])])
    assert "do not tile" in overlap
    (end,) = judge_tables([table_of(BUNDLES[:3])])
    assert "end at" in end
    (none,) = judge_tables([table_of([], namespaces=[Namespace("shop", 4)])])
    assert "end at 0x00000000" in none


def test_an_owner_that_was_fenced_is_none() -> None:
    """Its bundles have to be owned by others in the same epoch."""
    table = table_of(BUNDLES, fenced=["n1"])
    assert len(judge_tables([table])) == len(unowned(table)) == len(BUNDLES)
