"""What cannot happen is refused when it is applied: a state never takes in an event that contradicts it."""

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import pytest

from controlplane.core.bundles.bundle import Namespace, equal_bundles
from controlplane.core.bundles.events import NamespaceCreated
from controlplane.core.cluster.events import ClusterCreated, TermOpened
from controlplane.core.cluster.policy import FEATURE_LEVEL, ClusterPolicy
from controlplane.core.intents.events import IntentAnswered, IntentOutcome
from controlplane.core.intents.image import ANSWERED_INTENTS_KEPT
from controlplane.core.log.apply import apply, apply_all, apply_decision
from controlplane.core.log.events import Event
from controlplane.core.log.state import State, wrong_digests
from controlplane.core.membership.events import FencingCause, NodeAdmitted, NodeDraining, NodeFenced, NodeRemoved
from controlplane.core.membership.node import TRANSITIONS, NodeStatus, next_status
from controlplane.core.slots.events import (
    MemoryEntry,
    PolicyRemembered,
    SlotsAssigned,
    SlotsExcluded,
    SlotsIncluded,
    SlotsPinned,
    SlotsSplit,
    SlotsUnpinned,
)
from controlplane.core.slots.pins import Exclusion, Pin
from controlplane.core.slots.table import Slot
from controlplane.core.values.identifiers import Epoch, Seq, Term
from controlplane.errors import InvariantViolationError, LogContinuityError, UnsupportedFeatureLevelError
from tests.helpers.world import World

EVENT_NAMES = ("NodeAdmitted", "NodeDraining", "NodeUndrained", "NodeFenced", "NodeRemoved")


@pytest.fixture(scope="module")
def world() -> World:
    """A node that lives and one that has left."""
    made = World()
    made.admit("n1", "gone")
    made.left("gone")
    made.intent("i1", "create_namespace", namespace="kv")
    made.run(400)
    return made


def _refused(state: State, event: Event, sentence: str) -> None:
    with pytest.raises(InvariantViolationError, match=re.escape(sentence)):
        apply(state, event)


def test_what_a_state_contradicts_is_refused(world: World) -> None:
    """An event that does not fit was not decided on this state: folding it in would hide that."""
    state = world.state
    node = state.membership.nodes["n1"]
    _refused(state, ClusterCreated("other", ClusterPolicy()), "the cluster exists already")
    _refused(
        state, NodeAdmitted(replace(state.membership.nodes["gone"], incarnation=0)), "incarnation 0 is older than 1"
    )
    _refused(state, NodeAdmitted(replace(node, node_id="n2", status=NodeStatus.FENCED)), "admitted as fenced")
    _refused(state, NodeDraining("n1", 2, 0), "incarnation 2 is not a member")
    _refused(state, NodeFenced("n9", 1, FencingCause.SILENCE, 0, 0), "'n9', incarnation 1 is not a member")
    _refused(state, SlotsAssigned((Slot(16, None, (), Epoch(0)),)), "slot 16 is not between 0 and 15")
    _refused(state, SlotsSplit((Slot(17, None, (), Epoch(0)),)), "do not have the next slot ids, from 16 on")
    _refused(state, SlotsPinned((Pin(16, "n1"),)), "pin of slot 16, which is not between 0 and 15")
    _refused(state, SlotsUnpinned((Pin(3, "n1"),)), "pin of slot 3 and node 'n1' is to be removed, but does not exist")
    _refused(state, SlotsExcluded((Exclusion(-1, "n1"),)), "exclusion of slot -1, which is not")
    _refused(state, SlotsIncluded((Exclusion(3, "n1"),)), "exclusion of slot 3 and node 'n1' is to be removed")
    _refused(state, NamespaceCreated(Namespace("kv", 1), equal_bundles("kv", 1)), "namespace 'kv' exists already")


@pytest.mark.parametrize(("status", "event"), list(product([None, *NodeStatus], EVENT_NAMES)))
def test_a_node_does_only_what_the_table_allows(status: NodeStatus | None, event: str) -> None:
    """The table is the rule: everything else is an error that names node, status and event."""
    if (status, event) in TRANSITIONS:
        assert next_status(status, event, "n1") is TRANSITIONS[status, event]
        return
    before = status.value if status else "unknown"
    with pytest.raises(InvariantViolationError, match=f"node 'n1': status {before} has no transition for {event}"):
        next_status(status, event, "n1")


