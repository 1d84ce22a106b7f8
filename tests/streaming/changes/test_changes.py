"""Tables of changes: whatever the cuts and crashes, what the events write is what they make of the state."""

import itertools
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from deltalake import write_deltalake
from hypothesis import given, settings

from controlplane.core.bundles.bundle import Bundle
from controlplane.core.cluster.events import ClusterCreated
from controlplane.core.intents.events import IntentAnswered
from controlplane.core.log.apply import apply_decision
from controlplane.core.log.decision import Decision
from controlplane.core.log.state import State
from controlplane.core.membership.events import NodeFenced
from controlplane.core.slots.table import Slot
from controlplane.core.values.identifiers import Seq
from controlplane.errors import LogContinuityError
from streaming.changes.follower import APP_ID, ChangesFollower
from streaming.changes.written_rows import written_by
from streaming.contracts.changes import (
    BUNDLE_CHANGES_TABLE,
    BUNDLES_TABLE,
    INTENT_ANSWERS_TABLE,
    NODE_CHANGES_TABLE,
    SLOT_CHANGES_TABLE,
    SLOTS_TABLE,
)
from streaming.contracts.records import DECISIONS_TABLE
from streaming.contracts.table import TableContract
from streaming.tables.created_tables import create_missing
from streaming.tables.table_writer import TableWriter
from tests.helpers.decision_table import DecisionTable
from tests.helpers.eventful import eventful_decisions
from tests.helpers.histories import History, operations, play
from tests.helpers.killed import KilledError

WRITTEN = (
    SLOT_CHANGES_TABLE,
    SLOTS_TABLE,
    BUNDLE_CHANGES_TABLE,
    BUNDLES_TABLE,
    NODE_CHANGES_TABLE,
    INTENT_ANSWERS_TABLE,
)
EVENTFUL = eventful_decisions()


def states(decisions: Sequence[Decision]) -> Iterator[tuple[Decision, State, State]]:
    """Each decision with the state before and after it."""
    before = State()
    for decision in decisions:
        after = apply_decision(before, decision)
        yield decision, before, after
        before = after


def check_written(decisions: Sequence[Decision]) -> None:
    """What events write is the state's after them, and nothing else differs from before."""
    for decision, before, after in states(decisions):
        written = written_by(decision.events)
        is_first = any(isinstance(event, ClusterCreated) for event in decision.events)
        rows_before: Mapping[Any, Slot] = {} if is_first else before.slots.rows
        for slot_id, slot in after.slots.rows.items():
            default = Slot(slot_id, None, (), slot.leader_epoch) if is_first else None
            assert written.slots.get(slot_id, rows_before.get(slot_id, default)) == slot
        bundles = {**before.bundles.by_id, **written.bundles}
        assert {name: row for name, row in bundles.items() if row is not None} == dict(after.bundles.by_id)
        assert all(written.bundles[name] is None for name in before.bundles.by_id.keys() - after.bundles.by_id.keys())


@given(operations)
@settings(max_examples=60, deadline=None)
def test_events_say_what_they_write(history: History) -> None:
    """In any history, whatever else an event says."""
    check_written(play(history).decisions)


def test_events_of_handoffs_and_splits_say_what_they_write() -> None:
    """Also where bundles are released, split and deleted."""
    check_written(EVENTFUL)
    kinds = {type(event).__name__ for decision in EVENTFUL for event in decision.events}
    assert kinds >= {"BundleSplit", "NamespaceDeleted", "SlotsSplit", "NodeFenced", "NodeRemoved", "NodeUndrained"}


def rows_of(folder: Path, contract: TableContract) -> list[dict[str, Any]]:
    """A table's rows in the order of its key."""
    rows = TableWriter(folder, contract, APP_ID).rows().to_pylist()
    return sorted(rows, key=lambda row: tuple(row[name] for name in contract.key))


def follow_all(folder: Path) -> int:
    """A new run of the follower takes all that is there; the number of decisions."""
    follower = ChangesFollower(folder)
    return sum(iter(follower.step, 0))


