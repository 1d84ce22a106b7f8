"""``controlplane.core.bundles.ownership_channel`` against recorded answers of Pulsar's own classes, 4.2.4."""

from pathlib import Path

import pytest

from tests.conformance.__main__ import cases
from tests.conformance.pulsar import mismatch
from tests.conformance.pulsar.ownership import OPERATIONS

VECTORS = Path(__file__).parent / "pulsar" / "vectors.jsonl.gz"


@pytest.mark.parametrize("operation", OPERATIONS)
def test_every_recorded_answer_is_ours(operation: str) -> None:
    """Readers that take other records than Pulsar's would end with other owners."""
    chosen = [case for case in cases(VECTORS) if case["op"] == operation]
    assert chosen, f"{VECTORS.name} holds no case of {operation}"
    differences = {case["id"]: difference for case in chosen if (difference := mismatch(case))}
    assert not differences, dict(list(differences.items())[:3])
