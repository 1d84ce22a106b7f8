"""The check of a log from outside: it accepts every log that leaders write, and none that somebody altered."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import example, given, settings

from controlplane.core.decision import Certificate, Decision, ReadyHeirs
from controlplane.core.events import NodeFenced, SlotsAssigned
from controlplane.core.identifiers import Epoch, Seq, Term
from controlplane.core.policy import Policy
from controlplane.core.slot_policies.minimal import MinimalPolicy
from controlplane.core.slot_policy import SlotAnswer, SlotRequest
from controlplane.core.slot_table import Slot
from tests.helpers.histories import History, operations, play
from tests.helpers.logs import complaints_of, resealed
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
    world = World(Policy(slot_count=16))
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
    events = []
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
    "an older feature level": (changed(JOIN, feature_level=0), "feature level 0, not 1"),
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


class Uncertified(MinimalPolicy):
    """Plans like the default policy and proves nothing."""

    name = "other"

    def plan(self, request: SlotRequest) -> SlotAnswer:
        """See :class:`controlplane.core.slot_policy.SlotPolicy`."""
        return replace(super().plan(request), certificate=None)


def test_plans_of_a_policy_that_proves_nothing_have_to_be_legal() -> None:
    """Nobody can prove a user's policy right, but a death that leaves the dead as owner is found all the same."""
    world = World(Policy(slot_count=16, slot_policy="other"), {"other": Uncertified()})
    world.admit("n1", "n2", "n3")
    world.run(4_000, ("n1", "n2"))
    assert [decision.certificate for decision in world.decisions] == [None] * len(world.decisions)
    assert complaints_of(world.decisions) == []
    death = world.decisions[-1]
    kept = tuple(event for event in death.events if not isinstance(event, SlotsAssigned))
    complaints = complaints_of(resealed([*world.decisions[:-1], replace(death, events=kept)]))
    assert any(f"seq {death.seq}" in complaint and "held by 'n3'" in complaint for complaint in complaints)
