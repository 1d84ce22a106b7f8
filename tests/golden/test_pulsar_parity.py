"""The rules in ``controlplane.core.bundles`` against recorded answers of Pulsar's own classes.

They are those of pulsar-broker 4.2.4 as published on Maven Central (Apache-2.0).
"""

import gzip
import json
from collections import Counter
from pathlib import Path

import pytest

from tests.conformance.__main__ import main
from tests.conformance.pulsar import AREAS, OPERATIONS, mismatch
from tests.conformance.recorded import recorded

RECORDED = recorded("pulsar")
CASES_AT_ONCE = 40


@pytest.mark.parametrize(
    ("operation", "first"),
    [
        pytest.param(operation, first, id=f"{operation}-{first}")
        for operation, cases in RECORDED.items()
        for first in range(0, len(cases), CASES_AT_ONCE)
    ],
)
def test_recorded_answers_are_ours(operation: str, first: int) -> None:
    """A rule of this name that rounds, sums or breaks a tie otherwise would move other bundles, sooner or later."""
    cases = RECORDED[operation][first : first + CASES_AT_ONCE]
    differences = [f"{case['id']}: {difference}" for case in cases if (difference := mismatch(case))]
    assert not differences, f"{len(differences)} of {len(cases)} differ:\n" + "\n".join(differences)


def test_every_operation_is_recorded_and_has_a_runner_in_one_area() -> None:
    """Of two areas with an operation of one name, the runner would take the last; one without a case proves nothing."""
    named = [name for area in AREAS for name in area.OPERATIONS]
    assert sorted(named) == sorted(OPERATIONS)
    assert OPERATIONS.keys() == RECORDED.keys()


def test_the_runner_counts_and_names_what_differs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A runner that let another number, a lost error or an unknown operation pass would prove nothing."""
    right = next(case for case in RECORDED["usage"] if "out" in case)
    refused = next(case for case in RECORDED["create_bundles"] if "error" in case or "error" in case["out"])
    other = json.loads(json.dumps(right))
    other["out"]["weighted"] += 1e-9
    fewer = json.loads(json.dumps(right))
    del fewer["out"]["max"]
    written = [
        right,
        refused,
        {**other, "id": "other-number"},
        {**fewer, "id": "fewer-answers"},
        {**right, "id": "lost-error", "error": "NullPointerException"},
        {**right, "id": "lost-answer", "in": {}},
        {**right, "id": "unknown", "op": "guess"},
    ]
    path = tmp_path / "answers.jsonl.gz"
    with gzip.open(path, "wt", encoding="utf-8") as lines:
        lines.writelines(json.dumps(case) + "\n" for case in written)
    assert main(["pulsar", str(path)]) == 1
    said = capsys.readouterr().out.splitlines()
    assert said[-1] == "2 passed, 5 failed"
    named = ["other-number", "fewer-answers", "lost-error", "lost-answer", "unknown"]
    assert Counter(line.split()[1] for line in said[:-1]) == Counter(named)
    weighted = f"answer['weighted']: expected {other['out']['weighted']}, got {right['out']['weighted']}"
    assert said[0].endswith(weighted)
    assert said[4].endswith("unknown operation 'guess'")
