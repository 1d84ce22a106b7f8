"""The life of the demo's processes. Each has a keeper that ends it when the demo has ended, also after a crash."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil

from controlplane.cli.demo import holder
from controlplane.embedded import keeper
from controlplane.errors import PrerequisiteError

GRACE_S = 25.0
"""How long a process may take to end after SIGTERM; the embedded services take the longest."""
STOP_DEADLINE_S = 120.0
_TAIL_LINES = 15
_HELD_FILE = "held.json"


class DemoProcess:
    """One process of the demo, in a session of its own, its output appended to a log file.

    Args:
        name: for messages and for the log's name.
        command: program and arguments.
        log_dir: where ``<name>.log`` goes.
        environment: the whole environment.
        folder: its working directory.
    """

    def __init__(
        self, name: str, command: Sequence[str], log_dir: Path, environment: Mapping[str, str], folder: Path
    ) -> None:
        self.name = name
        self.log_path = (log_dir / f"{name}.log").absolute()
        self.log_path.parent.mkdir(parents=True, exist_ok=True)
        self._ending = False
        with self.log_path.open("ab") as log:
            # Not the demo's stderr: a reader of the demo's output would wait for its end while the process is kept.
            self._keeper = subprocess.Popen(
                [sys.executable, "-I", "-S", keeper.__file__, str(self.log_path), str(GRACE_S), *command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env=dict(environment),
                cwd=folder,
                start_new_session=True,
            )
        assert self._keeper.stdout is not None  # noqa: S101 - stdout=PIPE above; for the type checker
        try:
            first_line = self._keeper.stdout.readline()
        except BaseException:
            # Also on Ctrl-C, because an unknown process could not be stopped.
            self.stop()
            raise
        if not first_line:
            self.stop()
            raise PrerequisiteError(f"{name} could not be started: {' '.join(command)}")
        self.process_id = int(first_line)

    @property
    def running(self) -> bool:
        """Whether it lives."""
        return self._keeper.poll() is None

    @property
    def ended_unasked(self) -> bool:
        """Whether it ended without having been killed or stopped."""
        return not self.running and not self._ending

    @property
    def hold_pair(self) -> tuple[int, int]:
        """For the holder: the pipe that ends the process when it is closed, and the keeper's process id."""
        assert self._keeper.stdin is not None  # noqa: S101 - stdin=PIPE above; for the type checker
        return self._keeper.stdin.fileno(), self._keeper.pid

    def kill(self) -> None:
        """End it as a crash would (SIGKILL)."""
        self._ending = True
        # The process id stays valid while its keeper, which waits for it, lives.
        if self.running:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.process_id, signal.SIGKILL)
        self.wait()

    def ask_to_stop(self) -> None:
        """Ask it to end (SIGTERM), and kill it after :data:`GRACE_S`. Does not wait. Idempotent."""
        self._ending = True
        if self._keeper.stdin is not None:
            self._keeper.stdin.close()

    def stop(self) -> None:
        """Ask it to end and wait. Idempotent."""
        self.ask_to_stop()
        self.wait()

    def wait(self) -> None:
        """Wait until it has ended."""
        self._keeper.wait()
        if self._keeper.stdout is not None:
            self._keeper.stdout.close()

    def log_tail(self) -> str:
        """The last lines of its log."""
        lines = self.log_path.read_text(encoding="utf-8", errors="replace").splitlines()
        return "\n".join(lines[-_TAIL_LINES:])


def hand_over(groups: Sequence[Sequence[DemoProcess]], folder: Path) -> int:
    """Leave the processes running after this one ends. On :func:`stop_held` the groups end in the given order.

    Returns:
        The process id of their holder.
    """
    living = [[process for process in group if process.running] for group in groups]
    pairs = [[process.hold_pair for process in group] for group in living if group]
    words = [",".join(f"{descriptor}:{process_id}" for descriptor, process_id in group) for group in pairs]
    started = subprocess.Popen(
        [sys.executable, "-I", "-S", holder.__file__, *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=[descriptor for group in pairs for descriptor, _ in group],
        start_new_session=True,
    )
    held = {
        "holder": started.pid,
        "created_s": psutil.Process(started.pid).create_time(),
        "processes": {process.name: process.process_id for group in living for process in group},
    }
    (folder / _HELD_FILE).write_text(json.dumps(held, indent=2) + "\n", encoding="utf-8")
    return started.pid


def find_holder(folder: Path) -> psutil.Process | None:
    """The process that holds what an earlier demo left running in this folder; None if there is none."""
    path = folder / _HELD_FILE
    if not path.exists():
        return None
    held = json.loads(path.read_text(encoding="utf-8"))
    try:
        process = psutil.Process(int(held["holder"]))
        # The id may belong to another process by now, which its time of creation shows.
        return process if abs(process.create_time() - float(held["created_s"])) < 1.0 else None
    except psutil.NoSuchProcess:
        return None


def stop_held(folder: Path) -> bool:
    """End what an earlier demo left running; False if nothing runs.

    Raises:
        PrerequisiteError: it did not end in time.
    """
    process = find_holder(folder)
    if process is None:
        return False
    process.terminate()
    deadline = time.monotonic() + STOP_DEADLINE_S
    while process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
        if time.monotonic() > deadline:
            raise PrerequisiteError(
                f"the demo's processes did not end within {STOP_DEADLINE_S:.0f} s; process {process.pid} holds them"
            )
        time.sleep(0.1)
    (folder / _HELD_FILE).unlink(missing_ok=True)
    return True
