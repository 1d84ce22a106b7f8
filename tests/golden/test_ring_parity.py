"""``controlplane.core.slots.ring`` against recorded answers.

The hashes are those of zero-allocation hashing 0.16 as published on Maven Central, and of 0.6, the version that HiveMQ
3 used; the ring around them follows HiveMQ's rules.
"""

import gzip
import json
from collections import Counter
from pathlib import Path

import pytest

from tests.conformance.__main__ import main
from tests.conformance.recorded import recorded
from tests.conformance.ring import OPERATIONS, mismatch


@pytest.mark.parametrize("operation", list(OPERATIONS))
def test_every_recorded_answer_is_ours(operation: str) -> None:
    """Hashes, places, owners and replicas, after joins and leaves of nodes that share places."""
    chosen = recorded("ring")[operation]
    differences = {case["id"]: difference for case in chosen if (difference := mismatch(case))}
    assert not differences, dict(list(differences.items())[:3])


def test_runner_counts_and_names_what_differs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A runner that let a wrong owner, a missing replica or an unknown operation pass would prove nothing."""
    right = next(
        case
        for case in recorded("ring")["lookup"]
        if any(answer.get("replicas") for answer in case["output"]["answers"])
    )
    answer = next(answer for answer in right["output"]["answers"] if answer.get("replicas"))
    at = right["output"]["answers"].index(answer)

    def changed(name: str, **fields: object) -> dict[str, object]:
        case = json.loads(json.dumps(right))
        case["output"]["answers"][at].update(fields)
        return {**case, "id": name}

    written = [
        right,
        changed("turned", replicas=answer["replicas"][::-1]),
        changed("wrong-owner", owner="somebody"),
        changed("missing-replica", replicas=answer["replicas"][1:]),
        changed("lost-error", error="empty"),
        {**right, "id": "places", "output": {**right["output"], "buckets": 1}},
        {**right, "id": "unknown", "op": "guess"},
    ]
    path = tmp_path / "answers.jsonl.gz"
    with gzip.open(path, "wt", encoding="utf-8") as lines:
        lines.writelines(json.dumps(case) + "\n" for case in written)
    assert main(["ring", str(path)]) == 1
    said = capsys.readouterr().out.splitlines()
    assert said[-1] == "2 passed, 5 failed"
    named = ["wrong-owner", "missing-replica", "lost-error", "places", "unknown"]
    assert Counter(line.split()[1] for line in said[:-1]) == Counter(named)
