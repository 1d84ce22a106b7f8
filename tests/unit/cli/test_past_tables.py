"""``table show --as-of-...``, ``log replay`` and ``snapshot``: the past rebuilt exactly, with and without snapshots."""

import json

import pytest

from controlplane.cli.common.failures import ExitStatus
from controlplane.codec.table import decode_row
from controlplane.config import ROUTING_TABLE
from controlplane.core.log.snapshots.log_point import LogPoint
from controlplane.core.routing.rows import EpochMarker
from controlplane.inspection import decisions
from controlplane.inspection.past_states import table_of
from controlplane.inspection.snapshots import SNAPSHOT_FIELDS
from tests.helpers.commands import RunCommand
from tests.helpers.published_world import PublishedWorld
from tests.helpers.snapshots import append, points_of, snapshot_records


@pytest.fixture
def points(world: PublishedWorld) -> list[LogPoint]:
    """The place after each decision of a cluster with joins, a namespace, a death and positions."""
    world.admit("n1", "n2", "n3")
    world.intent("i1", "create_namespace", namespace="kv")
    world.intent("i2", "pause_reconciliation")
    world.run(300, ("n1", "n2", "n3"))
    world.intent("i3", "resume_reconciliation")
    world.run(6_000, ("n1", "n2"))
    return points_of(world.reader())


def store(world: PublishedWorld, *points: LogPoint) -> None:
    """Put snapshots of these places into the topic."""
    for point in points:
        append(world.cluster, world.broker, snapshot_records(point))


@pytest.mark.parametrize("with_snapshots", [False, True])
def test_every_epoch_is_rebuilt_as_it_was_published(
    cluster_command: RunCommand, world: PublishedWorld, points: list[LogPoint], *, with_snapshots: bool
) -> None:
    """The digest of the rebuilt table is the one that the epoch's marker carried."""
    if with_snapshots:
        store(world, points[1], points[-2])
    reader = world.reader()
    reader.assign(reader.start_offsets(ROUTING_TABLE))
    rows = [decode_row(record.key or b"", record.value) for record in reader.poll(10_000, 0).records if record.value]
    markers = [row for row in rows if isinstance(row, EpochMarker)]
    assert len(markers) > 3
    for marker in markers:
        shown = json.loads(cluster_command("table", "show", "--as-of-epoch", str(marker.epoch), "--format", "json").out)
        assert (shown["epoch"], shown["digest"], shown["log_id"]) == (marker.epoch, marker.digest, marker.log_id)


def test_a_decision_and_its_offset_name_the_same_moment(
    cluster_command: RunCommand, world: PublishedWorld, points: list[LogPoint]
) -> None:
    """Also where no row changed, as with a pause, which the table shows."""
    store(world, points[0], points[2])
    for point in points:
        by_seq = cluster_command("table", "show", "--as-of-seq", str(point.state.seq), "--format", "json").out
        by_offset = cluster_command(
            "table", "show", "--as-of-offset", str(point.next_offset - 1), "--format", "json"
        ).out
        assert by_seq == by_offset
        shown = json.loads(by_seq)
        assert (shown["seq"], shown["paused"]) == (point.state.seq, point.state.slots.paused)
        assert shown["digest"] == table_of(point.state).digest
    assert {point.state.slots.paused for point in points} == {True, False}


def test_a_table_of_the_past_names_its_moment(cluster_command: RunCommand, points: list[LogPoint]) -> None:
    """People see at once that it is not the newest one."""
    lines = cluster_command("table", "show", "--as-of-epoch", "2").out.splitlines()
    assert lines[0].startswith("epoch 2, term 1, seq ")
    assert len(points) > 3


