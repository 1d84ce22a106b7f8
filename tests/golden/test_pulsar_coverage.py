"""No recorded operation is left out in silence: the tests of parity name every one that the vectors hold."""

import importlib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from tests.conformance.__main__ import cases
from tests.conformance.pulsar import AREAS, OPERATIONS

HERE = Path(__file__).parent
RECORDED = frozenset(case["op"] for case in cases(HERE / "pulsar" / "vectors.jsonl.gz"))


def test_every_recorded_operation_has_a_test_of_parity() -> None:
    """A test that is parametrized by ``operation`` compares each case of the operations that it lists."""
    compared = {
        operation
        for path in sorted(HERE.glob("test_pulsar_*.py"))
        for operation in _compared(importlib.import_module(f"tests.golden.{path.stem}"))
    }
    assert compared == RECORDED


def test_every_recorded_operation_has_a_runner_in_one_area() -> None:
    """Of two areas with an operation of one name, the runner would take the last, and nobody would notice."""
    named = [name for area in AREAS for name in area.OPERATIONS]
    assert sorted(named) == sorted(OPERATIONS)
    assert OPERATIONS.keys() == RECORDED


def _compared(module: ModuleType) -> Iterator[str]:
    for name, test in vars(module).items():
        if name.startswith("test_"):
            for mark in getattr(test, "pytestmark", ()):
                if mark.name == "parametrize" and mark.args[0] == "operation":
                    yield from mark.args[1]
