"""``controlplane.core.bundles.load`` against recorded answers of Pulsar's own classes (pulsar-broker 4.2.4)."""

from pathlib import Path

import pytest

from tests.conformance.__main__ import cases
from tests.conformance.pulsar import mismatch
from tests.conformance.pulsar.loads import OPERATIONS

VECTORS = Path(__file__).parent / "pulsar" / "vectors.jsonl.gz"


@pytest.mark.parametrize("operation", OPERATIONS)
def test_every_recorded_answer_is_ours(operation: str) -> None:
    """One rounding or one tie that differs leads to other bundles being moved, sooner or later."""
    chosen = [case for case in cases(VECTORS) if case["op"] == operation]
    assert chosen, f"{VECTORS.name} holds no case of {operation}"
    differences = {case["id"]: difference for case in chosen if (difference := mismatch(case))}
    assert not differences, dict(list(differences.items())[:3])