@pytest.mark.parametrize(
    ("option", "number", "sentence"),
    [
        ("--as-of-epoch", 99, "epoch 99 is not there yet: the newest one is"),
        ("--as-of-seq", 99, "seq 99 is not there yet: the newest one is"),
        ("--as-of-offset", 999, "offset 999 is not there yet: the newest one is"),
    ],
)
def test_a_moment_that_has_not_come_is_said(
    cluster_command: RunCommand, points: list[LogPoint], option: str, number: int, sentence: str
) -> None:
    """The newest table under another number would be a wrong answer."""
    assert points
    ran = cluster_command("table", "show", option, str(number))
    assert (ran.status, ran.out) == (ExitStatus.FAILED, "")
    assert sentence in ran.err


def test_two_moments_at_once_are_refused(cluster_command: RunCommand, points: list[LogPoint]) -> None:
    """Which of the two was meant nobody knows."""
    assert points
    ran = cluster_command("table", "show", "--as-of-epoch", "1", "--as-of-seq", "1")
    assert ran.status != ExitStatus.DONE
    assert "--as-of-epoch and --as-of-seq: name one moment only" in ran.err


def test_a_replay_leads_to_the_same_digest_from_anywhere(
    cluster_command: RunCommand, world: PublishedWorld, points: list[LogPoint]
) -> None:
    """The whole log, the tail behind a snapshot, and a log that is folded up to a decision only."""
    begun = cluster_command("log", "replay", "--from-snapshot")
    assert (begun.status, "begun at the log's start" in begun.err) == (ExitStatus.DONE, True)
    store(world, points[1])
    whole = json.loads(cluster_command("log", "replay", "--format", "json").out)
    from_snapshot = cluster_command("log", "replay", "--from-snapshot", "--format", "json")
    assert "begun at the log's start" not in from_snapshot.err
    tail = json.loads(from_snapshot.out)
    assert set(whole) == set(decisions.REPLAY_FIELDS)
    assert whole["state_digest"] == tail["state_digest"] == world.state.digest()
    assert (whole["began_after_seq"], whole["decisions"]) == (0, len(points))
    assert (tail["began_after_seq"], tail["decisions"]) == (2, len(points) - 2)
    part = json.loads(cluster_command("log", "replay", "--to-seq", "3", "--format", "json").out)
    assert (part["seq"], part["state_digest"]) == (3, points[2].state.digest())


def test_snapshots_are_listed_with_what_is_wrong_with_them(
    cluster_command: RunCommand, world: PublishedWorld, points: list[LogPoint]
) -> None:
    """Newest first; a half-written one is named with its problem."""
    store(world, points[0], points[1])
    append(world.cluster, world.broker, snapshot_records(points[2])[:-1])
    ran = cluster_command("snapshot", "list", "--format", "json")
    rows = json.loads(ran.out)
    assert ran.status == ExitStatus.DONE
    assert set(rows[0]) == set(SNAPSHOT_FIELDS)
    assert [row["seq"] for row in rows] == [3, 2, 1]
    assert [row["problem"] for row in rows][1:] == ["", ""]
    assert "parts are present" in rows[0]["problem"]


def test_no_snapshot_is_said(cluster_command: RunCommand, points: list[LogPoint]) -> None:
    """And what one can do about it."""
    assert points
    ran = cluster_command("snapshot", "list")
    assert ran.status == ExitStatus.FAILED
    assert "'controlplane snapshot now'" in ran.err


def test_commands_begin_from_the_newest_snapshot(
    cluster_command: RunCommand, world: PublishedWorld, points: list[LogPoint]
) -> None:
    """Where the decisions before it are gone, whoever read them would fail."""
    store(world, points[-2])
    world.broker.delete_before("local.decisions", 0, points[-2].last_decision_offset)
    for words in (("table", "show"), ("nodes", "list"), ("policy", "show"), ("table", "status")):
        ran = cluster_command(*words)
        assert ran.status == ExitStatus.DONE, ran.err
    ran = cluster_command("log", "replay")
    assert ran.status == ExitStatus.FAILED
    assert "decisions were deleted" in ran.err