@pytest.fixture(scope="module")
def at_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tables of the eventful log, made in one step."""
    folder = tmp_path_factory.mktemp("changes") / "delta"
    create_missing(folder, bucket_count=3)
    DecisionTable(folder, EVENTFUL).add(len(EVENTFUL))
    assert follow_all(folder) == len(EVENTFUL)
    return folder


def slot_columns(slot: Slot | None) -> tuple[Any, ...]:
    """The columns of a slot's row that a change compares."""
    return (None, None, None) if slot is None else (slot.leader, list(slot.followers), slot.leader_epoch)


def bundle_columns(bundle: Bundle | None) -> tuple[Any, ...]:
    """Those of a bundle's row."""
    if bundle is None:
        return (None,) * 4
    return (bundle.ownership_state.value, bundle.owner, bundle.serving_node, bundle.owner_epoch)


def test_each_change_has_the_row_before_and_after(at_once: Path) -> None:
    """As the states have them; a slot that no decision wrote has no row."""
    slots, bundles = [], []
    seen: set[int] = set()
    for decision, before, after in states(EVENTFUL):
        written = written_by(decision.events)
        for slot_id in sorted(written.slots):
            former = before.slots.rows.get(slot_id) if slot_id in seen else None
            slots.append((decision.seq, slot_id, *slot_columns(former), *slot_columns(after.slots.rows[slot_id])))
            seen.add(slot_id)
        for bundle_id in sorted(written.bundles):
            both = (before.bundles.by_id.get(bundle_id), after.bundles.by_id.get(bundle_id))
            bundles.append((decision.seq, bundle_id, both[1] is None, *map(bundle_columns, both)))
    compared: tuple[str, ...] = ("leader", "followers", "leader_epoch")
    names = ("seq", "slot_id", *(f"from_{each}" for each in compared), *(f"to_{each}" for each in compared))
    assert [tuple(row[name] for name in names) for row in rows_of(at_once, SLOT_CHANGES_TABLE)] == slots
    compared = ("state", "owner", "serving_node", "owner_epoch")
    found = [
        (
            row["seq"],
            row["bundle_id"],
            row["ended"],
            tuple(row[f"from_{name}"] for name in compared),
            tuple(row[f"to_{name}"] for name in compared),
        )
        for row in rows_of(at_once, BUNDLE_CHANGES_TABLE)
    ]
    assert found == bundles


@pytest.mark.parametrize("contract", [SLOT_CHANGES_TABLE, BUNDLE_CHANGES_TABLE], ids=lambda each: each.name)
def test_changes_are_chained(at_once: Path, contract: TableContract) -> None:
    """The row before is that of the decision that is named, and each row says which decision wrote it, and why."""
    name = contract.key[1]
    former: dict[Any, dict[str, Any]] = {}
    decided = {decision.seq: decision for decision in EVENTFUL}
    for row in rows_of(at_once, contract):
        last = former.get(row[name])
        since = (None, None) if last is None else (last["seq"], last["append_time_ms"])
        assert (row["from_seq"], row["from_ms"]) == since
        decision = decided[row["seq"]]
        assert (row["term"], row["epoch"], row["decided_at_ms"]) == (
            decision.term,
            decision.epoch,
            decision.decided_at_ms,
        )
        assert [cause["subject"] for cause in row["causes"]] == [cause.subject for cause in decision.causes]
        former[row[name]] = row


def test_present_rows_are_the_newest_states(at_once: Path) -> None:
    """What ended has no row."""
    *_, (_, _, last) = states(EVENTFUL)
    slots = {
        row["slot_id"]: (row["leader"], row["followers"], row["leader_epoch"]) for row in rows_of(at_once, SLOTS_TABLE)
    }
    assert slots == {slot_id: slot_columns(slot) for slot_id, slot in last.slots.rows.items()}
    names = ("state", "owner", "serving_node", "owner_epoch", "version", "parent")
    bundles = {row["bundle_id"]: tuple(row[name] for name in names) for row in rows_of(at_once, BUNDLES_TABLE)}
    assert bundles == {
        name: (*bundle_columns(row), row.version, row.parent) for name, row in last.bundles.by_id.items()
    }


