"""Where following begins: which snapshots are believed, which are passed over, and what stops everybody."""

import dataclasses
import hashlib
import json
from collections.abc import Callable

import pytest
import structlog

from controlplane.codec.decisions import decision_key
from controlplane.codec.outputs import decode_snapshot_part, encode_snapshot_part
from controlplane.config import DECISIONS, SNAPSHOTS
from controlplane.core.cluster.events import ClusterCreated
from controlplane.core.cluster.policy import FEATURE_LEVEL, ClusterPolicy
from controlplane.core.log.decision import Decision
from controlplane.core.log.snapshots.catalog import superseded_keys
from controlplane.core.log.snapshots.snapshot_part import SnapshotPart
from controlplane.core.log.state import State
from controlplane.core.values.identifiers import Seq, TopicPartition
from controlplane.errors import LogContinuityError, UnsupportedFeatureLevelError
from controlplane.ports import OutgoingRecord
from controlplane.service.follower import LogFollower
from controlplane.topic_reading.start_point import find_start_point, read_catalog
from tests.helpers.logs import resealed
from tests.helpers.snapshots import SnapshotWorld, append, snapshot_records
from tests.helpers.world import World


def decisions(slot_count: int = 8) -> list[Decision]:
    """A short history."""
    world = World(ClusterPolicy(slot_count=slot_count))
    world.admit("n1", "n2")
    world.run(5_000, ("n1",))
    return world.decisions


def passed_over(world: SnapshotWorld) -> tuple[State, list[str]]:
    """The state from which following begins, and why snapshots were passed over."""
    with structlog.testing.capture_logs() as lines:
        point = find_start_point(world.reader(), world.clock)
    return point.state, [line["reason"] for line in lines if line["event"] == "snapshot skipped"]


def said(records: list[OutgoingRecord], change: Callable[[SnapshotPart], SnapshotPart]) -> list[OutgoingRecord]:
    """The records of a snapshot whose parts say something else."""
    parts = [change(decode_snapshot_part(record.value or b"")) for record in records]
    return [record._replace(value=encode_snapshot_part(part)) for record, part in zip(records, parts, strict=True)]


def test_without_a_snapshot_following_begins_at_the_start() -> None:
    """A young log is folded whole."""
    world = SnapshotWorld(decisions())
    assert passed_over(world) == (State(), [])


def test_the_newest_snapshot_is_taken() -> None:
    """The less is left to fold the better."""
    world = SnapshotWorld(decisions())
    world.store([*snapshot_records(world.points[2]), *snapshot_records(world.points[0])])
    assert passed_over(world) == (world.points[2].state, [])


def test_only_snapshots_that_are_early_enough_are_taken_for_an_older_state() -> None:
    """Who asks for the state after an older decision cannot begin after it."""
    world = SnapshotWorld(decisions())
    for point in world.points[:3]:
        world.store(snapshot_records(point))
    assert find_start_point(world.reader(), world.clock, lambda header: header.seq <= 2).state == world.points[1].state


def test_a_snapshot_of_another_log_is_never_led_on() -> None:
    """The topics were recreated, the snapshots stayed: their last decision is not the one that stands in the log."""
    mine, others = SnapshotWorld(decisions()), SnapshotWorld(resealed_as("another", decisions()))
    mine.store(snapshot_records(others.points[1]))
    state, (reason,) = passed_over(mine)
    assert state == State()
    assert reason == "it is of log 'another', and topic decisions begins with log 'log'"


def test_a_decision_of_a_newer_foreign_log_and_its_snapshot_stop_no_reader() -> None:
    """A reader of the whole log passes by that decision, so a reader of the snapshots has to do so as well."""
    world = SnapshotWorld(decisions())
    end = world.reader().end_offsets(DECISIONS)[TopicPartition(DECISIONS, 0)]
    last = world.points[-1]
    world.commit(dataclasses.replace(decisions()[-1], log_id="another", seq=Seq(50), feature_level=FEATURE_LEVEL + 1))
    follower = LogFollower(world.reader, world.clock)
    follower.read_to_end(1_000, 1_000)
    assert follower.state == last.state
    forged = said(
        snapshot_records(last),
        lambda part: dataclasses.replace(part, log_id="another", seq=Seq(50), last_decision_offset=end),
    )
    world.store([*snapshot_records(world.points[0]), *forged])
    assert passed_over(world)[0] == world.points[0].state


def test_garbage_and_a_snapshot_that_names_no_log_stop_no_reader() -> None:
    """Without a log id every record in an unknown schema could be a decision of a newer version."""
    world = SnapshotWorld(decisions())
    end = world.reader().end_offsets(DECISIONS)[TopicPartition(DECISIONS, 0)]
    append(world.cluster, world.broker, [OutgoingRecord(DECISIONS, b"x", b"\xc3\x01unknown!" + b"\0" * 9, 0)])
    last = world.points[-1]
    forged = said(snapshot_records(last), lambda part: dataclasses.replace(part, log_id="", last_decision_offset=end))
    world.store([*snapshot_records(world.points[0]), *forged])
    assert passed_over(world)[0] == world.points[0].state


