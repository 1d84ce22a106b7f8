"""A cluster under the policy ``sofa`` decides as SOFARegistry does, fed by heartbeats, through joins and deaths.

The fleet's helper judges every look at the observations; the tests here choose histories.
"""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conformance.record import lines
from tests.conformance.sofa import mismatch
from tests.helpers.sofa_fleet import SofaFleet

NAMES = tuple(f"10.0.0.{number}" for number in (1, 12, 23, 2, 13, 24, 8))
"""Three and three of them share a bin of a small Java hash map: there the order of insertion decides."""

behaviours = st.fixed_dictionaries(
    {
        "clock_skew_ms": st.sampled_from((0, -3_600_000, 3_600_000)),
        "fetch_ms": st.sampled_from((0, 0, 700, 4_000)),
        "table_lag_ms": st.sampled_from((0, 300, 1_500)),
        "sync_age_ms": st.sampled_from((0, 0, 170_000, 179_500, 200_000)),
    }
)
histories = st.lists(
    st.one_of(
        st.tuples(st.just("join"), st.sampled_from(NAMES), behaviours),
        st.tuples(st.just("join"), st.sampled_from(NAMES), behaviours),
        st.tuples(st.just("kill"), st.sampled_from(NAMES), st.none()),
        st.tuples(st.just("leave"), st.sampled_from(NAMES), st.none()),
        st.tuples(st.just("namespace"), st.sampled_from(("kv", "hot")), st.none()),
        st.tuples(st.just("run"), st.sampled_from((200, 1_500, 4_000, 9_000)), st.none()),
    ),
    max_size=14,
)


def played(fleet: SofaFleet, history: "list[tuple[str, object, object]]") -> SofaFleet:
    """The fleet after a history, and after time to settle."""
    for index, (kind, subject, argument) in enumerate(history):
        name = str(subject)
        match kind:
            case "join":
                fleet.join(name, **argument)  # type: ignore[arg-type]
            case "kill":
                fleet.kill(name)
            case "leave":
                fleet.world.leave(name, fleet.nodes[name].incarnation if name in fleet.nodes else 1)
            case "namespace":
                fleet.world.intent(f"i{index}", "create_namespace", namespace=name)
            case _:
                fleet.run(int(subject))  # type: ignore[call-overload]
        fleet.look()
    fleet.run(6_000)
    return fleet


@given(histories, st.sampled_from((4, 16)), st.integers(1, 3), st.sampled_from(("0", "1", "2")))
def test_every_table_is_the_arrangers(
    history: "list[tuple[str, object, object]]", slot_count: int, replicas: int, protected: str
) -> None:
    """Whatever joins, dies and reports late: equal action, slot leaders, follower sets, order, and ranks of epochs."""
    fleet = played(SofaFleet(slot_count, replicas, {"protected_nodes": protected}), history)
    for line in lines(fleet.world.decisions):
        assert mismatch(line) is None, line["id"]


@pytest.mark.parametrize(("seed", "replicas"), [(0, 2), (1, 2), (2, 3)])
def test_a_fleet_grows_and_shrinks(seed: int, replicas: int) -> None:
    """A longer history of more slots, in which every stage of balancing has its turn."""
    chosen = random.Random(seed)
    fleet = SofaFleet(slot_count=64, replicas=replicas)
    alive: list[str] = []
    for _ in range(8):
        if len(alive) < 4 or chosen.random() < 0.6:
            name = chosen.choice([name for name in NAMES if name not in alive])
            fleet.join(name, fetch_ms=chosen.choice((0, 1_200)), clock_skew_ms=chosen.randrange(-10_000, 10_000))
            alive.append(name)
        else:
            fleet.kill(alive.pop(chosen.randrange(len(alive))))
        fleet.run(chosen.randrange(3_000, 20_000))
    assert {"assign", "balance"} <= set(fleet.actions)
    recorded = list(lines(fleet.world.decisions))
    assert len(recorded) == len(fleet.actions)
    assert all(mismatch(line) is None for line in recorded)
