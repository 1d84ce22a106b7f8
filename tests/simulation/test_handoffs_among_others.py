"""What else may come in between at each step of a handoff: commands, another policy, agents of before, bad callbacks.

Rows beside those of :mod:`tests.simulation.test_handoff_matrix`, with the same conditions.
"""

from collections.abc import Mapping
from typing import Final

import pytest

from controlplane.core.bundles.bundle import Bundle
from controlplane.core.bundles.events import BundlesAssigned, NamespaceEnding
from controlplane.core.bundles.orders import OrderOutcome
from controlplane.core.bundles.ownership_state import OwnershipState
from controlplane.core.intents.events import IntentOutcome
from controlplane.core.log.decision import Decision
from controlplane.node import HandoffSettings
from tests.simulation.handoffs.scene import (
    BOUNDS,
    NAMESPACE,
    NEXT,
    OLD,
    OTHER,
    SETTING,
    STEPS,
    THIRD,
    USUALLY_MS,
    Handoff,
    Scene,
    Step,
    scene,
)
from tests.simulation.handoffs.service import HANGS_MS, Manner
from tests.simulation.script import nodes_of_before

pytestmark = pytest.mark.slow

_WITHIN_MS: Final = BOUNDS.unsaid_release_ms + 6 * USUALLY_MS
_OF_BUNDLES: Final = [handoff for handoff in Handoff if not handoff.is_of_slot]
_STEPS_OF_BUNDLES: Final = [(handoff, step) for handoff in _OF_BUNDLES for step in STEPS[handoff]]
_STEPS_OF_ALL: Final = [(handoff, step) for handoff, steps in STEPS.items() for step in steps]
COMMANDS: Final[Mapping[str, tuple[str, Mapping[str, str]]]] = {
    "transfer": ("transfer_bundles", {"node": OTHER}),
    "unload": ("unload_bundles", {}),
    "split": ("split_bundles", {"by": "number", "numbers": "3"}),
}
CHANGES_OF_SLOTS: Final[Mapping[str, tuple[str, Mapping[str, str]]]] = {
    "more replicas": ("change_policy", {"replica_count": "3"}),
    "the ring": ("change_policy", {"slot_policy": "ring"}),
    "SOFARegistry's policy": ("change_policy", {"slot_policy": "sofa"}),
}
CHANGES: Final[Mapping[str, tuple[str, Mapping[str, str]]]] = {
    "another pace and other limits": (
        "change_policy",
        {
            "moves_in_flight": "1",
            "bundle_moves_in_flight": "1",
            "handoff_limit_ms": "2000",
            "copy_limit_ms": "2000",
            "silence_limit_ms": "2500",
        },
    ),
    "next owner drained": ("drain_node", {"node": NEXT}),
    "old owner excluded": ("exclude_node", {"node": OLD}),
}


_ROWS_OF_CHANGES: Final = [
    (handoff, step, change)
    for handoff, step in _STEPS_OF_ALL
    for change in (*CHANGES, *(CHANGES_OF_SLOTS if handoff.is_of_slot else ()))
]


def name_of(value: object) -> str:
    """Of a value of a row."""
    return getattr(value, "value", str(value))


def rows_of(decision: Decision) -> list[Bundle]:
    """The rows of bundles that a decision writes."""
    return [row for event in decision.events if isinstance(event, BundlesAssigned) for row in event.bundles]


def _ends_namespace(decision: Decision) -> bool:
    return any(isinstance(event, NamespaceEnding) for event in decision.events)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(("handoff", "step"), _STEPS_OF_BUNDLES, ids=name_of)
def test_two_commands_for_one_bundle(handoff: Handoff, step: Step, command: str) -> None:
    """The second one is refused while the first one stands; after that it is carried out."""
    run = scene(handoff)
    kind, arguments = COMMANDS[command]
    run.order(lambda _: run.ask("second", kind, bundles=run.bundle_id, **arguments), step)
    run.to_the_end(_WITHIN_MS)
    answers = run.answer("order"), run.answer("second")
    outcomes = [each.outcome for each in run.ended if each.bundle_id == run.bundle_id]
    if step is Step.SERVE:
        assert answers == (IntentOutcome.DONE, IntentOutcome.DONE)
        assert outcomes == [OrderOutcome.DONE, OrderOutcome.DONE]
    else:
        # Both are asked for at the same time before the first step; the one that arrives first stands.
        assert set(answers) == {IntentOutcome.DONE, IntentOutcome.REFUSED}
        assert step is Step.ORDERED or answers[0] is IntentOutcome.DONE
        assert outcomes == [OrderOutcome.DONE]


