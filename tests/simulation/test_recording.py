"""Recordings of runs: two of the same seed are equal, and their decisions can be taken again under other names."""

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from tests.simulation.recording import Names, read_recording, record_run, retake, write_recording

SEED = 4
NO_NAMES = Names({}, {})


@pytest.fixture(scope="module", name="recording")
def _recording() -> dict[str, Any]:
    recorded: dict[str, Any] = json.loads(json.dumps(record_run(SEED)))
    return recorded


def test_equal_runs_have_equal_recordings(recording: dict[str, Any], tmp_path: Path) -> None:
    """The id of the log comes from the seed, as everything else does."""
    write_recording(tmp_path, SEED, record_run(SEED))
    assert read_recording(tmp_path, SEED) == recording


def test_recorded_decisions_are_taken_again(recording: dict[str, Any]) -> None:
    """All of them, and alike."""
    result = retake(recording, NO_NAMES)
    assert result.decisions == result.retaken == len(recording["decisions"]) > 5
    assert result.differences == ()


def test_another_decision_is_told(recording: dict[str, Any]) -> None:
    """A leader that decides otherwise is found, independently of digests."""
    altered = deepcopy(recording)
    slots = [event for each in altered["decisions"] for event in each["events"] if event["type"] == "SlotsAssigned"]
    row = next(row for event in slots for row in event["slots"] if row["leader"])
    row["leader_epoch"] += 1
    assert any("leader_epoch" in sentence for sentence in retake(altered, NO_NAMES).differences)


def test_names_translate_what_is_called_otherwise_now(recording: dict[str, Any]) -> None:
    """Fields by name, and whole texts by pattern: types, words of enumerations, sentences."""
    text = json.dumps(recording)
    older = json.loads(
        text.replace('"causes":', '"grounds":')
        .replace('"NodeAdmitted"', '"NodeLetIn"')
        .replace('"term_opened"', '"term_begun"')
        .replace('"evidence": "term ', '"evidence": "leadership number ')
    )
    names = Names(
        {"grounds": "causes"},
        {"NodeLetIn": "NodeAdmitted", "term_begun": "term_opened", r"leadership number (\d+)": r"term \1"},
    )
    assert older != recording
    assert retake(older, names).differences == ()
