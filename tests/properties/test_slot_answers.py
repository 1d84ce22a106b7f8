"""A slot policy is a user's code: whatever it answers, the log stays sound and the dead own nothing."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controlplane.core.cluster.policy import ClusterPolicy
from controlplane.core.log.decision import CauseKind
from controlplane.core.membership.events import NodeFenced
from controlplane.core.slots.answers import ask
from controlplane.core.slots.certificate import Certificate
from controlplane.core.slots.events import SlotsAssigned
from controlplane.core.slots.minimal.contract import PlacementNode
from controlplane.core.slots.policies import BUILT_IN_POLICIES
from controlplane.core.slots.policy_contract import SlotAnswer, SlotPolicy, SlotRequest
from controlplane.core.slots.reports import SlotReport, SlotStatus
from controlplane.core.slots.table import Slot
from controlplane.core.values.identifiers import Epoch
from controlplane.core.values.replica_status import ReplicaStatus
from controlplane.errors import InvariantViolationError, PlacementRefusedError
from tests.helpers.histories import History, operations, play
from tests.helpers.logs import complaints_of
from tests.helpers.world import World

Plan = Callable[[SlotRequest], SlotAnswer]

REQUEST = SlotRequest(
    slots=(
        Slot(0, "n1", ("n2", "n3"), Epoch(3)),
        Slot(1, "n2", ("n1",), Epoch(4)),
        Slot(2, "gone", ("n2", "n3"), Epoch(4)),
        Slot(3, "gone", (), Epoch(5)),
    ),
    nodes=tuple(PlacementNode(name, 1, 0) for name in ("n1", "n2", "n3")),
    renewed=frozenset(),
    policy=ClusterPolicy(slot_count=4),
    epoch=Epoch(7),
    now_ms=1_000,
)
MENDED = (Slot(2, "n2", ("n3",), Epoch(7)), Slot(3, "n1", (), Epoch(7)))
CERTIFICATE = Certificate("other", 0, 0, 0, 0, {}, {}, ())


@dataclass(frozen=True)
class Answering(SlotPolicy):
    """A slot policy that answers what a test says."""

    answer: Plan
    name: str = "other"
    dead_may_hold: bool = False

    def check_options(self, options: Mapping[str, str]) -> None:
        """Take whatever comes."""

    def plan(self, request: SlotRequest) -> SlotAnswer:
        """See :class:`controlplane.core.slots.policy_contract.SlotPolicy`."""
        return self.answer(request)


def answering(*slots: Slot, **fields: object) -> Plan:
    """A plan that mends the rows of those who are gone and answers these."""
    rows = {slot.slot_id: slot for slot in (*MENDED, *slots)}
    return lambda _: SlotAnswer(tuple(rows.values()), **fields)  # type: ignore[arg-type]  # cases name fields


def raising(error: Exception) -> Plan:
    """A plan that fails."""

    def plan(_: SlotRequest) -> SlotAnswer:
        raise error

    return plan


GOOD: dict[str, Plan] = {
    "no more than has to be": answering(),
    "another leader": answering(Slot(0, "n3", ("n1", "n2"), Epoch(7))),
    "other followers": answering(Slot(0, "n1", ("n3",), Epoch(3))),
    "a slot left to nobody": answering(Slot(3, None, (), Epoch(7))),
    "something remembered and forgotten": answering(remembered={"a": "1", "b": None}),
}
WRONG: dict[str, tuple[Plan, str]] = {
    "no answer": (lambda _: None, "a NoneType, not a SlotAnswer"),  # type: ignore[dict-item,return-value]
    "a list of rows": (lambda _: SlotAnswer(list(MENDED)), "not a tuple of Slot"),  # type: ignore[arg-type]
    "rows of another kind": (lambda _: SlotAnswer(({"slot": 1},)), "not a tuple of Slot"),  # type: ignore[arg-type]
    "a number that is a text": (answering(Slot("0", "n1", (), Epoch(3))), "slot_id and leader_epoch are int"),  # type: ignore[arg-type]
    "an epoch that is a fraction": (answering(Slot(0, "n1", (), 3.0)), "slot_id and leader_epoch are int"),  # type: ignore[arg-type]
    "followers in a list": (answering(Slot(0, "n1", ["n2"], Epoch(3))), "followers is a tuple"),  # type: ignore[arg-type]
    "a slot beyond the table": (answering(Slot(4, "n1", (), Epoch(7))), "slot 4 is none of the table's 4 slots"),
    "a slot below the table": (answering(Slot(-1, "n1", (), Epoch(7))), "slot -1 is none"),
    "a slot twice": (lambda _: SlotAnswer((*MENDED, MENDED[0])), "slot 2 is answered twice"),
    "a stranger": (answering(Slot(1, "n2", ("zz",), Epoch(4))), "held by 'zz', which is no living data node"),
    "a leader who is gone": (answering(Slot(1, "gone", (), Epoch(7))), "held by 'gone'"),
    "a leader of another type": (answering(Slot(1, ("n1",), (), Epoch(7))), "which is no living data node"),  # type: ignore[arg-type]
    "the dead passed over": (lambda _: SlotAnswer((MENDED[0],)), "slot 3 is held by 'gone', which is no living"),
    "a node twice": (answering(Slot(1, "n2", ("n2",), Epoch(4))), "slot 1 has a node twice"),
    "followers without a leader": (answering(Slot(1, None, ("n1",), Epoch(4))), "followers ('n1',) and no leader"),
    "followers in any order": (answering(Slot(1, "n2", ("n3", "n1"), Epoch(4))), "not sorted by name"),
    "a new leader with the old epoch": (answering(Slot(1, "n1", (), Epoch(4))), "changes its leader: its leader epoch"),
    "an old leader with a new epoch": (answering(Slot(1, "n2", (), Epoch(7))), "keeps its leader: its leader epoch"),
    "an epoch that falls": (answering(Slot(3, None, (), Epoch(4))), "its leader epoch has to be 7, not 4"),
    "something unwritable remembered": (answering(remembered={"a": 1}), "not a map of texts"),
    "a proof that nobody checks": (answering(certificate=CERTIFICATE), "only 'minimal' proves its plans"),
    "its own refusal": (raising(PlacementRefusedError("there is too little room")), "there is too little room"),
    "a defect": (raising(KeyError("n9")), "KeyError in test_slot_answers.py, line "),
    "an object's address": (raising(ValueError(f"{object()}")), "<object object at 0x...>"),
    "a novel": (raising(PlacementRefusedError("x" * 9_999)), "x" * 500),
}


@pytest.mark.parametrize("case", GOOD)
def test_good_answers_are_taken_as_they_are(case: str) -> None:
    """The judge asks for nothing that the log does not need."""
    policy = Answering(GOOD[case])
    assert ask(policy, REQUEST) == (policy.plan(REQUEST), None)


@pytest.mark.parametrize("case", WRONG)
def test_wrong_answers_are_refused_with_a_sentence_and_move_nothing(case: str) -> None:
    """Each rule, broken once: who is gone loses his rows, a holder that is left leads, nothing else changes."""
    plan, sentence = WRONG[case]
    answered = ask(Answering(plan), REQUEST)
    assert answered.refusal is not None
    assert sentence in answered.refusal
    assert len(answered.refusal) <= 500
    assert answered.answer == SlotAnswer((Slot(2, "n2", ("n3",), Epoch(7)), Slot(3, None, (), Epoch(7))))


@pytest.mark.parametrize(("moved", "sentence"), [("1", "Certificate.moved"), (1 << 63, "needs more than 64 bits")])
def test_a_certificate_that_no_log_can_hold_is_refused(moved: object, sentence: str) -> None:
    """The default policy's own certificates are looked at too: what an operator orders may make numbers great."""
    certificate = replace(CERTIFICATE, moved=moved)  # type: ignore[arg-type]  # a case is of another type
    answered = ask(Answering(answering(certificate=certificate), name="minimal"), REQUEST)
    assert sentence in str(answered.refusal)


