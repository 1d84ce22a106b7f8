"""Snapshots of random histories: from any of them the fold ends in the same state, and no damage stays unseen."""

import dataclasses
import functools
import random
from typing import Any

import pytest
import structlog
from hypothesis import given, settings
from hypothesis import strategies as st

from controlplane.codec.outputs import decode_snapshot_part
from controlplane.core.cluster.policy import ClusterPolicy
from controlplane.core.log.snapshots.body import pieces_of, restored
from controlplane.core.log.snapshots.catalog import SnapshotCatalog, sound, superseded_keys
from controlplane.core.log.snapshots.log_point import LogPoint
from controlplane.core.log.state import State
from controlplane.core.values.canonical import canonical_bytes
from controlplane.core.values.identifiers import Seq
from controlplane.errors import InvalidInputError
from controlplane.ports import OutgoingRecord
from controlplane.service.follower import LogFollower
from controlplane.topic_reading.start_point import find_start_point
from tests.helpers.histories import History, operations, play
from tests.helpers.snapshots import SnapshotWorld, snapshot_records
from tests.helpers.world import World

SAID: dict[str, Any] = {"log_id": "x", "term": 9, "seq": 1, "epoch": 9, "decided_at_ms": 1, "state_digest": ""}
"""What the parts of a snapshot say of its state, with values that are wrong."""


def logged(history: History) -> SnapshotWorld:
    """A log of this history, with a few decisions in any case."""
    return SnapshotWorld(play([("join", "n1", 1), ("run", 700, {"n1"}), *history]).decisions)


@functools.cache
def some_log() -> SnapshotWorld:
    """A log with nodes, a namespace, and decisions in several parts; its snapshots are each test's own."""
    world = World(ClusterPolicy(slot_count=32))
    world.admit("n1")
    world.admit("n2", "n3")
    world.intent("i", "create_namespace", namespace="kv")
    world.run(5_000, ("n1", "n2"))
    return SnapshotWorld(world.decisions)


@given(operations)
@settings(max_examples=50)
def test_the_pieces_are_the_canonical_form(history: History) -> None:
    """Whoever writes in pieces writes the same bytes as whoever writes at once."""
    world = play(history)
    assert b"".join(pieces_of(world.state)) == canonical_bytes(world.state)
    assert b"".join(pieces_of(State())) == canonical_bytes(State())


@given(operations)
@settings(max_examples=30)
def test_a_snapshot_at_any_cut_and_the_tail_are_the_whole_fold(history: History) -> None:
    """And only the tail is read: a controller that begins from a snapshot folds what comes after it and no more."""
    world = logged(history)
    for point in world.points:
        world.empty_catalog()
        world.store(snapshot_records(point))
        begun = find_start_point(world.reader(), world.clock)
        assert (begun.state, begun.next_offset) == (point.state, point.next_offset)
        follower = LogFollower(world.reader, world.clock)
        follower.read_to_end(1_000, 1_000)
        whole = world.points[-1]
        assert follower.point.state == whole.state
        assert follower.point.next_offset == whole.next_offset


@given(st.data())
@settings(max_examples=200)
def test_a_snapshot_with_any_damage_is_passed_over_for_the_one_before(data: st.DataObject) -> None:
    """Whatever byte of whatever part is another, or whatever part is missing: the state is the fold of the log."""
    world = some_log()
    older, newer = world.points[1], world.points[-1]
    records = snapshot_records(newer)
    at = data.draw(st.integers(0, len(records) - 1))
    value = records[at].value or b""
    match data.draw(st.sampled_from(("byte", "byte", "cut", "missing", "removed", "other key"))):
        case "byte":
            place, bit = data.draw(st.integers(0, len(value) - 1)), data.draw(st.integers(0, 7))
            altered = value[:place] + bytes([value[place] ^ 1 << bit]) + value[place + 1 :]
            records[at] = records[at]._replace(value=altered)
        case "cut":
            records[at] = records[at]._replace(value=value[: data.draw(st.integers(0, len(value) - 1))])
        case "missing":
            del records[at]
        case "removed":
            records.append(records[at]._replace(value=None))
        case "other key":
            records[at] = records[at]._replace(key=records[at].key + b"0")
        case unknown:
            pytest.fail(f"no damage {unknown}")
    world.empty_catalog()
    world.store([*snapshot_records(older), *records])
    with structlog.testing.capture_logs() as lines:
        begun = find_start_point(world.reader(), world.clock)
    assert begun.state == older.state
    assert [line["log_level"] for line in lines if line["event"] == "snapshot skipped"] == ["warning"]


@given(st.randoms(use_true_random=False), st.integers(2, 4))
@settings(max_examples=25)
def test_writers_that_mix_never_make_a_snapshot_that_nobody_wrote(choose: random.Random, writers: int) -> None:
    """A leader that was replaced may still write: at every moment each sound snapshot is one that somebody wrote.

    Each writer writes the parts of its snapshots and then removes what two newer ones have replaced, as it sees the
    topic at that time, and however late. The newest two of all that were ever finished stay.
    """
    points = some_log().points
    log_id = points[0].state.log_id
    queues = [
        [(point, record) for point in sorted(choose.sample(points, 3), key=_seq) for record in _with_end(point, number)]
        for number in range(writers)
    ]
    catalog, finished = SnapshotCatalog(), set()
    while any(queues):
        queue = choose.choice([each for each in queues if each])
        point, record = queue.pop(0)
        if record is not None:
            catalog.fold(record.key, decode_snapshot_part(record.value or b""))
            finished |= {each.snapshot_id for each in sound(catalog.newest_first(), log_id, Seq(1 << 40))}
        else:
            for key in superseded_keys(catalog.newest_first(), log_id, point.state.seq):
                catalog.fold(key, None)
        standing = sound(catalog.newest_first(), log_id, Seq(1 << 40))
        for each in standing:
            assert restored(each.parts) == points[each.parts[0].seq - 1].state
        assert [each.snapshot_id for each in standing][:2] == sorted(finished, reverse=True)[:2]


def test_what_says_more_than_its_body_is_refused() -> None:
    """The fields beside the body are what a reader chooses by: they have to be those of the state."""
    parts = [decode_snapshot_part(record.value or b"") for record in snapshot_records(some_log().points[-1])]
    assert restored(parts) == some_log().points[-1].state
    for field, value in SAID.items():
        with pytest.raises(InvalidInputError, match="its state has another") as caught:
            restored([dataclasses.replace(part, **{field: value}) for part in parts])
        assert caught.value.reason == "damaged_snapshot"


def _with_end(point: LogPoint, number: int) -> list[OutgoingRecord | None]:
    """The parts of a snapshot, and the moment at which its writer removes what is replaced."""
    return [*snapshot_records(point, attempt=number), None]


def _seq(point: LogPoint) -> Seq:
    return point.state.seq