def test_a_foreign_log_behind_ours_is_not_followed_because_of_its_snapshot() -> None:
    """The first decision of the topic names the log, with a snapshot as without one."""
    mine, others = SnapshotWorld(decisions()), SnapshotWorld(resealed_as("another", decisions()))
    begin = mine.reader().end_offsets(DECISIONS)[TopicPartition(DECISIONS, 0)]
    for decision in resealed_as("another", decisions()):
        mine.commit(decision)
    genuine = others.points[2]
    reader = mine.reader()
    reader.assign({TopicPartition(DECISIONS, 0): begin})
    records = reader.poll(10_000, 0).records
    offset = next(record.offset for record in records if record.key == decision_key(genuine.state.seq))
    mine.store(snapshot_records(dataclasses.replace(genuine, last_decision_offset=offset)))
    follower = LogFollower(mine.reader, mine.clock)
    follower.read_to_end(1_000, 1_000)
    assert follower.state == mine.points[-1].state


def test_a_snapshot_of_a_log_that_went_on_otherwise_is_never_led_on() -> None:
    """A log that lost its end and went on has the same id: the digest of the decision tells the two apart."""
    theirs = decisions()
    lost = World(ClusterPolicy(slot_count=8))
    lost.admit("n1", "n3")
    mine, others = SnapshotWorld(theirs), SnapshotWorld(lost.decisions)
    assert others.points[1].state.log_id == mine.points[1].state.log_id
    assert others.points[1].last_decision_offset == mine.points[1].last_decision_offset
    mine.store(snapshot_records(others.points[1]))
    state, (reason,) = passed_over(mine)
    assert state == State()
    assert "at the snapshot's offset" in reason


def test_a_snapshot_beyond_the_end_of_the_log_is_passed_over() -> None:
    """The log was cut off before it."""
    whole = SnapshotWorld(decisions())
    short = SnapshotWorld(decisions()[:2])
    short.store([*snapshot_records(whole.points[0]), *snapshot_records(whole.points[-1])])
    state, (reason,) = passed_over(short)
    assert state == whole.points[0].state
    assert "but the log keeps 0 to" in reason


def test_an_offset_within_a_decision_is_no_place_to_begin() -> None:
    """A decision in parts is read from its first one."""
    world = SnapshotWorld(decisions(32))
    point = world.points[1]
    assert point.next_offset - point.last_decision_offset > 1
    wrong = dataclasses.replace(point, last_decision_offset=point.last_decision_offset + 1)
    world.store(snapshot_records(wrong))
    state, (reason,) = passed_over(world)
    assert state == State()
    assert f"no decision begins at decisions[0]@{wrong.last_decision_offset}" in reason


def test_snapshots_beside_an_empty_log_stop_everybody() -> None:
    """A log that was deleted must not be begun anew in silence."""
    world = SnapshotWorld(decisions())
    world.store(snapshot_records(world.points[1]))
    world.broker.create_topic(world.cluster.topic(DECISIONS))
    with pytest.raises(LogContinuityError, match="topic decisions is empty, but snapshots holds a state of seq 2"):
        find_start_point(world.reader(), world.clock)


def test_a_snapshot_of_a_newer_feature_level_stops_its_reader() -> None:
    """Its last decision stands in the log. The snapshot is passed over, and reading the log stops at that decision."""
    world = SnapshotWorld(decisions())
    last, end = world.points[-1], world.reader().end_offsets(DECISIONS)[TopicPartition(DECISIONS, 0)]
    world.commit(dataclasses.replace(decisions()[-1], seq=Seq(last.state.seq + 1), feature_level=FEATURE_LEVEL + 1))
    newer = said(
        snapshot_records(last),
        lambda part: dataclasses.replace(
            part, seq=Seq(last.state.seq + 1), feature_level=FEATURE_LEVEL + 1, last_decision_offset=end
        ),
    )
    world.store([*snapshot_records(world.points[0]), *newer])
    state, (reason,) = passed_over(world)
    assert state == world.points[0].state
    assert f"needs feature level {FEATURE_LEVEL + 1}" in reason
    with pytest.raises(UnsupportedFeatureLevelError, match=f"needs feature level {FEATURE_LEVEL + 1}.*upgrade"):
        LogFollower(world.reader, world.clock).read_to_end(1_000, 1_000)


def test_a_forged_feature_level_stops_no_reader() -> None:
    """The log confirms everything else of this snapshot, and is as old as the reader."""
    world = SnapshotWorld(decisions())
    records = snapshot_records(world.points[1])
    forged = said(records, lambda part: dataclasses.replace(part, feature_level=FEATURE_LEVEL + 1))
    world.store([*snapshot_records(world.points[0]), *forged])
    assert passed_over(world) == (world.points[1].state, [])


