"""``controlplane.core.bundles.load`` against recorded answers of Pulsar's own classes (pulsar-broker 4.2.4)."""

from pathlib import Path

import pytest

from tests.conformance.__main__ import cases
from tests.conformance.pulsar import loads, mismatch

VECTORS = Path(__file__).parent / "pulsar" / "vectors.jsonl.gz"


@pytest.mark.parametrize("operation", [name for name in loads.OPERATIONS if name != "defaults"])
def test_every_recorded_answer_is_ours(operation: str) -> None:
    """One rounding or one tie that differs leads to other bundles being moved, sooner or later."""
    chosen = [case for case in cases(VECTORS) if case["op"] == operation]
    assert chosen, f"{VECTORS.name} holds no case of {operation}"
    differences = {case["id"]: difference for case in chosen if (difference := mismatch(case))}
    assert not differences, dict(list(differences.items())[:3])


def test_every_declared_knob_has_the_recorded_default() -> None:
    """A profile that starts from another number decides otherwise from its first tick."""
    (case,) = (case for case in cases(VECTORS) if case["op"] == "defaults")
    declared = loads.defaults({})
    assert declared == {name: case["out"].get(name) for name in declared}
