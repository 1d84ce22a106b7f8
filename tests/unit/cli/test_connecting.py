"""Waiting for Kafka and Redis at the start of a command."""

import fcntl
import queue
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import click
import pytest

from controlplane.cli.common import connecting
from controlplane.cli.common.connecting import UnreachableError, reach
from controlplane.cli.common.failures import ExitStatus, exit_status_of
from controlplane.cli.common.invocation import Invocation
from controlplane.config import ClusterConfig
from controlplane.embedded.services import LOCK_FILE, addresses_path
from controlplane.errors import ConfigurationError, LogUnavailableError


def test_answer_after_some_attempts_is_taken() -> None:
    """A broker that is starting is waited for."""
    answers: Iterator[int | Exception] = iter([LogUnavailableError("starting"), LogUnavailableError("starting"), 7])

    def attempt() -> int:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    assert reach("Kafka at k:1", 10, attempt) == 7


def test_no_answer_in_time_is_one_sentence_and_status_three() -> None:
    """The sentence names who was asked, for how long, and what the last trouble was."""

    def attempt() -> None:
        raise LogUnavailableError("connection refused")

    with pytest.raises(
        UnreachableError, match=r"did not answer for \d s \(--connect-timeout 1\): .*connection refused"
    ) as error:
        reach("Kafka at k:1", 1, attempt)
    assert exit_status_of(error.value) == ExitStatus.UNREACHABLE


def test_the_last_attempt_begins_when_the_time_is_over() -> None:
    """A pause that goes beyond the time would only be waited for in vain."""
    began_s, at_s = time.monotonic(), list[float]()

    def attempt() -> None:
        at_s.append(time.monotonic() - began_s)
        raise LogUnavailableError("connection refused")

    with pytest.raises(UnreachableError):
        reach("Kafka at k:1", 0.9, attempt)
    assert 0.9 <= at_s[-1] < 1.7, "the usual pauses would end after 1.75 s"


def test_wrong_settings_are_not_tried_again() -> None:
    """Waiting does not mend a wrong password."""
    attempts = []

    def attempt() -> None:
        attempts.append(1)
        raise ConfigurationError("wrong password")

    with pytest.raises(ConfigurationError):
        reach("Redis at r:1", 30, attempt)
    assert attempts == [1]


@pytest.mark.parametrize(("timeout_s", "told"), [(30, "trying again"), (0, "the last attempt still runs")])
def test_long_attempt_is_seen_to_wait(monkeypatch: pytest.MonkeyPatch, timeout_s: float, told: str) -> None:
    """A long attempt must not look like a hanging program, and one that outlasts the time is not another try."""
    printed: queue.Queue[str] = queue.Queue()

    def echo(message: str, *, err: bool) -> None:
        assert err
        printed.put(message)

    monkeypatch.setattr(connecting, "LONGEST_WAIT_S", 0.01)
    monkeypatch.setattr(click, "echo", echo)
    first = reach("Kafka at k:1", timeout_s, lambda: printed.get(timeout=30))
    assert first == f"Kafka at k:1 does not answer yet; {told} (0 of {timeout_s} s)"


def test_the_wait_is_never_longer_than_it_may_be(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Counting 36 of 30 s makes people doubt the program; the end says how long it really took."""
    monkeypatch.setattr(connecting, "LONGEST_WAIT_S", 0.3)

    def attempt() -> None:
        time.sleep(2)
        raise LogUnavailableError("gone")

    with pytest.raises(UnreachableError, match=r"did not answer for 2 s \(--connect-timeout 1\)"):
        reach("Kafka at k:1", 1, attempt)
    assert capsys.readouterr().err.count("the last attempt still runs (1 of 1 s)") == 1


def test_a_cluster_that_is_starting_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its addresses are there only when it is ready; "start one" would be the wrong advice."""
    monkeypatch.setattr(connecting, "LONGEST_WAIT_S", 0.1)
    invocation = Invocation(ClusterConfig("c"), None, None, {}, {}, tmp_path, 30)
    with pytest.raises(ConfigurationError, match="controlplane up"):
        _ = invocation.kafka
    with (tmp_path / LOCK_FILE).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        addresses = '{"bootstrap_servers": "k:1", "redis_url": "redis://r"}'
        timer = threading.Timer(0.5, addresses_path(tmp_path).write_text, [addresses])
        timer.start()
        assert invocation.kafka.bootstrap_servers == "k:1"
        timer.join()
        addresses_path(tmp_path).unlink()
        with pytest.raises(UnreachableError, match="which is starting, did not answer for 0 s"):
            _ = replace(invocation, connect_timeout_s=0.2).kafka
    assert "which is starting, does not answer yet" in capsys.readouterr().err


def test_messages_do_not_hold_the_password() -> None:
    """Terminals are recorded and logs are kept."""
    invocation = Invocation(ClusterConfig("c"), "k:1", "rediss://user:secret@r.example:6380/0", {}, {}, Path(), 1)
    assert invocation.redis_place == "Redis at r.example:6380"
