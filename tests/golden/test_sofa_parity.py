"""``controlplane.core.slots.sofa`` against recorded answers of SOFARegistry's own classes.

They are those of 6.3.0 as published on Maven Central (Apache-2.0), asked on Java 17; 6.6.3 decides alike.
"""

import gzip
import json
from collections import Counter
from pathlib import Path

import pytest

from tests.conformance.__main__ import main
from tests.conformance.recorded import recorded
from tests.conformance.sofa import OPERATIONS, mismatch


@pytest.mark.parametrize(
    "operation",
    [
        pytest.param(name, marks=[pytest.mark.slow] if name == "arrange_until_stable" else [], id=name)
        for name in OPERATIONS
    ],
)
def test_every_recorded_answer_is_ours(operation: str) -> None:
    """Leaders, followers, epochs' ranks, actions and errors: a policy by this name that decides otherwise is a lie."""
    chosen = recorded("sofa")[operation]
    differences = {case["id"]: difference for case in chosen if (difference := mismatch(case))}
    assert not differences, dict(list(differences.items())[:3])


def test_runner_counts_and_names_what_differs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A runner that let a wrong leader, an unknown operation or a lost error pass would prove nothing."""
    right = next(case for case in recorded("sofa")["assign"] if "table" in case["output"])
    wrong = json.loads(json.dumps(right))
    wrong["id"] = "wrong-leader"
    wrong["output"]["table"]["slots"][0]["leader"] = "somebody"
    late = json.loads(json.dumps(right))
    late["id"] = "wrong-rank"
    late["output"]["table"]["slots"][0]["leaderEpoch"] += 1_000
    written = [
        right,
        wrong,
        late,
        {**right, "id": "unknown", "op": "guess"},
        {**right, "id": "lost", "output": {"error": {"type": "X"}}},
    ]
    path = tmp_path / "answers.jsonl.gz"
    with gzip.open(path, "wt", encoding="utf-8") as lines:
        lines.writelines(json.dumps(case) + "\n" for case in written)
    assert main(["sofa", str(path)]) == 1
    said = capsys.readouterr().out.splitlines()
    assert said[-1] == "1 passed, 4 failed"
    assert Counter(line.split()[1] for line in said[:-1]) == Counter(["wrong-leader", "wrong-rank", "unknown", "lost"])
