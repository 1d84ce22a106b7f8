"""The primary and the minority ring through the life of members."""

import pytest

from controlplane.core.slots.ring.hash_ring import HashRing
from controlplane.core.slots.ring.member_rings import MemberRings, MemberState
from controlplane.errors import NoRouteError

KEYS = [f"client-{number}" for number in range(300)]


def rings(**states: MemberState) -> MemberRings:
    """The rings of members in these states."""
    made = MemberRings()
    for node, state in states.items():
        made.become(node, state)
    return made


@pytest.mark.parametrize(
    ("state", "in_primary", "in_minority"),
    [
        (MemberState.UNKNOWN, False, False),
        (MemberState.NOT_JOINED, False, False),
        (MemberState.JOINING, False, True),
        (MemberState.RUNNING, True, True),
        (MemberState.MERGE_MINORITY, False, False),
        (MemberState.MERGING, False, True),
    ],
)
@pytest.mark.parametrize("before", [MemberState.UNKNOWN, MemberState.JOINING, MemberState.RUNNING])
def test_rings_follow_the_state(
    before: MemberState, state: MemberState, *, in_primary: bool, in_minority: bool
) -> None:
    """Whatever the state before."""
    made = rings(a=MemberState.RUNNING, b=before)
    made.become("b", state)
    assert ("b" in made.primary.nodes, "b" in made.minority.nodes) == (in_primary, in_minority)
    assert made.primary.nodes | made.minority.nodes >= {"a"}


@pytest.mark.parametrize("state", [MemberState.SHUTTING_DOWN, MemberState.SHUTDOWN_FINISHED, MemberState.DEAD])
def test_states_that_hivemq_never_uses_are_refused(state: MemberState) -> None:
    """And change nothing."""
    made = rings(a=MemberState.RUNNING)
    with pytest.raises(ValueError, match=state.name):
        made.become("a", state)
    assert made.primary.nodes == made.minority.nodes == {"a"}


def test_a_joining_node_is_written_to_before_it_serves() -> None:
    """What it will own, or copy, goes to it at once, and nobody is sent to it."""
    made = rings(a=MemberState.RUNNING, b=MemberState.RUNNING, c=MemberState.JOINING)
    after = HashRing("abc")
    for key in KEYS:
        assert made.responsible(key) == HashRing("ab").owner(key)
        assert made.readable(key, 1) == {"a", "b"}
        expected = {after.owner(key), *after.replicas(key, 1), "a", "b"} - {made.responsible(key)}
        assert made.writable(key, 1) == expected
    assert any(made.writable(key, 0) == {"c"} for key in KEYS)
    made.become("c", MemberState.RUNNING)
    assert [made.responsible(key) for key in KEYS] == [after.owner(key) for key in KEYS]


def test_a_departing_node_serves_until_it_is_gone() -> None:
    """Its successors are written to meanwhile."""
    made = rings(a=MemberState.RUNNING, b=MemberState.RUNNING, c=MemberState.RUNNING)
    made.begin_departure("c")
    for key in KEYS:
        assert made.responsible(key) == HashRing("abc").owner(key)
        heir = HashRing("ab").owner(key)
        assert heir == made.responsible(key) or heir in made.writable(key, 0)
    made.finish_departure("c")
    assert made.primary.nodes == made.minority.nodes == {"a", "b"}


def test_without_changes_under_way_the_replicas_are_written_to() -> None:
    """Both rings are the same then."""
    made = rings(a=MemberState.RUNNING, b=MemberState.RUNNING, c=MemberState.RUNNING)
    for key in KEYS:
        assert made.writable(key, 1) == made.primary.replicas(key, 1)
        assert made.readable(key, 1) == made.primary.replicas(key, 1) | {made.responsible(key)}


def test_departing_twice_takes_no_places_from_others() -> None:
    """``n1`` has joined again what ``n11`` took with it."""
    made = rings(n11=MemberState.RUNNING, n1=MemberState.RUNNING)
    for _ in range(2):
        made.finish_departure("n11")
        made.finish_departure("n1")
        made.become("n1", MemberState.RUNNING)
        made.finish_departure("n11")
        assert len(made.primary) == len(made.minority) == 500


def test_a_cluster_without_running_nodes_serves_nothing() -> None:
    """All may be joining, or there is nobody."""
    for made in (rings(), rings(a=MemberState.JOINING)):
        for ask in (made.responsible, lambda key, made=made: made.readable(key, 1)):
            with pytest.raises(NoRouteError):
                ask("key")