def test_of_the_holders_that_are_left_a_ready_one_leads() -> None:
    """The first by name may have no data yet."""
    reports = {"n3": SlotReport((SlotStatus(2, 1, False, ReplicaStatus.HEALTHY, 0),), Epoch(1), 0, 0)}
    answered = ask(Answering(raising(ValueError())), replace(REQUEST, reports=reports))
    assert answered.answer.slots[0] == Slot(2, "n3", ("n2",), Epoch(7))


def test_a_new_process_is_not_left_what_the_former_one_held() -> None:
    """A refusal must not make a node the leader of data that it does not have."""
    answered = ask(Answering(raising(ValueError())), replace(REQUEST, renewed=frozenset({"n1"})))
    assert [slot.replicas for slot in answered.answer.slots] == [("n2", "n3"), ("n2", "n3"), ()]
    assert answered.refusal is not None


def test_a_defect_of_ours_is_not_taken_for_a_refusal() -> None:
    """An invariant that is broken stops the leader, as everywhere."""
    with pytest.raises(InvariantViolationError):
        ask(Answering(raising(InvariantViolationError("defect"))), REQUEST)


def test_leader_that_comes_back_empty_is_not_passed_over_where_the_dead_may_stay() -> None:
    """Its row would have followers and no leader: the answer is refused, the table stays as published.

    Only its leader epoch rises: the former process may still serve under the former one.
    """
    asleep = [False]

    def plan(request: SlotRequest) -> SlotAnswer:
        return SlotAnswer(()) if asleep[0] else replace(BUILT_IN_POLICIES["minimal"].plan(request), certificate=None)

    policies = {"other": Answering(plan, dead_may_hold=True)}
    world = World(ClusterPolicy(slot_count=4, slot_policy="other"), policies)
    world.admit("n1", "n2")
    table = world.state.slots.table
    asleep[0] = True
    world.join("n1", incarnation=2)
    (decision,) = world.run(1_000)
    refusals = [cause.evidence for cause in decision.causes if cause.kind is CauseKind.PLACEMENT_REFUSED]
    led = next(slot for slot in table if slot.leader == "n1")
    assert refusals == [f"slot {led.slot_id} has followers ('n2',) and no leader, and the answer leaves it so"]
    assert world.state.slots.table == _led_anew(table, "n1", decision.epoch)
    assert complaints_of(world.decisions, policies) == []


