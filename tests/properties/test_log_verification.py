"""The check of a log from outside: it accepts every log that leaders write, and none that somebody altered."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import example, given, settings

from controlplane.core.cluster.policy import FEATURE_LEVEL, ClusterPolicy
from controlplane.core.log.apply import apply_all
from controlplane.core.log.decision import Decision
from controlplane.core.log.events import Event
from controlplane.core.log.state import State
from controlplane.core.membership.events import NodeFenced
from controlplane.core.membership.node import NodeRole
from controlplane.core.slots.certificate import Certificate, ReadyHeirs
from controlplane.core.slots.events import PlanMade, SlotsAssigned
from controlplane.core.slots.policies import BUILT_IN_POLICIES
from controlplane.core.slots.policies.minimal import MinimalPolicy
from controlplane.core.slots.policy_contract import SlotAnswer, SlotRequest
from controlplane.core.slots.table import Slot
from controlplane.core.values.identifiers import Epoch, Seq, Term
from controlplane.core.verification import log_verification
from tests.helpers.histories import History, operations, play
from tests.helpers.logs import complaints_of, resealed, with_last
from tests.helpers.world import World


@given(operations)
@example(
    [
        ("join", "n3", 1),
        ("run", 100, set()),
        ("refresh_table", None, None),
        ("weigh", "n3", 0),
        ("change_policy", ("slot_count", "16"), None),
    ]
)
@settings(max_examples=60)
def test_every_log_that_a_leader_writes_is_accepted(history: History) -> None:
    """Joins, deaths, drains, replaced processes, outages: the verifier finds the same nodes and the same optimum."""
    world = play(history)
    assert complaints_of(world.decisions) == []


def _played() -> list[Decision]:
    world = World(ClusterPolicy(slot_count=16))
    for names in (("n1", "n2", "n3"), ("n4",)):
        for name in names:
            world.join(name)
        world.run(1_000, ("n1", "n2", "n3", "n4"))
    world.run(4_000, ("n1", "n2", "n3"))
    return list(world.decisions)


PLAYED = _played()
JOIN = next(
    index
    for index, decision in enumerate(PLAYED)
    if decision.certificate and any(decision.certificate.node_prices.values())
)
"""The decision after which the fourth node holds its share: prices prove it."""
DEATH = next(
    index for index, decision in enumerate(PLAYED) if any(isinstance(event, NodeFenced) for event in decision.events)
)


def changed(index: int, **fields: object) -> list[Decision]:
    """The log with fields of one decision changed."""
    return [*PLAYED[:index], replace(PLAYED[index], **fields), *PLAYED[index + 1 :]]  # type: ignore[arg-type]  # cases name fields


def certified(index: int, **fields: object) -> list[Decision]:
    """The log with fields of one decision's certificate changed."""
    certificate = PLAYED[index].certificate
    assert isinstance(certificate, Certificate)
    return changed(index, certificate=replace(certificate, **fields))  # type: ignore[arg-type]  # cases name fields


def moved(index: int, change: Callable[[Slot], Slot]) -> list[Decision]:
    """The log with the first slot that one decision assigns changed."""
    events: list[Event] = []
    for event in PLAYED[index].events:
        if isinstance(event, SlotsAssigned):
            events.append(SlotsAssigned((change(event.slots[0]), *event.slots[1:])))
        else:
            events.append(event)
    return changed(index, events=tuple(events))


def without_slots(index: int) -> tuple[object, ...]:
    """A decision's events without the one that assigns slots."""
    return tuple(event for event in PLAYED[index].events if not isinstance(event, SlotsAssigned))


