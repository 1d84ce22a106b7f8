"""Restarts of the processes of a service, one after the other, and what they cost its clients.

Nothing here knows the service: it says how a process is started, and when everything is served again.
"""

import signal
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, Self

_END_TIMEOUT_S: Final = 60.0
_LOOK_AGAIN_S: Final = 0.05


class Processes:
    """Processes by name, each with its output in a file. A context manager: it kills those that still run.

    Args:
        folder: where the outputs go, ``NAME.log`` for each process.
        command: the command line of a process, by its name.
    """

    def __init__(self, folder: Path, command: Callable[[str], Sequence[str]]) -> None:
        self._folder = folder
        self._command = command
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> Self:
        """The processes themselves."""
        return self

    def __exit__(self, *_: object) -> None:
        """Kill those that still run."""
        self.stop(*self._running, kill=True)

    @property
    def names(self) -> list[str]:
        """The names of those that run."""
        return list(self._running)

    def start(self, name: str) -> None:
        """Start a process of that name."""
        with self.log_of(name).open("ab") as output:
            self._running[name] = subprocess.Popen(
                self._command(name), stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL
            )

    def stop(self, *names: str, kill: bool = False) -> None:
        """End processes at the same time by SIGTERM or SIGKILL, and wait for their ends."""
        ending = [self._running.pop(name) for name in names]
        for process in ending:
            process.send_signal(signal.SIGKILL if kill else signal.SIGTERM)
        for process in ending:
            process.wait(_END_TIMEOUT_S)

    def log_of(self, name: str) -> Path:
        """The file with the output of a process."""
        return self._folder / f"{name}.log"

    def check(self) -> None:
        """Raise an error if a process has ended that no call has stopped."""
        for name, process in self._running.items():
            if process.poll() is not None:
                raise RuntimeError(f"{name} has ended with {process.returncode}: see {self.log_of(name)}")


def restart_each(
    processes: Processes, wait_until_served: Callable[[str], object], *, kill: bool, rest_s: float
) -> None:
    """Stop one process after the other, and start each again.

    Args:
        processes: those that run.
        wait_until_served: called with the name of each process that was started again; returns when it is a member, and
            everything is served.
        kill: SIGKILL instead of SIGTERM.
        rest_s: pause before each restart.
    """
    for name in processes.names:
        time.sleep(rest_s)
        processes.check()
        processes.stop(name, kill=kill)
        processes.start(name)
        wait_until_served(name)


def wait_until(condition: Callable[[], bool], what: str, timeout_s: float = 60.0) -> None:
    """Wait until a condition holds.

    Raises:
        TimeoutError: it did not in this time; the message says ``what`` was waited for.
    """
    until_s = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > until_s:
            raise TimeoutError(f"not within {timeout_s:.0f} s: {what}")
        time.sleep(_LOOK_AGAIN_S)


class Latencies:
    """How long requests took, each for one of the parts of a service: a slot, or a topic. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._taken_ms: list[float] = []
        self._longest_ms: dict[str, float] = {}

    def note(self, part: str, taken_ms: float) -> None:
        """Note a request."""
        with self._lock:
            self._taken_ms.append(taken_ms)
            self._longest_ms[part] = max(taken_ms, self._longest_ms.get(part, 0.0))

    def lines(self, parts: str) -> list[str]:
        """What there is to print. The longest request of a part is how long the part was not served, or a bit more."""
        with self._lock:
            all_ms, longest_ms = list(self._taken_ms), list(self._longest_ms.values())
        shares = (50, 99, 100)
        each = ", ".join(f"{_percentile(longest_ms, share):.0f}" for share in shares)
        return [
            f"time to answer, 99.9 percent: {_percentile(all_ms, 99.9):.0f} ms",
            f"time to answer, longest: {_percentile(all_ms, 100):.0f} ms",
            f"longest time to answer of each of {len(longest_ms)} {parts}, 50, 99 and 100 percent: {each} ms",
        ]


def _percentile(values: Sequence[float], percent: float) -> float:
    ascending = sorted(values)
    return ascending[min(len(ascending) - 1, int(len(ascending) * percent / 100))] if ascending else 0.0
