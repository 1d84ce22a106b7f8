"""The common part of the embedded broker and the embedded lease store: the life of one server process."""

import contextlib
import itertools
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path

from controlplane.embedded import keeper
from controlplane.embedded.running import Running
from controlplane.errors import PrerequisiteError

HOST = "127.0.0.1"
"""Embedded servers have no passwords, so they listen on the local machine only."""

_PORTS = range(20_000, 32_000)
_ports = itertools.cycle(secrets.SystemRandom().sample(_PORTS, len(_PORTS)))
"""In an order of this process's own, so that of many ports that are chosen before a server starts none comes twice."""

_SIGNALLED = 128
"""The exit code of a keeper, and of a JVM that ends in order, is that many and the signal's number."""

_POLL_INTERVAL_S = 0.02
_TAIL_LINES = 25


def free_port() -> int:
    """A TCP port on which no program listens at the moment, and which this process was not given before.

    It is below the ports that systems use for outgoing connections. Between the choice and the server's start, or while
    the server is down, a client's own end could use such a port, and even be connected to itself.
    """
    return next(port for port in _ports if port_is_free(port))


def port_is_free(port: int) -> bool:
    """Whether a server could listen on this port of 127.0.0.1 now."""
    with socket.socket() as probe:
        # Like servers, ignore connections of a former server that are still closing.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
        return True


class PortTakenError(PrerequisiteError):
    """A server cannot start, because another program listens on its port: it needs another one.

    Args:
        server: its name, as in its log file's.
        port: the port.
    """

    def __init__(self, server: str, port: int) -> None:
        """Name both."""
        super().__init__(f"{server} cannot start: port {port} of {HOST} is taken by another program")
        self.server = server