@pytest.mark.parametrize(("handoff", "step"), _STEPS_OF_BUNDLES, ids=name_of)
def test_a_namespace_is_deleted_while_its_bundles_move(handoff: Handoff, step: Step) -> None:
    """It ends with all of its bundles, and every order has come to an end by then."""
    run = scene(handoff)
    run.order(lambda _: run.ask("delete", "delete_namespace", namespace=NAMESPACE), step)
    run.to_the_end(_WITHIN_MS)
    assert run.answer("delete") is IntentOutcome.DONE
    assert not run.state.bundles.namespaces
    assert not run.state.bundles.by_id
    (ends_at,) = (number for number, each in enumerate(run.decisions) if _ends_namespace(each))
    rows = [row for decision in run.decisions[ends_at:] for row in rows_of(decision)]
    assert not any(row.ownership_state is OwnershipState.ASSIGNING for row in rows), "nobody is to get it any more"
    # A split that is given up leaves the bundle to its owner, which releases it then.
    assert all(row.is_forced for row in rows if row.ownership_state is OwnershipState.OWNED)
    assert run.longest_step_ms() <= USUALLY_MS
    run.ask("again", "create_namespace", namespace=NAMESPACE, bundles="3")
    run.go_on_until(lambda: run.state.bundles.by_id and not any(run.unserved()), 2_000)


@pytest.mark.parametrize(("handoff", "step", "change"), _ROWS_OF_CHANGES, ids=name_of)
def test_the_policy_changes_in_between(handoff: Handoff, step: Step, change: str) -> None:
    """The handoff goes on, or ends because the new plan has no use for it."""
    run = scene(handoff)
    kind, arguments = {**CHANGES, **CHANGES_OF_SLOTS}[change]
    run.order(lambda _: run.ask("change", kind, **arguments), step)
    run.go_on_until(lambda: run.answered("change"), _WITHIN_MS)
    if change == "next owner drained":
        run.mended.append(lambda: run.ask("undrain", "undrain_node", node=NEXT))
    run.to_the_end(_WITHIN_MS)
    assert run.answer("change") is IntentOutcome.DONE
    assert run.longest_step_ms() <= SETTING.policy.copy_limit_ms + USUALLY_MS
    if not handoff.is_of_slot:
        assert (run.came_of_it is not None) is (run.answer("order") is IntentOutcome.DONE)


@pytest.mark.parametrize("handoff", [Handoff.SLOT_WITH_COPY, Handoff.SLOT_IN_SYNC])
def test_a_next_leader_that_never_gets_ready(handoff: Handoff) -> None:
    """The slot moves without its data when the copy has been waited for; a follower in sync needs none."""
    run = scene(handoff)
    run.misconduct.never_ready.add(run.next_node)
    run.order(lambda _: None, None)
    run.mended.append(run.misconduct.never_ready.clear)
    run.to_the_end(SETTING.policy.copy_limit_ms + USUALLY_MS)
    assert run.owner == run.next_node
    if handoff is Handoff.SLOT_WITH_COPY:
        assert [step for step, _ in run.steps] == [Step.PREPARE, Step.RELEASE, Step.ASSIGN]
        assert 0 <= run.longest_step_ms() - SETTING.policy.copy_limit_ms <= USUALLY_MS
    else:
        assert run.longest_step_ms() <= USUALLY_MS


@pytest.mark.parametrize("position", ["lower", "upper", "outside"])
@pytest.mark.parametrize("step", [None, *STEPS[Handoff.SPLIT]], ids=name_of)
def test_a_split_at_a_boundary_that_is_none(step: Step | None, position: str) -> None:
    """It is refused, whatever happens to the bundle, and the bundle is whole, or as another command wants it."""
    run = scene(Handoff.SPLIT)
    bundle = run.state.bundles.by_id[run.bundle_id]
    at = {"lower": bundle.lower, "upper": bundle.upper, "outside": bundle.upper + 1}[position]

    def ask() -> None:
        run.ask("wrong", "split_bundles", bundles=run.bundle_id, by="positions", numbers=str(at))

    if step is None:
        ask()
        run.go_on_until(lambda: run.answered("wrong"), 2_000)
        assert run.state.bundles.by_id[run.bundle_id] == bundle
        assert not run.state.bundles.orders
    run.order(lambda _: ask(), step)
    run.to_the_end(_WITHIN_MS)
    assert run.answer("wrong") is IntentOutcome.REFUSED
    assert run.came_of_it is not None
    assert run.came_of_it.outcome is OrderOutcome.DONE


