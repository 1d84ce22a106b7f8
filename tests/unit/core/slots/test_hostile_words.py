"""Whatever operators and users' slot policies say, a leader goes on, does no harm, and its log stays provable."""

import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from controlplane.codec.decisions import encode_decision
from controlplane.core.cluster.policy import ClusterPolicy
from controlplane.core.slots.policies.minimal import MinimalPolicy
from controlplane.core.slots.policy_contract import SlotAnswer, SlotPolicy, SlotRequest
from tests.helpers.logs import complaints_of
from tests.helpers.world import World

MINIMAL = MinimalPolicy().plan


class OwnPolicy(SlotPolicy):
    """A user's slot policy that answers as it is told."""

    name = "mine"
    interval_ms = 1_000

    def __init__(self, answer: Callable[[SlotRequest], SlotAnswer]) -> None:
        self._answer = answer

    def check_options(self, options: Mapping[str, str]) -> None:
        """Anything goes."""

    def plan(self, request: SlotRequest) -> SlotAnswer:
        """What the test wants."""
        return self._answer(request)


def own_world(answer: Callable[[SlotRequest], SlotAnswer], **settings: Any) -> World:  # noqa: ANN401 - fields of the policy
    """Two nodes under a user's policy."""
    world = World(ClusterPolicy(slot_count=4, slot_policy="mine", **settings), {"mine": OwnPolicy(answer)})
    world.admit("a", "b")
    return world


def three_nodes(**settings: object) -> World:
    """Sixteen slots on three nodes."""
    world = World(ClusterPolicy(slot_count=16, **settings))  # type: ignore[arg-type]  # fields of the policy
    world.admit("a", "b", "c")
    return world


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [
        ("set_node", {"node": "a", "weight": "1" * 5_000}),
        *(
            ("change_policy", {name: digits})
            for name in ("join_linger_ms", "positions_interval_ms", "protection_window_ms", "cool_down_ms")
            for digits in ("1" + "0" * 30, "9" * 5_000)
        ),
    ],
)
def test_numbers_that_no_log_can_hold_are_refused(kind: str, arguments: dict[str, str]) -> None:
    """An intent that cannot be decided would stop one leader after the other."""
    world = three_nodes()
    assert world.ask(kind, **arguments).outcome.value == "refused"
    assert all(encode_decision(decision) for decision in world.decisions)


def test_an_override_that_is_refused_fences_nobody() -> None:
    """Its arguments are judged before its effect."""
    world = World(ClusterPolicy(slot_count=4))
    world.admit("a", "b", "c", "d")
    world.run(4_000, ("a",))
    assert world.state.membership.evictions_frozen
    assert world.ask("override_self_preservation", node="b").outcome.value == "refused"
    assert all(node.lives for node in world.state.membership.nodes.values())


def test_sofa_is_refused_where_it_could_never_plan_again() -> None:
    """It cannot lower the number of replicas; under it the dead would lead for ever."""
    for before, change in (
        ({"replica_count": 3, "slot_policy": "sofa"}, {"replica_count": "2"}),
        ({"replica_count": 3}, {"slot_policy": "sofa", "replica_count": "2"}),
    ):
        world = three_nodes(**before)
        answer = world.ask("change_policy", **change)
        assert answer.outcome.value == "refused"
        assert "lower replica_count under minimal first" in answer.detail


class UnspeakableError(Exception):
    """It cannot even say what it is."""

    def __str__(self) -> str:
        raise RuntimeError


def _raises(error: BaseException) -> Callable[[SlotRequest], SlotAnswer]:
    def answer(request: SlotRequest) -> SlotAnswer:
        raise error

    return answer


def _greater(request: SlotRequest) -> SlotAnswer:
    certificate = MINIMAL(request).certificate
    assert certificate is not None
    return SlotAnswer((), replace(certificate, moved=1 << 70))


