"""A long log: every decision is accepted, and an altered one is found."""

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import pytest

from controlplane.core.cluster.policy import ClusterPolicy
from controlplane.core.log.apply import apply_decision
from controlplane.core.log.decision import Decision
from controlplane.core.log.state import State
from controlplane.core.membership.events import NodeAdmitted, NodeFenced
from controlplane.core.slots.events import SlotsAssigned
from controlplane.core.values.identifiers import Epoch, Seq
from controlplane.core.verification.log_verification import LogVerification
from tests.helpers.logs import resealed
from tests.helpers.sizes import sized
from tests.helpers.world import World

DECISIONS = sized(1_500, 5_000)
NODES = tuple(f"n{index}" for index in range(9))
SEED = 4


def long_history() -> list[Decision]:
    """Joins, rejoins, leaves, drains, orders, pins, zones, weights and changes of policy, one after the other."""
    choose = random.Random(SEED)
    world = World(ClusterPolicy(slot_count=32, join_linger_ms=0, replica_count=3))
    while len(world.decisions) < DECISIONS:
        name = choose.choice(NODES)
        node = world.state.membership.nodes.get(name)
        lives = node is not None and node.lives
        match choose.choice(("join", "join", "leave", "order", "pin", "policy", "drain", "namespace")):
            case "join":
                world.join(name, world.now_ms, choose.randint(1, 3), zone=choose.choice(("", "a", "b", "c")))
            case "leave" if lives and node is not None:
                world.left(name, node.incarnation)
            case "order":
                kind = choose.choice(("exclude_node", "include_node", "reset_node"))
                world.intent(f"i{len(world.inputs)}", kind, node=name)
            case "pin":
                kind = choose.choice(("pin_slots", "unpin_slots", "exclude_slots", "include_slots"))
                world.intent(f"i{len(world.inputs)}", kind, node=name, slots=str(choose.randrange(32)))
            case "policy":
                field, value = choose.choice(
                    (
                        ("replica_count", str(choose.randint(1, 4))),
                        ("zone_rule", choose.choice(("hard", "soft", "ignored"))),
                        ("tolerance_percent", choose.choice(("0", "0", "25"))),
                        ("moves_in_flight", choose.choice(("0", "0", "4"))),
                    )
                )
                world.intent(f"i{len(world.inputs)}", "change_policy", **{field: value})
            case "drain" if lives:
                world.intent(f"i{len(world.inputs)}", choose.choice(("drain_node", "undrain_node")), node=name)
            case _:
                pass
        world.tick()
        for each, known in world.state.membership.nodes.items():
            if known.lives:
                world.heartbeat(each, known.incarnation)
        world.decide()
    return list(world.decisions)


@pytest.fixture(scope="module")
def history() -> list[Decision]:
    """The log, once for all tests."""
    return long_history()


@pytest.fixture(scope="module")
def before(history: list[Decision]) -> State:
    """The state before the decision that is forged."""
    state = State()
    for decision in history[: _place(history)]:
        state = apply_decision(state, decision)
    return state


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_every_decision_of_a_long_log_is_accepted(history: list[Decision]) -> None:
    """And the log has what it is meant to have: certificates, deaths, moves, shortfalls."""
    verification = LogVerification()
    complaints = [complaint for decision in history for complaint in verification.check(decision)]
    assert complaints + verification.check_end() == []
    assert verification.decisions == DECISIONS
    kinds = Counter(type(event).__name__ for decision in history for event in decision.events)
    assert verification.certificates > DECISIONS / 3
    common = ("NodeAdmitted", "NodeRemoved", "SlotsPinned", "PolicyChanged", "PlanMade")
    assert min(kinds[name] for name in common) > DECISIONS / 100
    assert any(decision.certificate.shortfalls for decision in history if decision.certificate)


Forgery = Callable[[Decision], Decision]


def _certified(**changes: object) -> Forgery:
    def forge(decision: Decision) -> Decision:
        assert decision.certificate is not None
        return replace(decision, certificate=replace(decision.certificate, **changes))  # type: ignore[arg-type]

    return forge


def _rows(change: Callable[[SlotsAssigned], SlotsAssigned]) -> Forgery:
    def forge(decision: Decision) -> Decision:
        events = tuple(change(event) if isinstance(event, SlotsAssigned) else event for event in decision.events)
        return replace(decision, events=events)

    return forge


def _led_by_another(event: SlotsAssigned) -> SlotsAssigned:
    slots = list(event.slots)
    at = next(index for index, slot in enumerate(slots) if slot.followers)
    slot = slots[at]
    followers = tuple(sorted({slot.leader or "", *slot.followers[1:]}))
    slots[at] = replace(slot, leader=slot.followers[0], followers=followers)
    return SlotsAssigned(tuple(slots))


FORGERIES: dict[str, Forgery] = {
    "moves understated": _certified(moved=0),
    "the least understated": _certified(least_moved=0),
    "leader changes overstated": _certified(leader_changes=999),
    "zone violations invented": _certified(zone_violations=77),
    "shares of nobody": _certified(node_shares={}),
    "prices of strangers": _certified(node_prices={"zz": 1}),
    "a lost slot invented": _certified(lost_slots=(31,)),
    "another slot policy": _certified(policy="guess"),
    "no certificate": lambda decision: replace(decision, certificate=None),
    "no cause": lambda decision: replace(decision, causes=()),
    "another controller": lambda decision: replace(decision, controller_id="c9"),
    "an epoch that stays": lambda decision: replace(decision, epoch=Epoch(decision.epoch - 1)),
    "a row left out": _rows(lambda event: SlotsAssigned(event.slots[1:])),
    "another leader": _rows(_led_by_another),
    "a holder that is nobody": _rows(
        lambda event: SlotsAssigned((replace(event.slots[0], leader="zz"), *event.slots[1:]))
    ),
}


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("case", FORGERIES)
def test_a_forged_decision_deep_in_the_log_is_found(history: list[Decision], before: State, case: str) -> None:
    """Also with digests that fit: the complaint names the decision that was altered."""
    place = _place(history)
    verification = LogVerification()
    verification.state = before
    complaints = verification.check(resealed([FORGERIES[case](history[place])], before)[0])
    assert complaints
    assert {complaint.seq for complaint in complaints} == {Seq(place + 1)}


def _place(history: list[Decision]) -> int:
    """A decision far into the log in which a node joined, several replicas moved and every price is at work."""
    return next(
        index
        for index, decision in enumerate(history)
        if index > DECISIONS // 2
        and decision.certificate is not None
        and decision.certificate.moved > 3
        and any(decision.certificate.node_prices.values())
        and any(isinstance(event, NodeAdmitted) for event in decision.events)
        and any(isinstance(event, SlotsAssigned) for event in decision.events)
        and not any(isinstance(event, NodeFenced) for event in decision.events)
    )