def test_nodes_and_answers_are_those_of_the_events(at_once: Path) -> None:
    """In the order of the log, with what the events say."""
    nodes = [(row["change"], row["node_id"]) for row in rows_of(at_once, NODE_CHANGES_TABLE)]
    assert nodes[:4] == [("admitted", name) for name in ("n1", "n2", "n3", "n4")]
    assert {change for change, _ in nodes} == {"admitted", "draining", "undrained", "fenced", "removed"}
    events = [event for decision in EVENTFUL for event in decision.events]
    fenced = [(row["node_id"], row["silence_ms"]) for row in rows_of(at_once, NODE_CHANGES_TABLE) if row["silence_ms"]]
    assert fenced == [(event.node_id, event.silence_ms) for event in events if isinstance(event, NodeFenced)]
    answers = {row["intent_id"]: (row["outcome"], row["detail"]) for row in rows_of(at_once, INTENT_ANSWERS_TABLE)}
    told = [event for event in events if isinstance(event, IntentAnswered)]
    assert answers == {event.intent_id: (event.outcome.value, event.detail) for event in told}


@pytest.mark.parametrize("seed", range(12))
def test_cuts_and_crashes_change_nothing(
    at_once: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Batches of any size, steps of any length, and a kill before or after any commit of any table."""
    source = random.Random(seed)
    create_missing(tmp_path, bucket_count=3)
    table = DecisionTable(tmp_path, EVENTFUL)
    monkeypatch.setattr("streaming.changes.follower._STEP_DECISIONS", source.randint(1, 9))
    crashes = itertools.count()

    def killed_at_times(*args: object, **how: object) -> None:
        if source.random() < 0.15:
            raise KilledError(next(crashes))
        write_deltalake(*args, **how)  # type: ignore[call-overload]
        if source.random() < 0.15:
            raise KilledError(next(crashes))

    follower = ChangesFollower(tmp_path)
    while table.written < len(EVENTFUL):
        table.add(source.randint(1, 6))
        with monkeypatch.context() as faults:
            faults.setattr("streaming.tables.table_writer.write_deltalake", killed_at_times)
            try:
                sum(iter(follower.step, 0))
            except KilledError:
                follower = ChangesFollower(tmp_path)
    follow_all(tmp_path)
    assert next(crashes) > 0
    for contract in WRITTEN:
        assert rows_of(tmp_path, contract) == rows_of(at_once, contract), contract.name


@pytest.mark.parametrize(
    "gone",
    [(SLOTS_TABLE,), (SLOT_CHANGES_TABLE,), (SLOTS_TABLE, SLOT_CHANGES_TABLE), (BUNDLE_CHANGES_TABLE,)],
    ids=lambda gone: " and ".join(table.name for table in gone),
)
def test_tables_that_are_gone_are_made_anew(at_once: Path, tmp_path: Path, gone: tuple[TableContract, ...]) -> None:
    """From the table of decisions alone, whatever Kafka still has; a second run finds nothing to do."""
    create_missing(tmp_path, bucket_count=3)
    DecisionTable(tmp_path, EVENTFUL).add(len(EVENTFUL))
    follow_all(tmp_path)
    assert follow_all(tmp_path) == 0
    for table in gone:
        (tmp_path / table.name).rename(tmp_path / f"gone-{table.name}")
    assert create_missing(tmp_path, bucket_count=3) == {table.name for table in gone}
    assert follow_all(tmp_path) == len(EVENTFUL)
    assert follow_all(tmp_path) == 0
    for contract in WRITTEN:
        assert rows_of(tmp_path, contract) == rows_of(at_once, contract), contract.name


def test_positions_are_written_after_many_decisions_that_changed_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next start does not read them all again, also those of a table that never had a row."""
    monkeypatch.setattr("streaming.changes.follower._UNWRITTEN_DECISIONS", 3)
    create_missing(tmp_path, bucket_count=3)
    slots_only = list(EVENTFUL[:2])
    quiet = [replace(slots_only[-1], seq=Seq(slots_only[-1].seq + number), events=()) for number in range(1, 9)]
    DecisionTable(tmp_path, [*slots_only, *quiet]).add(20)
    monkeypatch.setattr("streaming.changes.follower._STEP_DECISIONS", 2)
    assert follow_all(tmp_path) == 10
    for contract in WRITTEN:
        written = TableWriter(tmp_path, contract, APP_ID).written_version
        assert written is not None, contract.name
        assert written > quiet[-1].seq - 4, contract.name
    assert rows_of(tmp_path, BUNDLES_TABLE) == rows_of(tmp_path, INTENT_ANSWERS_TABLE) == []
    assert len(rows_of(tmp_path, SLOTS_TABLE)) == 8


def filled_anew(folder: Path, begin: int) -> None:
    """Move the table of decisions away, and fill it again with those from an index on."""
    (folder / DECISIONS_TABLE.name).rename(folder / f"former-{begin}-{DECISIONS_TABLE.name}")
    create_missing(folder, bucket_count=3)
    table = DecisionTable(folder, EVENTFUL)
    table.written = begin
    table.add(len(EVENTFUL))


def make_anew(folder: Path, tables: Iterable[TableContract]) -> None:
    """Move tables away, and create them again."""
    for table in tables:
        (folder / table.name).rename(folder / f"former-{table.name}")
    create_missing(folder, bucket_count=3)


@pytest.fixture
def followed(tmp_path: Path) -> Path:
    """Tables of the first five decisions."""
    create_missing(tmp_path, bucket_count=3)
    DecisionTable(tmp_path, EVENTFUL).add(5)
    assert follow_all(tmp_path) == 5
    return tmp_path


@pytest.mark.parametrize("look_ahead", [100_000, 1])
def test_a_hole_in_the_decisions_is_mended_by_filling_their_table_again(
    followed: Path, at_once: Path, monkeypatch: pytest.MonkeyPatch, look_ahead: int
) -> None:
    """What the missing decision changed is unknown, so no row after it can be trusted; however far it reaches."""
    monkeypatch.setattr("streaming.changes.follower._LOOK_AHEAD_DECISIONS", look_ahead)
    later = DecisionTable(followed, EVENTFUL)
    later.written = 7
    later.add(3)
    told = (
        f"has no decision {EVENTFUL[5].seq}, but {EVENTFUL[7].seq}: .* Move the folder of decisions and its checkpoint"
    )
    with pytest.raises(LogContinuityError, match=told):
        follow_all(followed)
    filled_anew(followed, 0)
    assert follow_all(followed) > 0
    for contract in WRITTEN:
        assert rows_of(followed, contract) == rows_of(at_once, contract), contract.name


def test_a_hole_is_met_again_by_tables_that_are_made_anew(followed: Path) -> None:
    """So the advice is another one than where the table begins late."""
    later = DecisionTable(followed, EVENTFUL)
    later.written = 7
    later.add(3)
    make_anew(followed, WRITTEN)
    with pytest.raises(LogContinuityError, match=f"has no decision {EVENTFUL[5].seq}, .* folder of decisions"):
        follow_all(followed)


@pytest.mark.parametrize("step", [256, 6])
def test_a_decision_that_is_there_twice_is_refused(followed: Path, monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    """By its own name, and also where a step ends between the two."""
    monkeypatch.setattr("streaming.changes.follower._STEP_DECISIONS", step)
    filled_anew(followed, 0)
    again = DecisionTable(followed, EVENTFUL)
    again.written = 10
    again.add(1)
    told = f"has decision {EVENTFUL[10].seq} more than once: .* folder of decisions"
    with pytest.raises(LogContinuityError, match=told):
        follow_all(followed)


@pytest.mark.parametrize(
    "left",
    [WRITTEN, (SLOT_CHANGES_TABLE,), (NODE_CHANGES_TABLE,)],
    ids=lambda left: " and ".join(table.name for table in left),
)
def test_tables_of_changes_that_end_before_the_first_decision_are_made_anew(
    followed: Path, left: tuple[TableContract, ...]
) -> None:
    """All six of them: one that was left would lack what was decided between, and would not show it."""
    filled_anew(followed, 7)
    make_anew(followed, [contract for contract in WRITTEN if contract not in left])
    told = f"begins with decision {EVENTFUL[7].seq}, but .* up to {EVENTFUL[4].seq}: .* Move the folders of the tables"
    with pytest.raises(LogContinuityError, match=told):
        follow_all(followed)
    make_anew(followed, left)
    assert follow_all(followed) == len(EVENTFUL) - 7
    assert min(row["seq"] for row in rows_of(followed, SLOT_CHANGES_TABLE)) >= EVENTFUL[7].seq