@pytest.mark.parametrize("of_before", [(OLD,), (NEXT,), (OLD, NEXT)], ids=" and ".join)
@pytest.mark.parametrize("handoff", [each for each in Handoff if each is not Handoff.SLOT_IN_SYNC], ids=name_of)
def test_agents_of_before_among_others(handoff: Handoff, of_before: tuple[str, ...]) -> None:
    """What they have or get moves by one row; then they are started again as agents of now, and hand it back."""
    run = Scene("named", handoff=handoff)
    left = set(of_before)
    with nodes_of_before(run.world, left):
        run.start()
        run.order(lambda _: None, None)
        run.to_the_end(_WITHIN_MS)
        steps = [step for step, _ in run.steps]
        if handoff.is_of_slot:
            assert steps == [Step.ASSIGN]
        elif not handoff.is_split:
            assert steps == ([Step.SERVE] if OLD in of_before else [Step.RELEASE, Step.ASSIGN, Step.SERVE])
        else:
            cannot_be_asked = OLD in of_before and handoff is Handoff.SPLIT_BY_OWNER
            assert steps == ([] if cannot_be_asked else [Step.SPLITTING, Step.CHILDREN])
        for name in of_before:
            left.discard(name)
            run.upgrade(name)
            assert run.state.membership.nodes[name].hands_off
        run.judge_end()


_RELEASE_LIMIT_MS: Final = HandoffSettings().release_limit_ms
_HANDOFF_LIMIT_MS: Final = SETTING.policy.handoff_limit_ms
CALLBACKS: Final = [
    (Handoff.SLOT_WITH_COPY, OLD, "on_slots_changed", BOUNDS.unsaid_release_ms),
    (Handoff.SLOT_WITH_COPY, NEXT, "on_slots_gained", SETTING.policy.copy_limit_ms),
    (Handoff.SLOT_WITH_COPY, NEXT, "on_slots_changed", 0),
    (Handoff.SLOT_IN_SYNC, OLD, "on_slots_changed", BOUNDS.unsaid_release_ms),
    (Handoff.UNLOAD, OLD, "on_bundle_releasing", _RELEASE_LIMIT_MS),
    (Handoff.UNLOAD, OLD, "on_bundle_released", 0),
    (Handoff.UNLOAD, NEXT, "on_bundle_assigned", _HANDOFF_LIMIT_MS),
    (Handoff.TRANSFER, OLD, "on_bundle_releasing", _RELEASE_LIMIT_MS),
    (Handoff.TRANSFER, OLD, "on_bundle_released", 0),
    (Handoff.TRANSFER, NEXT, "on_bundle_preparing", _HANDOFF_LIMIT_MS),
    (Handoff.TRANSFER, NEXT, "on_bundle_assigned", _HANDOFF_LIMIT_MS),
    (Handoff.SPLIT, OLD, "on_bundle_split", 0),
    (Handoff.SPLIT_BY_OWNER, OLD, "on_bundle_split", 0),
    (Handoff.SPLIT_BY_OWNER, OLD, "topics_of_bundle", _HANDOFF_LIMIT_MS),
]
"""Whose callbacks, and for how long a step waits for one that hangs."""


@pytest.mark.parametrize("manner", Manner, ids=name_of)
@pytest.mark.parametrize(("handoff", "node", "callback", "hangs_ms"), CALLBACKS, ids=name_of)
def test_a_callback_that_raises_or_hangs(
    handoff: Handoff, node: str, callback: str, hangs_ms: int, manner: Manner
) -> None:
    """One that raises ends its process, and another one is started. What hangs is waited for within limits."""
    run = scene(handoff)
    run.misconduct.manners[node, callback] = manner
    run.world.failing.add(node)
    run.order(lambda _: None, None)
    run.to_the_end(_WITHIN_MS + BOUNDS.unsaid_release_ms, HANGS_MS)
    assert run.misconduct.met == [(node, callback)]
    # A new process cannot say that the former one has released the bundle: it owns it until that is certain.
    is_release = callback == "on_bundle_releasing"
    raises_ms = BOUNDS.unsaid_release_ms if is_release else USUALLY_MS
    assert run.longest_step_ms() <= USUALLY_MS + (hangs_ms if manner is Manner.HANGS else raises_ms)


def test_a_rolling_upgrade_of_agents_of_before() -> None:
    """Each node is drained and started again, one after the other, while bundles and slots move."""
    run = Scene("named", handoff=Handoff.TRANSFER)
    left = {OLD, OTHER, THIRD, NEXT}
    with nodes_of_before(run.world, left):
        run.start()
        for number, name in enumerate(sorted(left)):
            run.ask(f"unload {number}", "unload_bundles", bundles=NAMESPACE)
            left.discard(name)
            run.upgrade(name)
        assert all(node.hands_off for node in run.state.membership.nodes.values())
        run.order(lambda _: None, None)
        run.to_the_end(_WITHIN_MS)
