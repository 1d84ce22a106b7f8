"""One cut between Kafka and the whole fleet, whose heartbeats are spread over their interval, and single deaths."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.core.cluster.policy import ClusterPolicy
from tests.helpers.cut_fleet import TICK_MS, CutFleet
from tests.properties.cuts import SIZES, cut, death_after_joining, most_in_a_window, promise

SEEDS = st.integers(min_value=0, max_value=1 << 32)
WINDOW_MS = ClusterPolicy().protection_window_ms
LIMIT_MS = ClusterPolicy().silence_limit_ms
HEARTBEAT_INTERVAL_MS = 1_000


@pytest.mark.parametrize("node_count", SIZES)
@given(seed=SEEDS)
def test_a_cut_of_the_whole_fleet_fences_no_more_than_the_promise(node_count: int, seed: int) -> None:
    """Spread heartbeats make nodes pass their limit one after another, as if they died one by one."""
    fleet = CutFleet(seed, node_count)
    fleet.run(WINDOW_MS - 1_000, silent=fleet.names)
    assert len(fleet.fenced) <= promise(node_count)
    assert fleet.state.membership.evictions_frozen


@pytest.mark.parametrize("node_count", SIZES)
@given(seed=SEEDS)
def test_a_cut_that_ends_fences_no_more_than_the_promise(node_count: int, seed: int) -> None:
    """It may end while the first nodes are due. ``python -m tests.properties.cuts`` does this a thousand times each."""
    assert cut(node_count, seed) <= promise(node_count)


@given(seed=SEEDS)
def test_a_node_that_dies_after_joining_is_fenced_within_its_limit_and_a_second(seed: int) -> None:
    """The clocks of the brokers are an hour apart; it counts from the later of death and admission."""
    assert 0 <= death_after_joining(seed) <= LIMIT_MS + 1_000


@pytest.mark.parametrize("node_count", [4, 5, 8, 50])
@given(seed=SEEDS)
def test_a_cut_is_seen_as_one_once_the_first_node_is_fenced(node_count: int, seed: int) -> None:
    """The others are judged together after one more interval, and then all of them are silent."""
    fleet = CutFleet(seed, node_count)
    fleet.run(WINDOW_MS - 1_000, silent=fleet.names)
    assert len(fleet.fenced) <= 1


@given(seed=SEEDS, dead=st.integers(0, 2))
def test_a_death_of_one_of_three_is_fenced_within_three_seconds(seed: int, dead: int) -> None:
    """Self-preservation does not delay the first node within a window."""
    fleet = CutFleet(seed, 3)
    died_ms = fleet.now_ms
    fleet.run(3_000, silent=[fleet.names[dead]])
    assert [name for name, _ in fleet.fenced] == [fleet.names[dead]]
    assert fleet.fenced[0][1] - died_ms <= LIMIT_MS + 500


@given(seed=SEEDS)
def test_nodes_that_die_together_are_fenced_one_interval_after_the_first(seed: int) -> None:
    """Three of eight are fewer than may be fenced. Silence counts from the last heartbeat, and a tick shows it."""
    fleet = CutFleet(seed, 8)
    dead = fleet.names[:3]
    fleet.run(LIMIT_MS + HEARTBEAT_INTERVAL_MS + 2 * TICK_MS, silent=dead)
    assert sorted(name for name, _ in fleet.fenced) == list(dead)
    silences_ms = [at_ms - fleet.last_beat_ms(name) for name, at_ms in fleet.fenced]
    assert LIMIT_MS < silences_ms[0] <= LIMIT_MS + TICK_MS
    assert all(silence_ms > LIMIT_MS + HEARTBEAT_INTERVAL_MS for silence_ms in silences_ms[1:])


@given(seed=SEEDS)
def test_a_second_death_of_three_waits_for_the_end_of_the_window(seed: int) -> None:
    """At least one is allowed once a window, not once a decision."""
    fleet = CutFleet(seed, 3)
    first, second, _ = fleet.names
    fleet.run(4_000, silent=[first])
    fleet.run(5_000, silent=[first, second])
    assert [name for name, _ in fleet.fenced] == [first]
    assert fleet.state.membership.evictions_frozen
    fleet.run(WINDOW_MS, silent=[first, second])
    assert [name for name, _ in fleet.fenced] == [first, second]
    assert fleet.fenced[1][1] - fleet.fenced[0][1] >= WINDOW_MS
    assert not fleet.state.membership.evictions_frozen


def test_fencings_at_both_edges_of_a_window_are_counted_together() -> None:
    """As the core and the judge of chaos tests count them."""
    fenced = [("n1", 0), ("n2", WINDOW_MS), ("n3", 2 * WINDOW_MS + 1)]
    assert most_in_a_window(fenced) == 2
    assert most_in_a_window(fenced[1:]) == 1
