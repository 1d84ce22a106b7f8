"""Which members are heard."""

from dataclasses import replace

import pytest

from controlplane.config import ClusterConfig
from controlplane.core.cluster.policy import ClusterPolicy
from controlplane.inspection.members import Liveness, liveness, member_rows
from controlplane.inspection.readers import HeartbeatTail, read_last_heartbeats, read_routing_table
from tests.helpers.published_world import PublishedWorld
from tests.helpers.sources import source_of

LOOK_BACK_MS = 60_000
LIMIT_MS = ClusterPolicy().silence_limit_ms


@pytest.fixture
def world() -> PublishedWorld:
    """Two nodes that were heard just now."""
    made = PublishedWorld(ClusterConfig("local"))
    made.admit("n1", "n2")
    made.run(1_000, ("n1", "n2"))
    return made


def judged(world: PublishedWorld, wall_ms: int, tail: HeartbeatTail | None = None) -> Liveness:
    """Who is heard, at this time by the asking machine's clock."""
    source = source_of(world.reader())
    table = read_routing_table(source)
    assert table is not None
    found = tail or read_last_heartbeats(source, {"n1", "n2"}, LOOK_BACK_MS)
    return liveness(table, found, world.state, wall_ms, LOOK_BACK_MS)


def test_clocks_that_differ_by_less_than_the_limit_silence_nobody(world: PublishedWorld) -> None:
    """The broker's clock dates the log, and the asking machine's is another one."""
    for difference_ms in (-3_600_000, 0, LIMIT_MS):
        found = judged(world, world.now_ms + difference_ms)
        assert (found.living, dict(found.silent_ms), found.stands_still_ms) == (2, {}, 0)
    found = judged(world, world.now_ms + LIMIT_MS + 1)
    assert (found.living, set(found.silent_ms), found.stands_still_ms) == (0, {"n1", "n2"}, LIMIT_MS + 1)


def test_one_that_stops_is_silent_as_soon_as_the_limit_is_passed(world: PublishedWorld) -> None:
    """Not before: a heartbeat may be late. The other one goes on."""
    heard_at_ms = read_last_heartbeats(source_of(world.reader()), {"n1"}, LOOK_BACK_MS).last["n1"].append_time_ms
    world.heartbeat("n2")
    last = read_last_heartbeats(source_of(world.reader()), {"n1", "n2"}, LOOK_BACK_MS).last
    for silence_ms, silent in ((LIMIT_MS, {}), (LIMIT_MS + 1, {"n1": LIMIT_MS + 1})):
        now_ms = heard_at_ms + silence_ms
        newest_ms = dict.fromkeys(range(3), now_ms)
        tail = HeartbeatTail(newest_ms, {**last, "n2": replace(last["n2"], append_time_ms=now_ms)})
        assert dict(judged(world, now_ms, tail).silent_ms) == silent


def test_silence_is_measured_within_the_partition_of_the_node(world: PublishedWorld) -> None:
    """The broker of another partition may have a clock that is an hour ahead, or behind."""
    tail = read_last_heartbeats(source_of(world.reader()), {"n1", "n2"}, LOOK_BACK_MS)
    elsewhere = min(set(range(3)) - {last.partition for last in tail.last.values()})
    for ahead_ms in (-3_600_000, 3_600_000):
        shifted = HeartbeatTail({**tail.newest_ms, elsewhere: tail.newest_ms[elsewhere] + ahead_ms}, tail.last)
        assert judged(world, world.now_ms, shifted).living == 2


def test_a_member_without_a_heartbeat_is_dated_by_its_admission(world: PublishedWorld) -> None:
    """One that was admitted just now is no silent one; of an older one so much is known as was looked back."""
    nothing = HeartbeatTail({0: world.now_ms}, {})
    assert judged(world, world.now_ms, nothing).living == 2
    later_ms = world.now_ms + 10 * LOOK_BACK_MS
    found = judged(world, later_ms, HeartbeatTail({0: later_ms}, {}))
    assert dict(found.silent_ms) == {"n1": LOOK_BACK_MS, "n2": LOOK_BACK_MS}


def test_rows_carry_the_silence(world: PublishedWorld) -> None:
    """Programs need no second look to tell who is heard."""
    source = source_of(world.reader())
    table = read_routing_table(source)
    assert table is not None
    tail = read_last_heartbeats(source, {"n1", "n2"}, LOOK_BACK_MS)
    rows = member_rows(table, tail, world.state, {"n2": 5_000})
    assert [(row["node"], row["silent_ms"]) for row in rows] == [("n1", None), ("n2", 5_000)]