class EmbeddedServer(Running):
    """One server process on 127.0.0.1 with a data folder that outlives it.

    It can be started again on the same data and the same port, killed and paused. It ends with this process, also if
    this process is killed. Not thread-safe.

    Args:
        name: the name of its log, and of the server in messages.
        data_dir: its data, settings and logs; created if missing.
        port: the port on which it listens; None uses the former one of this folder, or a free one. A start keeps it in
            the folder.
        start_deadline_s: how long it may take until it answers.
        stop_grace_s: how long it may take to stop cleanly before it is killed.

    Attributes:
        answered: whether it was seen to answer since its last start.
    """

    def __init__(
        self, name: str, data_dir: Path, port: int | None, *, start_deadline_s: float, stop_grace_s: float
    ) -> None:
        self.data_dir = data_dir.absolute()
        self.log_path = self.data_dir / "logs" / f"{name}.log"
        self._name = name
        self._start_deadline_s = start_deadline_s
        self._stop_grace_s = stop_grace_s
        self._keeper: subprocess.Popen[str] | None = None
        self._server_pid = 0
        self.answered = False
        self._log_start_bytes = 0
        self.log_path.parent.mkdir(parents=True, exist_ok=True)
        self._port_file = self.data_dir / "port"
        former_port = int(self._port_file.read_text(encoding="utf-8")) if self._port_file.exists() else None
        self.port = port or former_port or free_port()

    @abstractmethod
    def _prepare(self) -> Sequence[str]:
        """Write the files that the server needs before a start, and return its command line."""

    @abstractmethod
    def _answers(self) -> bool:
        """Whether the server answers a request of its own protocol now; OSError counts as no."""

    @property
    def running(self) -> bool:
        """Whether the process runs; also True while it is paused."""
        return self._keeper is not None and self._keeper.poll() is None

    @property
    def pid(self) -> int | None:
        """The server's process id; None while it does not run."""
        return self._server_pid if self.running and self._server_pid else None

    @property
    def end(self) -> str:
        """How the process ended, to be put behind "ended": the signal or the exit code; empty while it runs."""
        code = self._keeper.poll() if self._keeper is not None else None
        if code is None:
            return ""
        number = -code if code < 0 else code - _SIGNALLED
        return f"by {signal.Signals(number).name}" if number in set(signal.Signals) else f"with exit code {code}"

    def start(self) -> None:
        """Start the server and wait until it answers; does nothing if it is running.

        Raises:
            PrerequisiteError: its port is taken, or it ended or did not answer in time; the message contains the end of
                its log.
        """
        if self.running:
            return
        self.launch()
        self.wait_until_it_answers()

    def launch(self) -> None:
        """Start the server without waiting for its answers; does nothing if it is running.

        Raises:
            PortTakenError: another program listens on its port.
            PrerequisiteError: its files could not be prepared.
        """
        if self.running:
            return
        self._forget_keeper()
        self.answered = False
        self.check_port()
        self._port_file.write_text(f"{self.port}\n", encoding="utf-8")
        command = self._prepare()
        self._log_start_bytes = self.log_path.stat().st_size if self.log_path.exists() else 0
        self._keeper = subprocess.Popen(
            # -I and -S: the keeper needs nothing but the standard library, and starts faster without the rest.
            [sys.executable, "-I", "-S", keeper.__file__, str(self.log_path), str(self._stop_grace_s), *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            assert self._keeper.stdout is not None  # noqa: S101 - stdout=PIPE above; for the type checker
            first_line = self._keeper.stdout.readline()
            self._server_pid = int(first_line) if first_line else 0
        except BaseException:
            # Also after Ctrl-C: the caller cannot stop a server that it did not get.
            self.stop()
            raise

    def check_port(self) -> None:
        """Check, while the server does not run, that it could listen on its port.

        Raises:
            PortTakenError: another program listens there, which might answer as the server would.
        """
        if not port_is_free(self.port):
            raise PortTakenError(self._name, self.port)

    def wait_until_it_answers(self) -> None:
        """Wait until a launched server answers; one that does not is ended.

        Raises:
            PrerequisiteError: it ended or did not answer in time; the message contains the end of its log.
        """
        try:
            self._await_answer()
        except BaseException:
            self.stop()  # also after Ctrl-C, as above
            raise
        self.answered = True

    def _await_answer(self) -> None:
        deadline = time.monotonic() + self._start_deadline_s
        while not self._answers_now():
            if not self.running:
                reason = f"ended {self.end} while starting"
            elif time.monotonic() > deadline:
                reason = f"did not answer within {self._start_deadline_s:.0f} s"
            else:
                time.sleep(_POLL_INTERVAL_S)
                continue
            self.kill()
            message = f"{self._name} {reason}. The end of {self.log_path}:\n{self._log_tail()}"
            raise PrerequisiteError(message)

    def stop(self) -> None:
        """Stop cleanly (SIGTERM), by force (SIGKILL) if that takes too long; the data stays. Idempotent."""
        self._forget_keeper()

    def ask_to_stop(self) -> None:
        """Begin to stop as :meth:`stop` does, without waiting for the end; several servers stop at once this way."""
        self._close_pipes()

    def kill(self) -> None:
        """End the process as a crash would (SIGKILL); the data stays as it is. Idempotent."""
        if self._keeper is not None:
            self._signal(signal.SIGKILL)
            self.stop()

    def pause(self) -> None:
        """Freeze the process (SIGSTOP): it keeps its connections and answers nothing until :meth:`resume`."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Resume a paused process (SIGCONT)."""
        self._signal(signal.SIGCONT)

    def _answers_now(self) -> bool:
        try:
            return self._answers()
        except OSError:
            return False

    def _signal(self, number: signal.Signals) -> None:
        # The process id stays the server's as long as the keeper, which waits for it, is alive.
        if self.running and self._server_pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._server_pid, number)

    def _close_pipes(self) -> None:
        if self._keeper is not None:
            for pipe in (self._keeper.stdin, self._keeper.stdout):
                if pipe is not None:
                    pipe.close()

    def _forget_keeper(self) -> None:
        if self._keeper is not None:
            self._close_pipes()
            self._keeper.wait()
            self._keeper = None
            self._server_pid = 0

    def _log_tail(self) -> str:
        with self.log_path.open("rb") as log:
            log.seek(self._log_start_bytes)
            return "\n".join(log.read().decode("utf-8", errors="replace").splitlines()[-_TAIL_LINES:])
