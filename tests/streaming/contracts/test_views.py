"""The views against the states of the log: who served what at each decision, and for how long nothing was served."""

from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from controlplane.core.log.apply import apply_decision
from controlplane.core.log.state import State
from controlplane.core.membership.events import NodeFenced
from streaming.changes.follower import ChangesFollower
from streaming.contracts.views import OWNERSHIP_VIEW, UNAVAILABILITY_VIEW, View
from streaming.sql.local import LocalEngine
from streaming.tables.created_tables import create_missing
from tests.helpers.decision_table import APPENDED_EVERY_MS, DecisionTable
from tests.helpers.eventful import eventful_decisions

EVENTFUL = eventful_decisions()


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalEngine]:
    """DuckDB over what an eventful log changed."""
    folder = tmp_path_factory.mktemp("views") / "delta"
    create_missing(folder, bucket_count=2)
    DecisionTable(folder, EVENTFUL).add(len(EVENTFUL))
    follower = ChangesFollower(folder)
    assert sum(iter(follower.step, 0)) == len(EVENTFUL)
    with closing(LocalEngine(folder)) as local:
        yield local


def asked(engine: LocalEngine, view: View) -> list[dict[str, Any]]:
    """The rows of a view."""
    columns, rows = engine.run(f"select * from {view.name}")  # noqa: S608 - a name of ours
    assert list(columns) == [name for name, _ in view.columns], "what the reference page says"
    return [dict(zip(columns, row, strict=True)) for row in rows]


def served(state: State) -> dict[tuple[str, str], str | None]:
    """The node that serves each slot and bundle; a slot that never had a replica is left out."""
    slots = {("slot", str(slot_id)): slot.leader for slot_id, slot in state.slots.rows.items() if slot.leader_epoch}
    return slots | {("bundle", name): bundle.serving_node for name, bundle in state.bundles.by_id.items()}


def test_ownership_is_that_of_the_states(engine: LocalEngine) -> None:
    """After each decision exactly those intervals are open that the state has, each with its node."""
    intervals = asked(engine, OWNERSHIP_VIEW)
    state = State()
    for number, decision in enumerate(EVENTFUL):
        state = apply_decision(state, decision)
        open_now = [
            each
            for each in intervals
            if each["from_seq"] <= decision.seq and (each["until_seq"] is None or each["until_seq"] > decision.seq)
        ]
        found = {(each["kind"], each["name"]): each["node_id"] for each in open_now}
        assert len(found) == len(open_now)
        assert found == served(state)
        begun = [each for each in intervals if each["from_seq"] == decision.seq]
        assert {each["from_ms"] for each in begun} <= {APPENDED_EVERY_MS * number}
        assert {each["epoch"] for each in begun} <= {decision.epoch}


def test_unavailability_is_silence_and_time_without_a_node(engine: LocalEngine) -> None:
    """What a dead node served was silent until it was fenced; what a row gives to no node waits for the next row."""
    by_reason: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in asked(engine, UNAVAILABILITY_VIEW):
        by_reason[row["reason"]].append(row)
    assert by_reason.keys() == {"silence", "no node"}
    without = [
        (each["kind"], each["name"], each["from_ms"], each["until_ms"])
        for each in asked(engine, OWNERSHIP_VIEW)
        if each["node_id"] is None
    ]
    found = [(each["kind"], each["name"], each["from_ms"], each["until_ms"]) for each in by_reason["no node"]]
    assert sorted(found, key=str) == sorted(without, key=str)
    state, silent = State(), set()
    for number, decision in enumerate(EVENTFUL):
        for event in decision.events:
            if isinstance(event, NodeFenced):
                ended_ms = APPENDED_EVERY_MS * number
                silent |= {
                    (*what, event.node_id, ended_ms - event.silence_ms, ended_ms)
                    for what, node_id in served(state).items()
                    if node_id == event.node_id
                }
        state = apply_decision(state, decision)
    columns = ("kind", "name", "node_id", "from_ms", "until_ms")
    assert {tuple(each[name] for name in columns) for each in by_reason["silence"]} == silent
    assert {what for what, *_ in silent} == {"slot", "bundle"}
