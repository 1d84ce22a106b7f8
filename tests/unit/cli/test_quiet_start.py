"""What a child says while it starts is shown only if it fails, and then all of it."""

import os
import subprocess
import threading

import pytest

from controlplane.cli.pipeline import quiet_start as module
from controlplane.cli.pipeline.quiet_start import quiet_start


def warn(text: str) -> None:
    """A child says something."""
    subprocess.run(["sh", "-c", f"echo {text} >&2"], check=True)


def start_in_vain() -> None:
    """A child that says why, and does not start."""
    with quiet_start():
        warn("loopback")
        raise OSError("it does not start")


def test_a_failure_shows_what_nobody_had_time_to_read(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The command ends right after; on a busy machine the thread that reads has had no turn by then."""
    monkeypatch.setattr(module._Relay, "start", lambda _: None)  # noqa: SLF001 - a thread that has no turn
    with pytest.raises(OSError, match="does not start"):
        start_in_vain()
    assert capfd.readouterr().err == "loopback\n"


def test_a_greeting_that_nobody_had_time_to_read_is_not_shown(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Who read it, or when, makes no difference to what is seen."""
    relays: list[threading.Thread] = []

    def start_later(relay: threading.Thread) -> None:
        relays.append(relay)

    monkeypatch.setattr(module._Relay, "start", start_later)  # noqa: SLF001 - a thread that gets its turn later
    with quiet_start():
        warn("greeting")
    for relay in relays:
        relay.run()
    assert capfd.readouterr().err == ""


def test_what_a_child_says_later_is_passed_on(capfd: pytest.CaptureFixture[str]) -> None:
    """Only the start is quiet, and the thread that passes on ends with the last child."""
    with quiet_start():
        warn("greeting")
        child = subprocess.Popen(["sh", "-c", "read line; echo $line >&2"], stdin=subprocess.PIPE)
    relays = [thread for thread in threading.enumerate() if thread.name == "quiet-start"]
    child.communicate(b"later\n")
    for relay in relays:
        relay.join(10.0)
        assert not relay.is_alive()
    assert capfd.readouterr().err == "later\n"
    assert os.fstat(2)
