"""The Python of docs/how-to/read-the-tables-with-polars-and-duckdb.md, run as one program over recorded tables."""

import random
import sys
from collections import Counter
from typing import Any

import pytest

from controlplane.core.bundles.load.reported_state import Position
from controlplane.core.bundles.load.resource_usage import ResourceWeights
from controlplane.core.bundles.load.view import Resources
from controlplane.core.intents.events import IntentAnswered
from controlplane.core.log.apply import apply_decision
from controlplane.core.log.state import State
from streaming.changes.follower import ChangesFollower
from streaming.contracts.loads import BUNDLE_LOAD_TABLE
from streaming.tables.table_writer import TableWriter
from tests.helpers.log_tables import busy_world, write_tables
from tests.helpers.pipeline_world import random_report
from tests.helpers.placed_report import PlacedReport
from tests.helpers.plain_load import PlainLoad, bundle_row
from tests.helpers.readme import ROOT, blocks, console_commands, run
from tests.helpers.recorded_log import RecordedLog

PAGE = ROOT / "docs" / "how-to" / "read-the-tables-with-polars-and-duckdb.md"
BUNDLE_IDS = [f"kv/0x{index}0000000_0x{index + 1}0000000" for index in range(6)]
WORLD = busy_world()


def loaded() -> PlainLoad:
    """What two nodes have reported."""
    source, state = random.Random(7), PlainLoad()
    for number in range(10):
        report = random_report(source, f"n{number % 2 + 1}", BUNDLE_IDS, number)
        resources = Resources(*(getattr(report, name) for name in Resources._fields))
        place = Position(1_000 * number, 0, number)
        state.fold([PlacedReport(place, report.node_id, 1, resources, "1", report.bundles)], ResourceWeights())
    return state


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the blocks of the page leave in their names, run in their order beside a folder of tables."""
    folder = tmp_path_factory.mktemp("page")
    write_tables(folder / "delta", RecordedLog(WORLD))
    follower = ChangesFollower(folder / "delta")
    assert sum(iter(follower.step, 0)) == len(WORLD.decisions)
    rows = [dict(zip(BUNDLE_LOAD_TABLE.columns, bundle_row(each), strict=True)) for each in loaded().bundles.values()]
    TableWriter(folder / "delta", BUNDLE_LOAD_TABLE, "test").append(rows, 1)
    ((*words, into, file),) = console_commands("controlplane", PAGE)
    assert into == ">"
    (folder / file).write_text(
        run([sys.executable, "-m", "controlplane.cli", *words], folder, {"PYTHONPATH": str(ROOT)}), encoding="utf-8"
    )
    names: dict[str, Any] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for name in ("polars", "loads", "duckdb", "views"):
            exec(compile(blocks(PAGE)[name], f"{PAGE.name}: {name}", "exec"), names)  # noqa: S102 - the page's own code
    return names


def test_every_block_of_the_page_is_run() -> None:
    """A block without a name would be read by people and by no test."""
    assert [*blocks(PAGE)] == ["polars", "loads", "duckdb", "views"]
    assert PAGE.read_text(encoding="utf-8").count("```python") == 4


def test_moves_are_those_of_the_log(found: dict[str, Any]) -> None:
    """Each slot that went from one leader to another, by what the states say before and after each decision."""
    expected: Counter[tuple[str, str]] = Counter()
    state = State()
    for decision in WORLD.decisions:
        before, state = state, apply_decision(state, decision)
        for slot_id, slot in state.slots.rows.items():
            old = before.slots.rows.get(slot_id)
            if old and old.leader and slot.leader and old.leader != slot.leader:
                expected[old.leader, slot.leader] += 1
    moves = found["moves"].select("from_leader", "to_leader", "slots").iter_rows()
    assert {(source, target): slots for source, target, slots in moves} == expected != {}


def test_loads_are_those_that_were_written(found: dict[str, Any]) -> None:
    """With the struct's fields as columns."""
    samples = {bundle_id: state.averages.long_term.sample_count for bundle_id, state in loaded().bundles.items()}
    assert dict(found["loads"].select("bundle_id", "sample_count").iter_rows()) == samples


def test_answers_are_those_of_the_log(found: dict[str, Any]) -> None:
    """Each with the term of the decision that has it."""
    answered = [
        (event.principal, event.kind, event.outcome.value, decision.term, decision.controller_id)
        for decision in WORLD.decisions
        for event in decision.events
        if isinstance(event, IntentAnswered)
    ]
    assert found["answers"].fetchall() == answered != []


def test_owners_are_those_of_the_last_state(found: dict[str, Any]) -> None:
    """By the view that the printed statements have made."""
    leaders = {str(slot_id): slot.leader for slot_id, slot in WORLD.state.slots.rows.items()}
    assert dict(found["owners"].select("name", "node_id").iter_rows()) == leaders
