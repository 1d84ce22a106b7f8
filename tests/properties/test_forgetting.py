"""Endless new names: the state stays bounded, and no name ever has an incarnation twice."""

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from controlplane.core.cluster.events import NodesForgotten
from controlplane.core.cluster.policy import ClusterPolicy
from controlplane.core.log.apply import apply_decision
from controlplane.core.log.snapshots.body import pieces_of
from controlplane.core.log.state import State, all_entries
from controlplane.core.membership.events import NodeAdmitted
from controlplane.core.values.canonical import from_canonical
from tests.helpers.logs import complaints_of
from tests.helpers.world import World

STAYING = ("n1", "n2", "n3")
MOST_NAMES_KNOWN = 3 + 20 * 4
"""Those that stay, and those that came within 40 s: to be fenced, to be forgotten, and to the next decision."""


@st.composite
def visits(draw: st.DrawFn) -> list[list[tuple[str, int, bool]]]:
    """Names that join every two seconds, with an incarnation, and whether they say that they leave."""
    visit = st.tuples(st.sampled_from("abcdefgh"), st.integers(1, 40), st.booleans())
    return draw(st.lists(st.lists(visit, max_size=4), min_size=30, max_size=40))


@settings(max_examples=25)
@given(steps=visits(), fresh=st.booleans())
def test_the_state_is_bounded_and_incarnations_are_never_used_again(
    steps: list[list[tuple[str, int, bool]]], fresh: bool
) -> None:
    """Whether names come back or are always new, and whatever they believe their incarnation to be."""
    world = World(ClusterPolicy(slot_count=8, forget_nodes_after_ms=30_000, positions_interval_ms=4_000))
    world.admit(*STAYING)
    largest = 0
    for number, joining in enumerate(steps):
        names = [(f"{name}{number}" if fresh else name, incarnation, leaves) for name, incarnation, leaves in joining]
        for name, incarnation, _ in names:
            world.join(name, incarnation)
            world.heartbeat(name, incarnation)
        world.run(400, step_ms=200)
        for name, incarnation, leaves in names:
            if leaves:
                world.left(name, incarnation)
        for name in STAYING:
            world.heartbeat(name)
        world.run(1_600, step_ms=200)
        largest = max(largest, *(len(entries) for path, entries in all_entries(world.state) if "membership" in path))
    assert largest <= MOST_NAMES_KNOWN
    _no_incarnation_twice(world)
    assert complaints_of(world.decisions) == []
    replayed = State()
    for decision in world.decisions:
        replayed = apply_decision(replayed, decision)
    assert replayed == world.state
    body = b"".join(pieces_of(world.state))
    restored = from_canonical(State, json.loads(body))
    assert restored.cluster.incarnation_floor == world.state.cluster.incarnation_floor
    assert restored.digest() == world.state.digest()


def _no_incarnation_twice(world: World) -> None:
    """A name that was forgotten comes back with a greater incarnation than every one that it had."""
    had: dict[str, int] = {}
    forgotten: dict[str, int] = {}
    for decision in world.decisions:
        for event in decision.events:
            if isinstance(event, NodeAdmitted):
                node_id, incarnation = event.node.node_id, event.node.incarnation
                assert incarnation > forgotten.get(node_id, 0)
                assert incarnation >= had.get(node_id, 0)
                had[node_id] = incarnation
            elif isinstance(event, NodesForgotten):
                forgotten.update({node_id: had[node_id] for node_id in event.node_ids})
