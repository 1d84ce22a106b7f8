"""The invariants find what they are for: other tests and the leader rely on them, so a blind one hides defects."""

import copy
import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from controlplane.core.bundles.bundle import Bundle, Namespace
from controlplane.core.bundles.events import BundlesAssigned, NamespaceDeleted
from controlplane.core.bundles.ownership_state import OwnershipState
from controlplane.core.log.decision import Decision
from controlplane.core.log.state import State
from controlplane.core.membership.events import NodeAdmitted
from controlplane.core.membership.node import Node, NodeRole, NodeStatus
from controlplane.core.slots.events import SlotsAssigned
from controlplane.core.slots.table import Slot
from controlplane.core.values.entries import Entries
from controlplane.core.values.identifiers import Epoch, Seq, Term
from controlplane.core.verification.invariants import check, check_step
from controlplane.errors import InvariantViolationError
from tests.helpers.states import with_image, with_table
from tests.helpers.world import World


@pytest.fixture(scope="module")
def world() -> World:
    """Three data nodes, a session node and a namespace."""
    made = World()
    made.admit("n1", "n2", "n3")
    made.join("s1", role=NodeRole.SESSION)
    made.intent("i1", "create_namespace", namespace="kv")
    made.run(400)
    return made


def _with_slot(state: State, **changed: object) -> State:
    slot = replace(state.slots.table[0], **changed)  # type: ignore[arg-type]  # a test's choice of fields
    return with_table(state, (slot, *state.slots.table[1:]))


def _with_node(state: State, node_id: str, **changed: object) -> State:
    node = replace(state.membership.nodes[node_id], **changed)  # type: ignore[arg-type]  # as above
    return with_image(state, "membership", nodes=state.membership.nodes.put([(node_id, node)]))


def _with_bundle(state: State, **changed: object) -> State:
    bundle_id, bundle = next(iter(state.bundles.by_id.items()))
    moved = replace(bundle, **changed)  # type: ignore[arg-type]  # as above
    bundles = state.bundles.by_id.drop([bundle_id]).put([(moved.bundle_id, moved)])
    return with_image(state, "bundles", by_id=bundles)


BROKEN: dict[str, Callable[[State], State]] = {
    "has a node twice": lambda state: _with_slot(state, leader="n1", followers=("n1",)),
    "has followers ('n1',) and no leader": lambda state: _with_slot(state, leader=None, followers=("n1",)),
    "has leader epoch 99": lambda state: _with_slot(state, leader_epoch=Epoch(99)),
    "is held by 'n9', which is unknown": lambda state: _with_slot(state, leader="n9"),
    "is held by 's1', which is active": lambda state: _with_slot(state, leader="s1"),
    "which is fenced": lambda state: _with_node(state, "n1", status=NodeStatus.FENCED),
    "slot at index 0 is slot 1": lambda state: _with_slot(state, slot_id=1),
    "15 slots, the policy says 16": lambda state: with_table(state, state.slots.table[:-1]),
    "is owned by 's1', which is not a living data node": lambda state: _with_bundle(state, owner="s1"),
    "is owned by 'n9', which is not a living data node": lambda state: _with_bundle(state, owner="n9"),
    "do not cover the hash space exactly once": lambda state: _with_bundle(state, upper=1),
    "has no namespace": lambda state: with_image(state, "bundles", namespaces=Entries()),
    "'empty' do not cover": lambda state: with_image(
        state, "bundles", namespaces=state.bundles.namespaces.put([("empty", Namespace("empty", 4))])
    ),
}


def test_last_bundle_may_end_as_early_versions_wrote_it(world: World) -> None:
    """With 2^32 or with 2^32 - 1, which it holds: both cover the hash space; one hash less does not."""
    (last_id, last) = max(world.state.bundles.by_id.items())
    for upper, is_whole in (((1 << 32) - 1, True), (1 << 32, True), ((1 << 32) - 2, False)):
        moved = replace(last, upper=upper)
        by_id = world.state.bundles.by_id.drop([last_id]).put([(moved.bundle_id, moved)])
        state = with_image(world.state, "bundles", by_id=by_id)
        if is_whole:
            check(state)
        else:
            with pytest.raises(InvariantViolationError, match="do not cover the hash space"):
                check(state)


@pytest.mark.parametrize("sentence", BROKEN)
def test_a_broken_state_is_found_and_named(world: World, sentence: str) -> None:
    """Each rule of a whole state is broken once, with right digests, so that no other rule helps."""
    check(world.state)
    broken = BROKEN[sentence](world.state)
    with pytest.raises(InvariantViolationError, match=re.escape(sentence)):
        check(broken)


