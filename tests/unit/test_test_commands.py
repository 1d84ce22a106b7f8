"""Commands of the checkout refuse what they cannot run, in argparse's way."""

import sys
from collections.abc import Callable

import pytest

from benchmarks import recovery
from tests.mutants import __main__ as rule_mutants
from tests.simulation import __main__ as simulation
from tests.simulation.mutants import __main__ as mutants


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--seed 5 --only 99", "--only 99: the plan of seed 5 has no such item"),
        ("--seed 5 --only x", "'x' is no list of item numbers"),
        ("--only 3", "give --seed as well"),
        ("--seeds 5-2", "'5-2' holds no seed"),
        ("--seeds abc", "'abc' is no range of seeds: write A-B"),
        ("--seeds 5-", "'5-' is no range of seeds"),
    ],
)
def test_a_simulation_of_nothing_is_refused(
    words: str, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run that found nothing because it looked at nothing would be taken for a proof."""
    monkeypatch.setattr(sys, "argv", ["simulation", *words.split()])
    _refused(simulation.main, said, capsys)


def test_a_bug_that_nobody_put_in_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """All of none would be found."""
    monkeypatch.setattr(sys, "argv", ["mutants", "--like", "nosuchbug"])
    for command in (mutants, rule_mutants):
        _refused(command.main, "--like 'nosuchbug': no bug has these words", capsys)


@pytest.mark.parametrize("words", ["--decisions 0", "--decisions -3", "--nodes 1", "--slots none"])
def test_a_recovery_of_nothing_is_refused(
    words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before a Kafka is started for it."""
    monkeypatch.setattr(sys, "argv", ["recovery", *words.split()])
    _refused(recovery.main, "is not a whole number of", capsys)


def test_the_options_of_the_recovery_are_told_with_their_defaults(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nobody has to read its source to run it."""
    monkeypatch.setattr(sys, "argv", ["recovery", "--help"])
    with pytest.raises(SystemExit):
        recovery.main()
    said = " ".join(capsys.readouterr().out.split())
    assert "how many the log holds in all (default: 100000)" in said
    assert "only measure with the snapshot" in said


def _refused(main: Callable[[], object], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 2
    assert said in capsys.readouterr().err