BROKEN: dict[str, tuple[list[Decision], str]] = {
    "a number changed": (changed(JOIN, decided_at_ms=7), "digest"),
    "a decision left out": ([*PLAYED[:JOIN], *PLAYED[JOIN + 1 :]], "seq"),
    "a decision twice": ([*PLAYED[: JOIN + 1], *PLAYED[JOIN:]], "seq"),
    "two decisions in another order": ([*PLAYED[:JOIN], PLAYED[JOIN + 1], PLAYED[JOIN], *PLAYED[JOIN + 2 :]], "seq"),
    "the beginning left out": (PLAYED[1:], "seq"),
}
FORGED: dict[str, tuple[list[Decision], str]] = {
    "no reasons": (changed(JOIN, causes=()), "it has no cause"),
    "somebody else's decision": (changed(JOIN, controller_id="c9"), "'c9' decided, 'c1' leads"),
    "another policy": (changed(JOIN, policy_fingerprint="0" * 16), "policy 0000000000000000 in the decision"),
    "an older feature level": (changed(JOIN, feature_level=0), f"feature level 0, not {FEATURE_LEVEL}"),
    "an epoch kept though rows change": (
        changed(len(PLAYED) - 1, epoch=PLAYED[-2].epoch),
        "by the rows that it changes",
    ),
    "a term that falls": (changed(JOIN, term=Term(0)), "term 0 after 1"),
    "an epoch passed over": (
        changed(JOIN, epoch=Epoch(PLAYED[JOIN].epoch + 1)),
        f"epoch {PLAYED[JOIN].epoch + 1} after",
    ),
    "a seq passed over": (changed(JOIN, seq=Seq(PLAYED[JOIN].seq + 1)), f"seq {PLAYED[JOIN].seq + 1} after"),
    "another log": (changed(JOIN, log_id="other"), "log id"),
    "positions that fall": (changed(JOIN, positions=dict.fromkeys(PLAYED[JOIN].positions, 0)), "falls from"),
    "log time that goes back": (changed(DEATH, decided_at_ms=0), "log time goes back"),
    "a certificate taken away": (changed(JOIN, certificate=None), "NodeAdmitted without a certificate"),
    "a death without consequences": (
        changed(DEATH, certificate=None, events=without_slots(DEATH)),
        "NodeFenced without a certificate",
    ),
    "a death whose slots stay": (changed(DEATH, events=without_slots(DEATH)), "n4 is no node that may hold it"),
    "moves carried out understated": (changed(JOIN, moves_carried_out=1), "its moves_carried_out is 1"),
    "leader changes carried out overstated": (
        changed(JOIN, leader_changes_carried_out=99),
        "its leader_changes_carried_out is 99",
    ),
    "moves said to be left": (changed(DEATH, moves_left=7), "its moves_left is 7, by the tables"),
    "moves understated": (certified(JOIN, moved=1), "but the certificate says 1"),
    "the least understated": (certified(JOIN, least_moved=1), "the certificate's least is 1"),
    "leader changes understated": (certified(JOIN, leader_changes=0), "but the certificate says 0"),
    "prices of nothing": (
        certified(JOIN, node_prices=dict.fromkeys(("n1", "n2", "n3", "n4"), 0)),
        "the prices prove only",
    ),
    "a slot lost that was not": (certified(JOIN, lost_slots=(3,)), "slots lost with their last holder: []"),
    "readiness of nobody's heirs": (
        certified(JOIN, ready_heirs=(ReadyHeirs(0, ("n1",)),)),
        "are not some of its heirs",
    ),
    "a follower dropped": (moved(JOIN, lambda slot: replace(slot, followers=())), "do not add up"),
    "a slot given to a stranger": (moved(JOIN, lambda slot: replace(slot, followers=("zz",))), "zz"),
    "a slot led by nobody": (moved(JOIN, lambda slot: replace(slot, leader=None)), "it has holders and no leader"),
    "a slot leader epoch that falls": (moved(DEATH, lambda slot: replace(slot, leader_epoch=Epoch(0))), "leader epoch"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_chain_that_was_broken_is_found(case: str) -> None:
    """Whoever changes a decision afterwards breaks the chain of digests, which is named with its place."""
    decisions, expected = BROKEN[case]
    (complaint,) = complaints_of(decisions)
    assert expected in complaint


@pytest.mark.parametrize("case", FORGED)
def test_forged_log_is_found(case: str) -> None:
    """Also with digests that fit: each rule, broken once, is named with the decision that breaks it."""
    decisions, expected = FORGED[case]
    complaints = complaints_of(resealed(decisions))
    assert any(expected in complaint for complaint in complaints), complaints


def _waiting() -> tuple[list[Decision], PlanMade]:
    """A log up to a plan that waits, which the last decision made."""
    world = World(ClusterPolicy(slot_count=16, replica_count=1, join_linger_ms=0, cool_down_ms=60_000))
    world.admit("n1", "n2")
    world.join("n3")
    world.run(500, ("n1", "n2", "n3"))
    made = [event for event in world.decisions[-1].events if isinstance(event, PlanMade)]
    return world.decisions, made[0]


def _emptied(row: Slot, epoch: Epoch) -> Slot:
    return Slot(row.slot_id, None, (), epoch)


def _given_to_all(row: Slot, epoch: Epoch) -> Slot:
    return row.assigned("n3", ("n1", "n2", "n3"), epoch)


@pytest.mark.parametrize("change", [_emptied, _given_to_all])
def test_row_that_waits_for_its_planned_one_stays_as_it_was(change: Callable[[Slot, Epoch], Slot]) -> None:
    """The proof is of the planned row: what is in the table until then is looked at too."""
    decisions, made = _waiting()
    assert complaints_of(decisions) == []
    at = decisions[-1].events.index(made)
    before = apply_all(State(), [event for decision in decisions[:-1] for event in decision.events])
    row = change(before.slots.table[made.rows[0].slot_id], Epoch(decisions[-2].epoch + 1))
    events = (*decisions[-1].events[:at], SlotsAssigned((row,)), *decisions[-1].events[at:])
    (complaint,) = complaints_of(with_last(decisions, events))
    assert f"slot {row.slot_id} waits for its planned row, and changes meanwhile to {row.replicas}" in complaint


def test_slot_that_lost_a_holder_may_not_wait() -> None:
    """The plan heals it, but the dead stay in the table until it is carried out."""
    world = World(ClusterPolicy(slot_count=16, join_linger_ms=0, cool_down_ms=60_000))
    world.admit("n1", "n2", "n3")
    world.left("n3")
    world.run(500, ("n1", "n2"))
    death = world.decisions[-1]
    at_once = [event for event in death.events if isinstance(event, SlotsAssigned)]
    plans = [event for event in death.events if isinstance(event, PlanMade)]
    rows = [row for event in at_once for row in event.slots] + [row for plan in plans for row in plan.rows]
    others = tuple(event for event in death.events if event not in (*at_once, *plans))
    made = PlanMade(
        death.seq, death.decided_at_ms, death.decided_at_ms, tuple(sorted(rows, key=lambda row: row.slot_id))
    )
    complaints = complaints_of(with_last(world.decisions, (*others, made)))
    lost = at_once[0].slots[0].slot_id
    assert any(f"slot {lost} waits for its planned row, although" in complaint for complaint in complaints), complaints


@pytest.mark.parametrize("slot_id", [-1, 16])
def test_row_that_waits_beyond_the_table_is_found(slot_id: int) -> None:
    """Whatever a forger plans is judged."""
    decisions, made = _waiting()
    beyond = replace(made, rows=(*made.rows, Slot(slot_id, "n1", (), Epoch(1))))
    events = tuple(beyond if event is made else event for event in decisions[-1].events)
    complaints = complaints_of(resealed([*decisions[:-1], replace(decisions[-1], events=events)]))
    assert any(f"slot {slot_id} waits for its planned row, the table has 16" in each for each in complaints), complaints


def test_decision_that_leaves_the_table_alone_is_judged_without_a_look_at_each_row(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A great table's log is full of them; what they say of moves is judged all the same."""

    def look(*_: object) -> tuple[Slot, ...]:
        raise AssertionError("each row is looked at")

    world = World(ClusterPolicy(slot_count=16, join_linger_ms=0, cool_down_ms=60_000))
    world.admit("n1", "n2")
    world.admit("n3")
    assert world.state.slots.plan is not None
    world.ask("drain_node", node="nobody")
    verification = log_verification.LogVerification()
    for each in world.decisions[:-1]:
        assert verification.check(each) == []
    monkeypatch.setattr(log_verification, "planned_from", look)
    forged = replace(world.decisions[-1], moves_carried_out=1, moves_left=0)
    sentences = [complaint.sentence for complaint in verification.check(forged)]
    assert [sentence.split(",")[0] for sentence in sentences] == ["its moves_carried_out is 1", "its moves_left is 0"]


class Uncertified(MinimalPolicy):
    """Plans like the default policy and proves nothing."""

    name = "other"

    def plan(self, request: SlotRequest) -> SlotAnswer:
        """See :class:`controlplane.core.slots.policy_contract.SlotPolicy`."""
        return replace(super().plan(request), certificate=None)


def test_plans_of_a_policy_that_proves_nothing_have_to_be_legal() -> None:
    """Nobody can prove a user's policy right, but a death that leaves the dead as owner is found all the same."""
    world = World(ClusterPolicy(slot_count=16, slot_policy="other"), {"other": Uncertified()})
    world.admit("n1", "n2", "n3")
    world.run(4_000, ("n1", "n2"))
    assert [decision.certificate for decision in world.decisions] == [None] * len(world.decisions)
    assert complaints_of(world.decisions) == []
    death = world.decisions[-1]
    kept = tuple(event for event in death.events if not isinstance(event, SlotsAssigned))
    complaints = complaints_of(resealed([*world.decisions[:-1], replace(death, events=kept)]))
    assert any(f"seq {death.seq}" in complaint and "held by 'n3'" in complaint for complaint in complaints)


def test_refresh_in_place_of_a_plan_that_waits_is_no_step_of_it() -> None:
    """A policy that proves nothing may plan otherwise the second time."""

    class Otherwise(Uncertified):
        def plan(self, request: SlotRequest) -> SlotAnswer:
            answer = super().plan(request)
            if not request.refresh:
                return answer
            return SlotAnswer(tuple(slot.assigned("n1", ("n1", "n3"), request.epoch) for slot in request.slots))

    world = World(ClusterPolicy(slot_count=16, slot_policy="other", cool_down_ms=60_000), {"other": Otherwise()})
    world.admit("n1", "n2")
    world.admit("n3")
    plan = world.state.slots.plan
    assert plan is not None
    world.ask("refresh_table")
    assert world.state.slots.plan is None
    assert complaints_of(world.decisions) == []


class Lazy(Uncertified):
    """Plans the first table, and then leaves it as it is, with everybody who is gone still in it."""

    name = "lazy"
    dead_may_hold = True

    def plan(self, request: SlotRequest) -> SlotAnswer:
        """See :class:`controlplane.core.slots.policy_contract.SlotPolicy`."""
        if any(slot.leader for slot in request.slots):
            return SlotAnswer(request.as_published())
        return super().plan(request)


LAZY = {"lazy": Lazy()}


def _with_the_dead(*, paused: bool = False) -> World:
    world = World(ClusterPolicy(slot_count=16, slot_policy="lazy"), LAZY)
    world.admit("n1", "n2", "n3")
    if paused:
        world.ask("pause_reconciliation")
    world.run(4_000, ("n1", "n2"))
    assert world.held("n3")
    return world


@pytest.mark.parametrize("paused", [False, True])
def test_the_dead_may_stay_where_the_policy_is_known_to_leave_them(*, paused: bool) -> None:
    """A user's policy may do so as ``sofa`` may, also during a pause; whoever does not know it cannot accept that."""
    decisions = _with_the_dead(paused=paused).decisions
    assert complaints_of(decisions, LAZY) == []
    complaints = complaints_of(decisions)
    assert any("'n3'" in complaint or "['n1', 'n2'] survive" in complaint for complaint in complaints), complaints


@pytest.mark.parametrize(("rules_on", "paused"), [("minimal", True), ("other", False), ("other", True)])
def test_holder_that_came_back_in_another_role_is_no_survivor(rules_on: str, *, paused: bool) -> None:
    """It lives, but its slots may not stay with it as soon as a policy rules that leaves nobody in who is gone."""
    policies = {**BUILT_IN_POLICIES, **LAZY, "other": Uncertified()}
    world = World(ClusterPolicy(slot_count=4, slot_policy="lazy", replica_count=1), policies)
    world.admit("n1")
    if paused:
        world.ask("pause_reconciliation")
    world.join("n1", incarnation=2, role=NodeRole.SESSION)
    world.heartbeat("n1", incarnation=2, role=NodeRole.SESSION)
    world.run(1_000)
    assert world.held("n1")
    world.ask("change_policy", slot_policy=rules_on)
    assert not world.held("n1")
    assert complaints_of(world.decisions, policies) == []


def test_nobody_is_given_a_slot_after_his_death_whoever_may_stay() -> None:
    """A policy that may leave the dead is no excuse for that."""
    world = _with_the_dead()
    death = world.decisions[-1]
    slot = next(slot for slot in world.state.slots.table if "n3" not in slot.replicas)
    given = SlotsAssigned((replace(slot, followers=tuple(sorted((*slot.followers, "n3")))),))
    forged = replace(death, events=(*death.events, given), epoch=Epoch(death.epoch))
    complaints = complaints_of(resealed([*world.decisions[:-1], forged]), LAZY)
    assert any(f"slot {slot.slot_id} is held by 'n3'" in complaint for complaint in complaints), complaints
