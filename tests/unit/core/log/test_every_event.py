"""Every kind of event, walked through all that it has to pass; what is missing of a new one is named here.

What an event does and calls for is said where it is defined. Nothing is listed by hand here: a kind that is added to
the union is asked for at each of these places, and by tests/simulation/test_seeds.py among what the simulation does.
"""

import json
from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple

import pytest

from controlplane.codec.decisions import DecisionAssembler, encode_decision
from controlplane.codec.needed_level import needed_level
from controlplane.core.bundles.bundle import assign_orphans
from controlplane.core.bundles.events import BundlesAssigned
from controlplane.core.deciding.planning import slot_request
from controlplane.core.log.apply import apply
from controlplane.core.log.decision import Decision
from controlplane.core.log.draft import Draft
from controlplane.core.log.events import EVENT_TYPES, Event
from controlplane.core.log.row_changes import changed_rows, rows_of
from controlplane.core.log.snapshots.body import pieces_of
from controlplane.core.log.state import State, wrong_digests
from controlplane.core.slots.events import PlanDropped, PlanMade, ReplicasLeft, SlotsAssigned
from controlplane.core.values.canonical import CanonicalValue, canonical_bytes, from_canonical, to_canonical
from controlplane.core.values.events import DECLARED, CallsFor, nodes_of
from controlplane.inspection.decisions import decision_documents
from controlplane.inspection.readers import LoggedDecision
from tests.golden.frozen import RECORDS, decode_frozen, read_json
from tests.helpers.logs import complaints_of
from tests.helpers.recorded_log import RecordedLog
from tests.helpers.tour import tour

PACING = {PlanDropped, PlanMade, SlotsAssigned, ReplicasLeft, BundlesAssigned}


class Step(NamedTuple):
    """An event where it happened."""

    before: State
    event: Event
    after: State
    decision: Decision


def steps_of(decisions: Sequence[Decision]) -> list[Step]:
    """Every event of a log with the states around it; the numbers of the log are those of the decision before."""
    world_state, found = State(), []
    for decision in decisions:
        for event in decision.events:
            after = apply(world_state, event)
            found.append(Step(world_state, event, after, decision))
            world_state = after
    return found


STEPS = steps_of(tour().decisions)


def of_kind(kind: type[Event]) -> list[Step]:
    """Where events of a kind happened; the tour has to have one."""
    found = [step for step in STEPS if isinstance(step.event, kind)]
    assert found, f"no input of tests/helpers/tour.py leads to {kind.__name__}: add one, and what decides it"
    return found


EVERY_KIND = pytest.mark.parametrize("kind", EVENT_TYPES, ids=lambda kind: kind.__name__)


@EVERY_KIND
def test_it_declares_what_it_calls_for(kind: type[Event]) -> None:
    """``@event(calls_for=...)`` stands at its class: planner and verification go by it."""
    assert kind in DECLARED


class Planned(NamedTuple):
    """Of what a slot policy is asked, all that a plan has to follow at once; rows and memory are its own answers."""

    nodes: object
    renewed: object
    policy: object
    pins: object
    exclusions: object
    paused: bool


def planned_from(draft: Draft) -> Planned:
    """What a plan after a draft's events would begin with."""
    request = slot_request(draft, tour().observations, 0)
    asked = (request.nodes, request.renewed, request.policy, request.pins, request.exclusions)
    return Planned(*asked, draft.state.slots.paused)


def lacks_owners(state: State) -> bool:
    """Whether bundles would get other owners, those aside that a handoff has just freed, or is about to assign."""
    held = tuple(
        each
        for each in state.bundles.by_id.values()
        if each.former_owner is None and not each.ownership_state.is_in_flight
    )
    return bool(assign_orphans(held, tuple(sorted(state.membership.owner_ids))))


@EVERY_KIND
def test_it_calls_for_what_it_changes(kind: type[Event]) -> None:
    """Whatever a plan would begin with otherwise has to be planned at once, and nothing is planned in vain."""
    changes_plan = changes_owners = False
    for step in of_kind(kind):
        if not step.before.log_id:
            continue  # the first event of a log, before which there is nobody to plan for
        before, after = Draft(step.before), Draft(step.before)
        after.add(step.event)
        is_resumed = step.before.slots.paused > step.after.slots.paused
        has_changed = planned_from(before)._replace(paused=False) != planned_from(after)._replace(paused=False)
        changes_plan |= has_changed or is_resumed
        changes_owners |= lacks_owners(step.after) and not lacks_owners(step.before)
    wanted = DECLARED[kind].calls_for
    assert changes_plan == (wanted is CallsFor.PLAN), f"@event(calls_for=...) of {kind.__name__}"
    if wanted is not CallsFor.PLAN:
        assert changes_owners == (wanted is CallsFor.OWNERS), f"@event(calls_for=...) of {kind.__name__}"