def test_a_node_that_left_is_remembered_for_its_incarnation(world: World) -> None:
    """Without it a process of long ago could come back under its old number."""
    assert world.state.membership.nodes["gone"].status is NodeStatus.LEFT
    _refused(world.state, NodeRemoved("gone", 1, 0), "node 'gone': status left has no transition for NodeRemoved")


def test_answered_intents_are_remembered_and_bounded(world: World) -> None:
    """None may count twice, and the state must not grow for ever."""
    answer = IntentAnswered("", "create_namespace", "tester", IntentOutcome.DONE, "")
    names = [f"i{number}" for number in range(ANSWERED_INTENTS_KEPT + 1)]
    image = apply_all(world.state, (replace(answer, intent_id=name) for name in names)).intents
    assert list(image.answered.values())[-ANSWERED_INTENTS_KEPT:] == names[1:]
    assert len(image.answered) == ANSWERED_INTENTS_KEPT
    assert image.has_answered(names[-1])
    assert not image.has_answered(names[0])


def _follow(events: Sequence[Event], **changed: object) -> None:
    """Offer the follower of a new cluster a second decision with these events and other contents."""
    world = World()
    state = world.state
    decision = replace(
        world.decisions[-1],
        seq=Seq(state.seq + 1),
        previous_digest=state.last_digest,
        events=tuple(events),
        **changed,  # type: ignore[arg-type]  # a test's choice of fields
    )
    apply_decision(state, decision)


def test_a_follower_refuses_numbers_that_do_not_continue() -> None:
    """A term without its opening, an opening under another number, an epoch that jumps: not our log, or not whole."""
    opening = TermOpened(Term(2), "c2", "test", FEATURE_LEVEL, ClusterPolicy())
    for events, changed, sentence in (
        ((), {"term": Term(2)}, "term 2 after 1"),
        ((opening,), {"term": Term(3)}, "term 3 after 1"),
        ((replace(opening, term=Term(1)),), {"term": Term(1)}, "term 1 after 1"),
        ((), {"epoch": Epoch(3)}, "epoch 3 after 1"),
        ((), {"epoch": Epoch(0)}, "epoch 0 after 1"),
        ((), {"state_digest": "0" * 64}, "state digest"),
    ):
        with pytest.raises(LogContinuityError, match=sentence):
            _follow(events, **changed)


def test_a_follower_stops_at_a_feature_level_that_it_does_not_know() -> None:
    """An unknown rule cannot be guessed; the message says to upgrade."""
    with pytest.raises(UnsupportedFeatureLevelError, match="upgrade"):
        _follow((), feature_level=FEATURE_LEVEL + 1)


def test_memory_of_a_slot_policy_is_state_and_ends_with_the_policy(world: World) -> None:
    """Entries are put, replaced and forgotten with the digest kept up to date; another policy begins without them."""
    first = PolicyRemembered((MemoryEntry("slot/1", "[3]"), MemoryEntry("table", "4")))
    second = PolicyRemembered((MemoryEntry("slot/1", None), MemoryEntry("slot/9", None), MemoryEntry("table", "5")))
    remembering = apply(world.state, first)
    assert remembering.slots.memory == {"slot/1": "[3]", "table": "4"}
    later = apply(remembering, second)
    assert later.slots.memory == {"table": "5"}
    for state in (remembering, later):
        assert not wrong_digests(state)
        assert state.digest() != world.state.digest()
    same = TermOpened(Term(2), "c2", "test", FEATURE_LEVEL, replace(later.cluster.policy, tolerance_percent=5))
    assert apply(later, same).slots.memory == later.slots.memory
    other = replace(same, policy=replace(later.cluster.policy, slot_policy="another"))
    changed = apply(later, other)
    assert not changed.slots.memory
    assert changed.slots == world.state.slots
    assert not wrong_digests(changed)