@pytest.mark.parametrize(
    "answer",
    [
        lambda request: SlotAnswer(MINIMAL(request).slots, evidence="\ud800"),
        lambda request: SlotAnswer(MINIMAL(request).slots, remembered={"a": "\ud800"}),
        _raises(ValueError("\udc80")),
        _raises(UnspeakableError()),
        _raises(SystemExit(3)),
        lambda request: sys.exit("enough"),
        _greater,
    ],
)
def test_what_a_log_cannot_hold_is_refused_and_the_leader_goes_on(answer: Callable[[SlotRequest], SlotAnswer]) -> None:
    """A refusal is said in the log, and the decision can be written."""
    world = own_world(answer)
    world.run(3_000, ("a", "b"))
    assert all(encode_decision(decision) for decision in world.decisions)
    assert any(cause.kind.value == "placement_refused" for decision in world.decisions for cause in decision.causes)
    assert complaints_of(world.decisions) == []


def test_a_move_without_words_and_a_memory_without_moves_are_carried_out() -> None:
    """A policy with an interval need not say what it does, and may remember something and move nothing."""

    def count(request: SlotRequest) -> SlotAnswer:
        calls = int(request.memory.get("calls", "0")) + 1
        return SlotAnswer(MINIMAL(request).slots, remembered={"calls": str(calls)}, waits=True)

    world = own_world(count)
    world.run(5_000, ("a", "b"))
    assert int(world.state.slots.memory["calls"]) > 3

    def swap(request: SlotRequest) -> SlotAnswer:
        first = request.slots[0]
        if any(len(slot.replicas) < 2 for slot in request.slots):
            return SlotAnswer(MINIMAL(request).slots)
        if first.leader != "a" or request.now_ms < 1_003_000:
            return SlotAnswer((), waits=True)
        return SlotAnswer((first.assigned(first.followers[0], (first.leader,), request.epoch),), waits=True)

    world = own_world(swap)
    assert world.state.slots.table[0].leader == "a"
    world.run(6_000, ("a", "b"))
    assert world.state.slots.table[0].leader == "b"


def test_intents_about_pins_and_exclusions_contradict_only_where_they_do() -> None:
    """To take an exclusion back leaves a pin alone, and the other way round; to bar what is pinned contradicts."""
    for first, second, wanted in (
        ("pin_slots", "include_slots", "done"),
        ("exclude_slots", "unpin_slots", "done"),
        ("pin_slots", "exclude_slots", "superseded"),
        ("pin_slots", "unpin_slots", "superseded"),
        ("exclude_slots", "include_slots", "superseded"),
    ):
        world = three_nodes()
        world.intent("first", first, slots="0", node="a")
        world.intent("second", second, slots="0", node="a")
        world.tick()
        world.decide()
        assert world.answers()["first"].outcome.value == wanted, (first, second)


def test_logs_of_paused_and_split_clusters_under_sofa_are_accepted() -> None:
    """A pause freezes its table wholly; a split is a table to begin with."""
    world = three_nodes(slot_policy="sofa")
    world.ask("pause_reconciliation")
    world.run(5_000, ("a", "b"))
    assert complaints_of(world.decisions) == []
    world = three_nodes(slot_policy="sofa")
    world.ask("change_policy", slot_count="32")
    world.run(3_000, ("a", "b", "c"))
    assert complaints_of(world.decisions) == []


def test_logs_of_clusters_that_change_to_sofa_or_refresh_under_it_are_accepted() -> None:
    """Before its first tick it has no epochs of its own; a refresh that cannot be is refused, and so the log says."""
    world = three_nodes()
    world.ask("change_policy", slot_policy="sofa")
    world.ask("set_node", node="a", weight="7")
    world.run(3_000, ("a", "b", "c"))
    assert complaints_of(world.decisions) == []
    for nodes in (("a",), ("a", "b", "c")):
        world = World(ClusterPolicy(slot_count=4, slot_policy="sofa"))
        world.admit(*nodes)
        world.ask("refresh_table")
        assert complaints_of(world.decisions) == []


def test_a_policy_that_changes_as_a_shorter_silence_limit_settles_is_accepted() -> None:
    """Both in one decision."""
    world = three_nodes(silence_limit_ms=5_000)
    world.ask("change_policy", silence_limit_ms="2500")
    for _ in range(100):
        for name in ("a", "b", "c"):
            world.heartbeat(name)
        world.intent(f"again-{len(world.inputs)}", "change_policy", replica_count="3")
        world.tick()
        world.decide()
    assert world.state.cluster.silence_limit_ms == 2_500
    assert complaints_of(world.decisions) == []