@EVERY_KIND
def test_it_says_which_nodes_it_is_about(kind: type[Event]) -> None:
    """``log show --node`` finds it by ``@event(nodes=...)``: every node whose name stands in it."""
    known = {node_id for step in STEPS for node_id in step.after.membership.nodes}
    for step in of_kind(kind):
        named = set(texts_in(to_canonical(step.event))) & known
        assert nodes_of(step.event) == named, f"@event(nodes=...) of {kind.__name__}"


def texts_in(plain: CanonicalValue) -> Iterator[str]:
    """Every text of a canonical form that is no key."""
    if isinstance(plain, str):
        yield plain
    elif isinstance(plain, list | dict):
        for each in plain.values() if isinstance(plain, dict) else plain:
            yield from texts_in(each)


@EVERY_KIND
def test_applying_it_changes_the_state_and_its_digest(kind: type[Event]) -> None:
    """An event that changes nothing says nothing; one past the digest would be lost in a snapshot unseen."""
    changing = [step for step in of_kind(kind) if step.before != step.after]
    assert changing, f"{kind.__name__} changes no state: see apply.py of its subject"
    for step in changing:
        assert step.before.digest() != step.after.digest()
        assert not wrong_digests(step.after)


@EVERY_KIND
def test_the_rows_that_it_changes_are_published(kind: type[Event]) -> None:
    """All that is different in the table afterwards is among the changed rows: see rows.py of its subject."""
    for step in of_kind(kind):
        before, after = rows_of(step.before), rows_of(step.after)
        different = {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)}
        published = changed_rows(step.before, step.after, [step.event]).keys()
        assert published == different, f"{kind.__name__}: events or touched of a RowKind in rows.py of its subject"


@EVERY_KIND
def test_it_is_written_and_read_whole_and_in_parts(kind: type[Event]) -> None:
    """``schemas/Decision.v*.avsc`` has it, and a list in it may be cut."""
    for decision in {step.decision.seq: step.decision for step in of_kind(kind)}.values():
        for max_part_bytes in (1_000_000, 3_000):
            assembler = DecisionAssembler()
            read = [assembler.add(record) for record in encode_decision(decision, max_part_bytes)]
            assert read[-1] == decision


@EVERY_KIND
def test_its_bytes_are_frozen(kind: type[Event]) -> None:
    """``tests/golden/samples/`` has it: otherwise a change of its schema would break logs unseen."""
    assert kind in frozen_kinds(), f"add a {kind.__name__} to tests/golden/samples/ and rewrite the records"


@cache
def frozen_kinds() -> frozenset[type]:
    """The kinds of events that the frozen records of decisions hold."""
    cases = [case for path in sorted(RECORDS.glob("Decision.v*.json")) for case in read_json(path)]
    decisions = [decode_frozen(case["records"]) for case in cases]
    return frozenset(type(event) for each in decisions if isinstance(each, Decision) for event in each.events)


@EVERY_KIND
def test_a_snapshot_holds_what_it_did(kind: type[Event]) -> None:
    """The state after it comes back from its own bytes."""
    for step in of_kind(kind):
        body = b"".join(pieces_of(step.after))
        assert body == canonical_bytes(step.after)
        assert from_canonical(State, json.loads(body)) == step.after


@EVERY_KIND
def test_log_show_tells_it(kind: type[Event]) -> None:
    """In the form for programs every event of a decision is there, with its name."""
    decision = of_kind(kind)[0].decision
    (document,) = decision_documents([LoggedDecision(decision, 0, 0)])
    events = document["events"]
    assert isinstance(events, list)
    assert kind.__name__ in [event["type"] for event in events if isinstance(event, dict)]


def test_the_whole_tour_is_verified_and_audited() -> None:
    """``log verify`` finds nothing to complain of, and every decision is taken alike again."""
    world = tour()
    assert complaints_of(world.decisions) == []
    _, audited = RecordedLog(world).audit()
    assert [each.differences for each in audited] == [()] * len(world.decisions)


def test_a_log_of_the_first_level_gets_nothing_of_later_ones() -> None:
    """Its leader could not commit it: what adds such an event to a draft asks for the level of the log first."""
    for decision in tour(raised_level=1).decisions:
        later = [type(event).__name__ for event in decision.events if needed_level(event) > 1]
        assert later == [], f"decided at level 1 for {[cause.subject for cause in decision.causes]}: {later}"


def test_what_an_intent_does_is_what_what_if_foretells() -> None:
    """Kind by kind, for every intent of the tour; the paces of a plan apart, which depend on the moment."""
    for asked in tour().asked:
        done, foretold = (
            {type(event) for event in events} - PACING for events in (asked.decision.events, asked.foretold)
        )
        assert done == foretold, asked.intent
