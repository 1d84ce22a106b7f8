"""Bugs in the rules that are put in on purpose are found by recorded answers or by tests."""

import re
from collections import Counter

import pytest

from tests.conformance.mutants import __main__ as command
from tests.conformance.mutants.hunt import hunt_all
from tests.conformance.mutants.mutant import ROOT, Mutant
from tests.conformance.mutants.table import MUTANTS


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.bug)
def test_a_mutant_can_be_put_in(mutant: Mutant) -> None:
    """Its place in the code still exists. A change of that line has to change the mutant, too."""
    assert mutant.source() != mutant.path.read_text(encoding="utf-8")
    compile(mutant.source(), mutant.file, "exec")
    assert mutant.operations or mutant.tests
    assert [each for each in mutant.tests if not (ROOT / "tests" / each).is_file()] == []


def test_a_mutant_is_told_by_its_words() -> None:
    """Two of the same name would be one line of the table."""
    assert [bug for bug, count in Counter(mutant.bug for mutant in MUTANTS).items() if count > 1] == []


@pytest.mark.slow
def test_a_sample_is_found_and_what_is_no_bug_is_not() -> None:
    """One by the answers of Pulsar, one by those of the ring, one by a scenario; unchanged code survives."""
    sample = [
        next(mutant for mutant in MUTANTS if mutant.bug == bug)
        for bug in (
            "percentages are doubles instead of 32-bit floats",
            "hashes are unsigned",
            "a forced report is written without a session",
        )
    ]
    changed = sample[0]
    unchanged = Mutant("none", changed.file, changed.right, changed.right, ("usage",), sample[2].tests)
    found = {catch.bug: catch.found_by for catch in hunt_all([*sample, unchanged], jobs=2)}
    assert found.pop("none") == ""
    expected = (r"usage usage-\S+", r"hash \S+", r"unit/core/bundles/load/test_report_rule\.py::test_forced\w+")
    for mutant, pattern in zip(sample, expected, strict=True):
        assert re.fullmatch(pattern, found[mutant.bug]), found


@pytest.mark.slow
def test_the_command_prints_what_survives(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Its status is 1 then, so that a change that opens a hole is noticed by whoever runs it."""
    right = "return ctypes.c_float(value).value"
    survivor = Mutant("nothing is wrong", "bundles/load/resource_usage.py", right, right, ("usage",))
    monkeypatch.setattr(command, "MUTANTS", (survivor,))
    monkeypatch.setattr("sys.argv", ["mutants", "--jobs", "1"])
    assert command.main() == 1
    assert re.search(
        r"\nnothing is wrong +bundles/load/resource_usage\.py +SURVIVED\n0 of 1 found", capsys.readouterr().out
    )
