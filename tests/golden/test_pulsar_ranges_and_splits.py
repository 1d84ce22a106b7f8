"""``controlplane.core.bundles.ranges`` and ``splitting`` against recorded answers of Pulsar's own classes.

They are those of pulsar-broker 4.2.4 as published on Maven Central (Apache-2.0).
"""

from pathlib import Path

import pytest

from tests.conformance.__main__ import cases
from tests.conformance.pulsar import mismatch, ranges, splits

VECTORS = Path(__file__).parent / "pulsar" / "vectors.jsonl.gz"


@pytest.mark.parametrize("operation", [*ranges.OPERATIONS, *splits.OPERATIONS])
def test_every_recorded_answer_is_ours(operation: str) -> None:
    """A bundle with another bound, or a topic in another bundle, would be another system's."""
    chosen = [case for case in cases(VECTORS) if case["op"] == operation]
    assert chosen, f"{VECTORS.name} holds no case of {operation}"
    differences = {case["id"]: difference for case in chosen if (difference := mismatch(case))}
    assert not differences, dict(list(differences.items())[:3])