def test_entries_that_do_not_have_their_digest_are_found(world: World) -> None:
    """A state that was changed past ``apply`` would be digested as if it had not been."""
    nodes = world.state.membership.nodes
    wrong = copy.copy(nodes)
    wrong._digest += 1  # noqa: SLF001 - what only a defect could do
    with pytest.raises(InvariantViolationError, match=r"the digest of membership\.nodes"):
        check(with_image(world.state, "membership", nodes=wrong))


def _next(state: State) -> State:
    return replace(state, seq=Seq(state.seq + 1))


BROKEN_STEPS: dict[str, Callable[[State], State]] = {
    "seq goes from": lambda after: replace(after, seq=Seq(after.seq + 1)),
    "term falls from": lambda after: replace(after, term=Term(0)),
    "epoch goes from": lambda after: replace(after, epoch=Epoch(after.epoch + 2)),
    "log time goes back": lambda after: replace(after, decided_at_ms=0),
    "the log id changes": lambda after: replace(after, log_id="another"),
    "position membership[0] falls": lambda after: replace(after, positions={**after.positions, "membership[0]": 0}),
    "position intents[0] falls": lambda after: replace(
        after, positions={place: offset for place, offset in after.positions.items() if place != "intents[0]"}
    ),
}


@pytest.mark.parametrize("sentence", BROKEN_STEPS)
def test_a_step_that_breaks_the_numbers_is_found(world: World, sentence: str) -> None:
    """What a leader is about to commit is stopped before readers can see it."""
    decision = replace(world.decisions[-1], events=())
    check_step(world.state, decision, _next(world.state))
    with pytest.raises(InvariantViolationError, match=re.escape(sentence)):
        check_step(world.state, decision, BROKEN_STEPS[sentence](_next(world.state)))


def _assigning(decision: Decision, slot: Slot) -> Decision:
    return replace(decision, events=(SlotsAssigned((slot,)),))


def test_a_step_is_checked_where_it_touches_slots(world: World) -> None:
    """A new slot leader needs a new slot leader epoch, or its fencing token would be the former leader's."""
    before = world.state
    slot = before.slots.table[0]
    other = next(node_id for node_id in ("n1", "n2", "n3") if node_id not in slot.replicas)
    for changed, sentence in (
        (replace(slot, leader=other), "changes its leader and keeps slot leader epoch"),
        (replace(slot, leader_epoch=Epoch(0)), "slot leader epoch falls"),
        (replace(slot, leader="n9", leader_epoch=before.epoch), "is held by 'n9'"),
    ):
        after = with_table(_next(before), (changed, *before.slots.table[1:]))
        with pytest.raises(InvariantViolationError, match=re.escape(sentence)):
            check_step(before, _assigning(world.decisions[-1], changed), after)


def test_a_step_is_checked_where_it_touches_bundles_and_nodes(world: World) -> None:
    """A bundle of a dead owner and a node that goes back in time are found by looking at the step alone."""
    before = world.state
    orphan: Bundle = replace(next(iter(before.bundles.by_id.values())), owner="n9")
    older: Node = replace(before.membership.nodes["n1"], incarnation=0)
    for event, sentence in ((BundlesAssigned((orphan,)), "owned by 'n9'"), (NodeAdmitted(older), "incarnation 0")):
        decision = replace(world.decisions[-1], events=(event,))
        with pytest.raises(InvariantViolationError, match=sentence):
            check_step(before, decision, _next(before))


def test_a_namespace_does_not_end_with_a_bundle_that_is_served(world: World) -> None:
    """Its owner, or the node that is to open it, would not be told to close it."""
    before = world.state
    ids = tuple(before.bundles.by_id)
    decision = replace(world.decisions[-1], events=(NamespaceDeleted("kv", ids),))
    with pytest.raises(InvariantViolationError, match=f"namespace 'kv' ends with bundle {ids[0]}, which is Owned by"):
        check_step(before, decision, _next(before))
    free = {each: replace(row, owner=None, state=OwnershipState.FREE) for each, row in before.bundles.by_id.items()}
    last = replace(free[ids[-1]], state=OwnershipState.ASSIGNING, next_owner="n2")
    for rows, found in ((free, False), ({**free, ids[-1]: last}, True)):
        ended = with_image(before, "bundles", by_id=before.bundles.by_id.put(rows.items()))
        if found:
            with pytest.raises(InvariantViolationError, match=f"{ids[-1]}, which is Assigning to 'n2'"):
                check_step(ended, decision, _next(ended))
        else:
            check_step(ended, decision, _next(ended))


def test_a_new_process_may_not_lead_under_the_former_leader_epoch(world: World) -> None:
    """Whatever the slot policy leaves as it is: the former process may still serve under that token."""
    before = world.state
    newer: Node = replace(before.membership.nodes["n1"], incarnation=2)
    decision = replace(world.decisions[-1], events=(NodeAdmitted(newer),))
    with pytest.raises(
        InvariantViolationError, match="led by a new process of 'n1' under leader epoch 2, it has to be 3"
    ):
        check_step(before, decision, _next(before))
