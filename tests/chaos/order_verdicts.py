"""Judges what came of the orders of bundles, and whether every table has each bundle in good order."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from controlplane.core.bundles.bundle import HASH_SPACE, Bundle
from controlplane.core.bundles.events import BundleOrdersEnded, BundleOrdersGiven
from controlplane.core.bundles.orders import BundleOrderKind, OrderOutcome
from controlplane.core.bundles.ownership_state import OwnershipState
from controlplane.core.cluster.policy import ClusterPolicy
from controlplane.core.deciding.consent import release_bound_ms
from controlplane.core.intents.events import IntentAnswered, IntentOutcome
from controlplane.core.intents.intent import Intent
from controlplane.core.log.decision import Decision
from controlplane.core.routing.replica import RoutingTable
from controlplane.core.values.identifiers import NodeId

EXPECTED_REFUSALS: Final = tuple(
    re.compile(pattern)
    for pattern in (
        r"bundle '.*' is ordered already: ",
        r"there is no bundle '.*': its hashes are in ",
        r"there is no namespace '.*'",
        r"namespace '.*' is being deleted",
        r"namespace '.*' exists already",
        r"node '.*' (is fenced|has left): it cannot own bundles until it joins again",
        r"node '.*' drains: it receives no bundles",
        r"bundle '.*' cannot be split",
        r"bundle '.*' has no owner that could split it",
    )
)
"""Why a leader refuses an order that was asked for by an old table, while nodes die and other orders stand."""


def longest_order_ms(policy: ClusterPolicy) -> int:
    """The log time within which an order has to come to its end, while nodes and leaders die one after the other.

    It may begin only when a former process of the owner has certainly stopped, then the owner may say nothing, and then
    two next owners in turn may open nothing. Less would do for an order that meets one fault.
    """
    return 2 * release_bound_ms(policy.silence_limit_ms) + 2 * policy.handoff_limit_ms


@dataclass(slots=True)
class OrderVerdict:
    """What came of the orders.

    Attributes:
        done: orders that were carried out, by kind.
        failed: orders that failed, by kind.
        answered: intents that were answered.
        refused: those of them that were refused.
        unacknowledged: intents that Kafka did not acknowledge.
        longest_ms: the log time from the beginning of an order to its end, of the longest one.
        standing: the orders that have not ended, by bundle id, with the log time at which each was given.
        wrong: a sentence for each promise that was not kept.
    """

    done: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)
    answered: int = 0
    refused: int = 0
    unacknowledged: int = 0
    longest_ms: int = 0
    standing: dict[str, tuple[BundleOrderKind, int]] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)


def judge_orders(acknowledged: Iterable[Intent], unacknowledged: int, decisions: Sequence[Decision]) -> OrderVerdict:
    """Judge every order up to the end of the log. Whether orders may still stand there is for the caller to say."""
    verdict = OrderVerdict(unacknowledged=unacknowledged)
    answers: defaultdict[str, list[IntentAnswered]] = defaultdict(list)
    for decision in decisions:
        for event in decision.events:
            match event:
                case IntentAnswered():
                    answers[event.intent_id].append(event)
                case BundleOrdersGiven(orders=orders):
                    for order in orders:
                        if order.bundle_id in verdict.standing:
                            verdict.wrong.append(f"seq {decision.seq}: {order.bundle_id} has an order already")
                        verdict.standing[order.bundle_id] = order.kind, decision.decided_at_ms
                case BundleOrdersEnded():
                    _end(verdict, decision, event)
                case _:
                    pass
    verdict.wrong += _wrong_answers(acknowledged, answers, verdict)
    verdict.wrong += _too_long(verdict, decisions[-1].decided_at_ms if decisions else 0)
    return verdict


def _too_long(verdict: OrderVerdict, now_ms: int) -> Iterator[str]:
    """The orders that took, or stand for, more log time than they may."""
    limit_ms = longest_order_ms(ClusterPolicy())
    if verdict.longest_ms > limit_ms:
        yield f"an order took {verdict.longest_ms} ms of log time; {limit_ms} are bounded"
    for bundle_id, (kind, given_at_ms) in verdict.standing.items():
        if now_ms - given_at_ms > limit_ms:
            yield f"{bundle_id}: {kind.value} stands for {now_ms - given_at_ms} ms of log time; {limit_ms} are bounded"


def _end(verdict: OrderVerdict, decision: Decision, event: BundleOrdersEnded) -> None:
    for ended in event.ended:
        if ended.bundle_id not in verdict.standing:
            verdict.wrong.append(f"seq {decision.seq}: an order of {ended.bundle_id} ended that did not stand")
            continue
        kind, given_at_ms = verdict.standing.pop(ended.bundle_id)
        (verdict.done if ended.outcome is OrderOutcome.DONE else verdict.failed)[kind.value] += 1
        verdict.longest_ms = max(verdict.longest_ms, decision.decided_at_ms - given_at_ms)


def _wrong_answers(
    acknowledged: Iterable[Intent], answers: dict[str, list[IntentAnswered]], verdict: OrderVerdict
) -> Iterator[str]:
    for intent in acknowledged:
        given = answers.get(intent.intent_id, [])
        if len(given) > 1:
            yield f"intent {intent.intent_id} was answered {len(given)} times"
        for answer in given:
            verdict.answered += 1
            verdict.refused += answer.outcome is IntentOutcome.REFUSED
            is_expected = any(pattern.match(answer.detail) for pattern in EXPECTED_REFUSALS)
            if answer.outcome is not IntentOutcome.DONE and not is_expected:
                asked = f"{intent.kind} {dict(intent.arguments)}"
                yield f"intent {intent.intent_id} ({asked}) was {answer.outcome.value}: {answer.detail}"


def unanswered(acknowledged: Iterable[Intent], decisions: Sequence[Decision]) -> list[str]:
    """The acknowledged intents that the log does not answer."""
    answered = {
        event.intent_id for decision in decisions for event in decision.events if isinstance(event, IntentAnswered)
    }
    return [intent.intent_id for intent in acknowledged if intent.intent_id not in answered]


def judge_tables(tables: Iterable[RoutingTable]) -> list[str]:
    """A sentence for each bundle that is in no good order in a table, and each namespace whose bundles do not tile."""
    return [f"epoch {table.epoch}: {problem}" for table in tables for problem in _problems(table)]


def unowned(table: RoutingTable) -> list[str]:
    """The bundles that are in the middle of a step, or without an owner that lives."""
    living = _living(table)
    return [
        f"{bundle_id} is {bundle.ownership_state.value}, its owner is {bundle.owner}"
        for bundle_id, bundle in sorted(table.bundles.items())
        if bundle.ownership_state is not OwnershipState.OWNED or bundle.owner not in living
    ]


def _problems(table: RoutingTable) -> Iterator[str]:
    living = _living(table)
    by_namespace: dict[str, list[Bundle]] = {name: [] for name in table.namespaces}
    for bundle in table.bundles.values():
        by_namespace.setdefault(bundle.namespace, []).append(bundle)
        if (problem := _row_problem(bundle)) is not None:
            yield problem
        if bundle.owner is not None and bundle.owner not in living:
            yield f"{bundle.bundle_id} is owned by {bundle.owner}, which does not live"
    for name, bundles in by_namespace.items():
        end = 0
        for bundle in sorted(bundles, key=lambda row: row.lower):
            if bundle.lower != end:
                yield f"the bundles of {name} do not tile: {bundle.bundle_id} follows on 0x{end:08x}"
            end = bundle.end
        if end != HASH_SPACE:
            yield f"the bundles of {name} end at 0x{end:08x}"


def _living(table: RoutingTable) -> set[NodeId]:
    return {node_id for node_id, row in table.nodes.items() if row.status.lives}


def _row_problem(bundle: Bundle) -> str | None:
    """Why a row names neither one owner nor a step in which its next owner is named or about to be chosen."""
    state, owner, next_owner = bundle.ownership_state, bundle.owner, bundle.next_owner
    is_good = {
        OwnershipState.FREE: owner is None and next_owner is None,
        OwnershipState.OWNED: owner is not None and next_owner is None,
        OwnershipState.RELEASING: owner is not None and owner != next_owner,
        OwnershipState.ASSIGNING: owner is None and next_owner is not None,
        OwnershipState.SPLITTING: owner is not None and next_owner is None,
    }.get(state, False)
    return None if is_good else f"{bundle.bundle_id} is {state.value} with owner {owner}, next owner {next_owner}"