def _led_anew(slots: tuple[Slot, ...], node_id: str, epoch: Epoch) -> tuple[Slot, ...]:
    return tuple(replace(slot, leader_epoch=epoch) if slot.leader == node_id else slot for slot in slots)


def _missing(slots: Sequence[Slot], memory: Mapping[str, str]) -> Mapping[str, str | None]:
    return {str(slot.slot_id): memory["missing"] for slot in slots}


@pytest.mark.parametrize(
    ("remembers", "sentence"),
    [
        (_missing, "KeyError"),
        (lambda *_: None, "not a map of texts"),
        (lambda *_: {"a": 1}, "not a map of texts"),
        (lambda *_: {"a": "\ud800"}, "not a map of texts"),
    ],
)
@pytest.mark.parametrize("paused", [False, True])
def test_what_a_policy_cannot_remember_of_rows_that_it_left_ends_no_leader(
    remembers: Callable[..., Mapping[str, str | None]], sentence: str, *, paused: bool
) -> None:
    """The rows get their leader epoch all the same, and the decision says what was wrong."""

    class Forgetful(Answering):
        def remember_leader_epochs(self, slots: Sequence[Slot], memory: Mapping[str, str]) -> Mapping[str, str | None]:
            return remembers(slots, memory)

    def plan(request: SlotRequest) -> SlotAnswer:
        if request.renewed and all(slot.leader for slot in request.slots):
            return SlotAnswer(request.as_published())
        return replace(BUILT_IN_POLICIES["minimal"].plan(request), certificate=None)

    policies = {"other": Forgetful(plan, dead_may_hold=True)}
    world = World(ClusterPolicy(slot_count=4, slot_policy="other"), policies)
    world.admit("n1", "n2")
    if paused:
        world.ask("pause_reconciliation")
    table = world.state.slots.table
    world.join("n1", incarnation=2)
    (decision,) = world.run(400, ("n2",))
    assert world.state.slots.table == _led_anew(table, "n1", decision.epoch)
    (refusal,) = [cause.evidence for cause in decision.causes if cause.kind is CauseKind.PLACEMENT_REFUSED]
    assert refusal.startswith("remember_leader_epochs: ")
    assert sentence in refusal
    assert complaints_of(world.decisions, policies) == []


names = st.sampled_from(("n1", "n2", "n3", "n4", "n5", "zz"))
rows = st.builds(
    Slot, st.integers(0, 8), st.none() | names, st.lists(names, max_size=3).map(tuple), st.integers(0, 9).map(Epoch)
)
wild = st.lists(
    st.one_of(
        st.just(None), st.just(PlacementRefusedError("no")), st.just(ValueError("no")), st.lists(rows).map(tuple)
    ),
    min_size=1,
    max_size=6,
)


@given(operations, wild)
@settings(max_examples=60)
def test_no_policy_breaks_the_log_or_keeps_the_dead_as_owners(history: History, answers: list[object]) -> None:
    """Wild answers among good ones, in any history: the world checks every step, and the log verifies."""

    def plan(request: SlotRequest) -> SlotAnswer:
        answer = answers[request.epoch % len(answers)]
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, tuple):
            return SlotAnswer(answer)
        return replace(BUILT_IN_POLICIES["minimal"].plan(request), certificate=None)

    policy = ClusterPolicy(slot_count=8, slot_policy="other")
    world = play(history, World(policy, {**BUILT_IN_POLICIES, "other": Answering(plan)}))
    assert complaints_of(world.decisions) == []


def test_a_death_under_a_failing_policy_is_decided_and_explained() -> None:
    """The decision says why the table is not what the policy should have made of it, and goes on being asked."""
    failing = [False]

    def plan(request: SlotRequest) -> SlotAnswer:
        if failing[0]:
            raise ZeroDivisionError
        return replace(BUILT_IN_POLICIES["minimal"].plan(request), certificate=None)

    world = World(ClusterPolicy(slot_count=16, slot_policy="other"), {"other": Answering(plan)})
    world.admit("n1", "n2", "n3")
    failing[0] = True
    (death,) = world.run(4_000, ("n1", "n2"))
    refusals = [cause for cause in death.causes if cause.kind is CauseKind.PLACEMENT_REFUSED]
    assert [(cause.subject, cause.evidence.split(" ")[0]) for cause in refusals] == [("other", "ZeroDivisionError")]
    assert [type(event) for event in death.events] == [NodeFenced, SlotsAssigned]
    assert {slot.leader for slot in world.state.slots.table} == {"n1", "n2"}
    assert any(len(slot.replicas) == 1 for slot in world.state.slots.table)
    failing[0] = False
    world.join("n4")
    world.run(1_000, ("n1", "n2", "n4"))
    assert {len(slot.replicas) for slot in world.state.slots.table} == {2}
