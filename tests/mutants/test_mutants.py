"""Bugs that are put into modules on purpose are found by recorded answers or by tests."""

import ast
import re
from collections import Counter

import pytest

from tests.mutants import __main__ as command
from tests.mutants.hunt import hunt_all
from tests.mutants.mutant import ROOT, Bug, Mutant
from tests.mutants.table import MUTANTS

ROOMS_OF_RULES = (
    "bundles/leading",
    "bundles/load",
    "bundles/ownership_channel",
    "bundles/placement",
    "bundles/shedding",
    "bundles/splitting",
    "slots/ring",
)
WITHOUT_MUTANTS = {
    "bundles/ownership_channel/settings.py": "it refuses values of knobs, and decides nothing",
}


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.bug.words)
def test_a_mutant_can_be_put_in(mutant: Mutant) -> None:
    """Its place in the code still exists. A change of that line has to change the mutant, too."""
    assert mutant.source() != mutant.path.read_text(encoding="utf-8")
    compile(mutant.source(), mutant.file, "exec")
    assert mutant.bug.operations or mutant.bug.tests
    assert [each for each in mutant.bug.tests if not (ROOT / "tests" / each.partition("::")[0]).is_file()] == []


def test_every_rule_has_mutants() -> None:
    """A module of a room of rules that compares or branches has its table; others say here why they have none."""
    rules = {
        path.relative_to(ROOT / "controlplane/core").as_posix()
        for room in ROOMS_OF_RULES
        for path in (ROOT / "controlplane/core" / room).rglob("*.py")
        if any(isinstance(node, ast.If | ast.IfExp | ast.Compare) for node in ast.walk(ast.parse(path.read_text())))
    }
    with_mutants = {mutant.file.removeprefix("controlplane/core/") for mutant in MUTANTS}
    assert rules - with_mutants == WITHOUT_MUTANTS.keys()


def test_a_mutant_is_told_by_its_words() -> None:
    """Two of the same name would be one line of the table."""
    assert [bug for bug, count in Counter(mutant.bug.words for mutant in MUTANTS).items() if count > 1] == []


@pytest.mark.slow
def test_a_sample_is_found_and_what_is_no_bug_is_not() -> None:
    """One by the answers of Pulsar, one by those of the ring, one by a scenario; unchanged code survives."""
    sample = [
        next(mutant for mutant in MUTANTS if mutant.bug.words == bug)
        for bug in (
            "percentages are doubles instead of 32-bit floats",
            "hashes are unsigned",
            "a forced report is written without a session",
        )
    ]
    right = sample[0].bug.right
    unchanged = Mutant(sample[0].file, Bug("none", right, right, ("usage",), sample[2].bug.tests))
    found = {catch.mutant: catch.found_by for catch in hunt_all([*sample, unchanged], jobs=2)}
    assert found.pop(unchanged) == ""
    expected = (r"usage usage-\S+", r"hash \S+", r"unit/core/bundles/load/test_report_rule\.py::test_forced\w+")
    for mutant, pattern in zip(sample, expected, strict=True):
        assert re.fullmatch(pattern, found[mutant]), found


@pytest.mark.slow
def test_the_command_prints_what_survives(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Its status is 1 then, so that a run after a change that opens a hole fails."""
    right = "return ctypes.c_float(value).value"
    survivor = Mutant(
        "controlplane/core/bundles/load/resource_usage.py", Bug("nothing is wrong", right, right, ("usage",))
    )
    monkeypatch.setattr(command, "MUTANTS", (survivor,))
    monkeypatch.setattr("sys.argv", ["mutants", "--jobs", "1"])
    assert command.main() == 1
    assert re.search(
        r"\nnothing is wrong +controlplane/core/bundles/load/resource_usage\.py +SURVIVED\n0 of 1 found",
        capsys.readouterr().out,
    )


@pytest.mark.parametrize(
    ("file", "right", "found"),
    [
        ("controlplane/core/bundles/load/ieee.py", "no such line", "found 0 times"),
        ("controlplane/core/bundles/load/ieee.py", "return", r"found \d+ times"),
        ("controlplane/core/bundles/load/gone.py", "return", "there is no such file"),
    ],
)
def test_the_command_names_outdated_mutants(
    file: str, right: str, found: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before it looks for any: a mutant that cannot be put in would be found by every test."""
    monkeypatch.setattr(command, "MUTANTS", (Mutant(file, Bug("of old", right, "pass", ("usage",))),))
    monkeypatch.setattr("sys.argv", ["mutants", "--jobs", "1"])
    assert command.main() == 1
    line, total = capsys.readouterr().out.splitlines()
    assert re.fullmatch(rf"{file}: {found}: '{right}' of the mutant 'of old'", line)
    assert total.startswith("1 of 1 are outdated")
