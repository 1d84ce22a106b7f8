"""How the demo waits, judges and shows."""

import sys
import time
from pathlib import Path

import click
import pytest

from controlplane.cli.demo.checks import Check, Checklist, StepFailedError
from controlplane.cli.demo.command import command_here
from controlplane.cli.demo.picture import Picture
from controlplane.cli.demo.screen import PlainScreen
from controlplane.cli.demo.traffic import Counts


def test_condition_that_comes_true_in_time_passes() -> None:
    """The first value that is not None counts, with the time it took."""
    values = iter([None, None, 7])
    noted: list[tuple[str, Check | None]] = []
    checklist = Checklist(lambda sentence, check: noted.append((sentence, check)), lambda: None)
    assert checklist.expect("seven comes", lambda: next(values), 10, lambda value: f"it is {value}") == 7
    (check,) = checklist.checks
    assert (check.sentence, check.passed, check.seen) == ("seven comes", True, "it is 7")
    assert noted == [("seven comes", None), ("seven comes", check)]


def test_condition_that_does_not_come_true_fails_the_step() -> None:
    """A demo that waits for ever shows nothing."""
    checklist = Checklist(lambda *_: None, lambda: None)
    with pytest.raises(StepFailedError, match=r"never comes: not within 0\.1 s"):
        checklist.expect("never comes", lambda: None, 0.1)
    assert [check.passed for check in checklist.checks] == [False]


def test_process_that_falls_over_ends_the_wait() -> None:
    """Nobody wants to wait for a deadline when the reason is known."""

    def watch() -> None:
        raise StepFailedError("node-3 ended")

    checklist = Checklist(lambda *_: None, watch)
    began = time.monotonic()
    with pytest.raises(StepFailedError, match="node-3 ended"):
        checklist.expect("never comes", lambda: None, 60)
    assert time.monotonic() - began < 30


def test_requirement_that_does_not_hold_fails_the_step() -> None:
    """What is measured is judged, not only printed."""
    checklist = Checklist(lambda *_: None, lambda: None)
    checklist.require("moved is least", holds=True, seen="5 of 5")
    with pytest.raises(StepFailedError, match="moved is least: 6 of 5"):
        checklist.require("moved is least", holds=False, seen="6 of 5")
    assert [check.passed for check in checklist.checks] == [True, False]


def test_plain_screen_is_never_silent_for_long_and_repeats_little(monkeypatch: pytest.MonkeyPatch) -> None:
    """A log of continuous integration shows that it goes on, and what it waits for."""
    nodes = [{"status": "active"}, {"status": "fenced"}]
    picture = Picture(12.0, "a step", "a thing", 4, 2, "c1", nodes, Counts(1234, 5, 6))
    lines: list[str] = []
    monkeypatch.setattr(click, "echo", lines.append)
    deadline = time.monotonic() + 20
    with PlainScreen(lambda: picture, every_s=0.05, repeated_every_s=0.2) as screen:
        screen.say("said")
        while len(lines) < 4 and time.monotonic() < deadline:
            time.sleep(0.01)
    assert lines[0] == "said"
    assert lines[1] == (
        "[   12 s] a step | a thing | epoch 4, term 2, leader c1, 1 node | answered 1,234, refused 5, failed 6"
    )
    assert lines[2:4] == ["[   12 s] ... still: a thing (answered 1,234)"] * 2


def test_plain_screen_tells_what_is_new_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only what was told already waits."""
    pictures = [Picture(12.0, "a step", thing, 4, 2, "c1", [], Counts()) for thing in ("first", "first", "second")]
    lines: list[str] = []
    monkeypatch.setattr(click, "echo", lines.append)
    deadline = time.monotonic() + 20
    with PlainScreen(lambda: pictures.pop(0) if len(pictures) > 1 else pictures[0], every_s=0.05, repeated_every_s=60):
        while len(lines) < 2 and time.monotonic() < deadline:
            time.sleep(0.01)
    assert [line.split(" | ")[1] for line in lines] == ["first", "second"]


def test_the_closing_advice_can_be_typed_without_an_activated_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What ``make demo`` finds by its own search path, the reader's shell does not."""
    folder = tmp_path / ".venv" / "bin"
    folder.mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "executable", str(folder / "python"))
    assert command_here() == f"{folder / 'python'} -m controlplane.cli"
    (folder / "controlplane").touch(mode=0o755)
    monkeypatch.setenv("PATH", str(folder))
    assert command_here() == str(Path(".venv/bin/controlplane"))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    assert command_here() == "controlplane"
    monkeypatch.setenv("PATH", str(elsewhere))
    assert command_here() == str(folder / "controlplane")


def test_counts_of_a_window_are_differences() -> None:
    """What happened in a step is what came after its beginning, over all clients."""
    assert (Counts(5, 3, 1) + Counts(1, 1, 1)) - Counts(4, 2, 2) == Counts(2, 2, 0)