def test_a_record_that_is_no_part_harms_no_snapshot() -> None:
    """Anybody with the right may write garbage."""
    world = SnapshotWorld(decisions())
    records = snapshot_records(world.points[1])
    garbage = OutgoingRecord(SNAPSHOTS, b"zzz/000000", b"no avro", 0)
    world.store([*records, garbage, garbage._replace(key=b"zzz"), records[0]._replace(key=b"\xff/000000")])
    state, reasons = passed_over(world)
    assert state == world.points[1].state
    assert len(reasons) == 2


@pytest.mark.parametrize(
    "change",
    [
        {"part_count": 1 << 62},
        {"part_count": -1},
        {"part": -7},
        {"body": b"[" * 100_000},
        {"body": b"\xff"},
        {"last_decision_offset": 1 << 62},
        {"last_decision_offset": -3},
        {"log_id": "another", "feature_level": FEATURE_LEVEL + 1},
    ],
)
def test_a_forged_part_harms_no_snapshot(change: dict[str, object]) -> None:
    """Whatever it says of itself: the one before is taken, and no controller ends, or counts to the end of numbers."""
    world = SnapshotWorld(decisions())
    forged = said(
        snapshot_records(world.points[2], part_bytes=1 << 20),
        lambda part: with_digest(dataclasses.replace(part, **change)),  # type: ignore[arg-type]  # fields by name
    )
    world.store([*snapshot_records(world.points[1]), *forged])
    state, (reason,) = passed_over(world)
    assert state == world.points[1].state
    assert reason


@pytest.mark.parametrize("kind", ["surrogate", "unhashable type"])
def test_a_forged_body_harms_no_snapshot(kind: str) -> None:
    """It is JSON of the right form, and only its digest cannot be computed, or its values cannot be looked up."""
    world = SnapshotWorld(decisions())

    def change(part: SnapshotPart) -> SnapshotPart:
        body = json.loads(part.body)
        if kind == "surrogate":
            body["leader"] = "\ud800"
        else:
            body["membership"]["nodes"] = [[["a"], {"type": []}]]
            body["cluster"]["former_silence_limit"] = {"type": []}
        return with_digest(dataclasses.replace(part, body=json.dumps(body).encode()))

    forged = said(snapshot_records(world.points[2], part_bytes=1 << 20), change)
    world.store([*snapshot_records(world.points[1]), *forged])
    state, (reason,) = passed_over(world)
    assert state == world.points[1].state
    assert "its body is not the canonical form of a state" in reason


def with_digest(part: SnapshotPart) -> SnapshotPart:
    """The part of a snapshot that has no other, with the digest of what it holds."""
    return dataclasses.replace(part, body_digest=hashlib.sha256(part.body).hexdigest())


def test_decisions_before_a_snapshot_may_be_gone() -> None:
    """Retention keeps every decision; where somebody deleted the old ones all the same, a snapshot is enough."""
    world = SnapshotWorld(decisions())
    point = world.points[2]
    world.store(snapshot_records(point))
    world.broker.delete_before(world.cluster.topic(DECISIONS), 0, point.last_decision_offset)
    follower = LogFollower(world.reader, world.clock)
    follower.read_to_end(1_000, 1_000)
    assert follower.state == world.points[-1].state
    world.empty_catalog()
    with pytest.raises(LogContinuityError, match="decisions were deleted"):
        LogFollower(world.reader, world.clock).poll(0)


def test_a_follower_that_has_begun_never_goes_back_to_a_snapshot() -> None:
    """What was folded was checked, decision by decision."""
    world = SnapshotWorld(decisions())
    follower = LogFollower(world.reader, world.clock)
    follower.read_to_end(1_000, 1_000)
    whole = follower.point
    world.store(snapshot_records(world.points[1]))
    follower.read_to_end(1_000, 1_000)
    assert follower.point == whole
    assert whole.next_offset == world.reader().end_offsets(DECISIONS)[TopicPartition(DECISIONS, 0)] - 1


def resealed_as(log_id: str, history: list[Decision]) -> list[Decision]:
    """The same history under another log id."""
    first = history[0]
    created = first.events[0]
    assert isinstance(created, ClusterCreated)
    created = dataclasses.replace(created, log_id=log_id)
    renamed = [dataclasses.replace(first, log_id=log_id, events=(created, *first.events[1:]))]
    renamed += [dataclasses.replace(decision, log_id=log_id) for decision in history[1:]]
    return resealed(renamed, State())


def test_what_the_log_does_not_hold_replaces_nothing() -> None:
    """A log that lost its end leaves snapshots of decisions that are gone: the older ones are all that can be used."""
    world = SnapshotWorld(decisions())
    for point in world.points:
        world.store(snapshot_records(point))
    stored = read_catalog(world.reader(), world.clock).newest_first()
    first = {record.key for record in snapshot_records(world.points[0])}
    assert superseded_keys(stored, "log", world.points[1].state.seq) == []
    assert set(superseded_keys(stored, "log", world.points[2].state.seq)) == first
    assert superseded_keys(stored, "another log", world.points[-1].state.seq) == []
