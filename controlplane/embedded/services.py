"""The services that a control plane needs, Kafka and a lease store, on one machine and in one folder."""

import fcntl
import json
import os
import time
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from controlplane.embedded.kafka import EmbeddedKafka
from controlplane.embedded.valkey import EmbeddedValkey
from controlplane.errors import PrerequisiteError

ADDRESSES_FILE = "addresses.json"
LOCK_FILE = "lock"
_LOOKS_OUTLASTED: Final = 20
"""Attempts to take the lock, ten milliseconds apart: commands that check it hold it for an instant."""


@dataclass(frozen=True, slots=True)
class Addresses:
    """The addresses of the services, stored in the data folder for other commands.

    Attributes:
        bootstrap_servers: Kafka's ``host:port``.
        redis_url: of the lease store, ``redis://host:port/0``.
    """

    bootstrap_servers: str
    redis_url: str


def addresses_path(data_dir: Path) -> Path:
    """The file that holds the addresses while the services of this folder run."""
    return data_dir / ADDRESSES_FILE


def read_addresses(data_dir: Path) -> Addresses:
    """The addresses of the services that run in this folder.

    Raises:
        PrerequisiteError: nothing runs there, or the file is damaged.
    """
    path = addresses_path(data_dir)
    try:
        read = json.loads(path.read_text(encoding="utf-8"))
        return Addresses(str(read["bootstrap_servers"]), str(read["redis_url"]))
    except FileNotFoundError as error:
        message = f"{path} does not exist: no services run in this folder"
        raise PrerequisiteError(message) from error
    except (ValueError, KeyError, TypeError) as error:
        message = f"{path} is damaged ({error}): stop what runs in this folder, remove the file and start again"
        raise PrerequisiteError(message) from error


def in_use(data_dir: Path) -> bool:
    """Whether a process runs the services of this folder, or is starting or stopping them."""
    try:
        lock = os.open(data_dir / LOCK_FILE, os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(lock)
    return False


class EmbeddedServices:
    """Kafka and Valkey in one folder, with the same ports and data at every start.

    Only one process may run the services of a folder, which a lock ensures that ends with the process. While they run,
    the folder contains ``addresses.json`` for other commands.

    Args:
        data_dir: the folder; created if missing.
        kafka_port: None uses the former one of this folder, or a free one.
        redis_port: as ``kafka_port``.
    """

    def __init__(self, data_dir: Path, *, kafka_port: int | None = None, redis_port: int | None = None) -> None:
        self.data_dir = data_dir.absolute()
        self.data_dir.mkdir(parents=True, exist_ok=True)
        self.kafka = EmbeddedKafka(self.data_dir / "kafka", kafka_port)
        self.valkey = EmbeddedValkey(self.data_dir / "valkey", redis_port)
        self._started = ExitStack()

    @property
    def bootstrap_servers(self) -> str:
        """Kafka's ``host:port``."""
        return self.kafka.bootstrap_servers

    @property
    def redis_url(self) -> str:
        """The lease store's URL."""
        return self.valkey.redis_url

    def start(self) -> None:
        """Start both and write the addresses; if one fails, both are stopped.

        Raises:
            PrerequisiteError: the folder's services already run, here or in another process, or one did not start.
            MissingExtraError: the extra ``embedded`` is not installed.
        """
        with ExitStack() as starting:
            starting.callback(os.close, self._take_lock())
            starting.enter_context(self.valkey)
            starting.enter_context(self.kafka)
            path = addresses_path(self.data_dir)
            # Replaced as a whole, so that readers never see a part of the file.
            unfinished = path.with_suffix(".incoming")
            unfinished.write_text(
                json.dumps(asdict(Addresses(self.bootstrap_servers, self.redis_url)), indent=1) + "\n", encoding="utf-8"
            )
            unfinished.replace(path)
            starting.callback(path.unlink, missing_ok=True)
            self._started = starting.pop_all()

    def refuse_dead(self) -> None:
        """Check that both services still run.

        Raises:
            PrerequisiteError: one ended by itself; the message names it and its log.
        """
        for name, part in (("Kafka", self.kafka), ("Valkey", self.valkey)):
            if not part.running:
                raise PrerequisiteError(f"{name} ended by itself: look at the end of {part.log_path}")

    def stop(self) -> None:
        """Stop both; the data stays. Idempotent."""
        self._started.close()

    def __enter__(self) -> Self:
        """Start both."""
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Stop both."""
        self.stop()

    def _take_lock(self) -> int:
        """Lock the folder for this process; closing the returned descriptor, or the end of the process, unlocks it."""
        lock = os.open(self.data_dir / LOCK_FILE, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            _lock_soon(lock)
        except BlockingIOError as error:
            holder = os.read(lock, 32).decode(errors="replace").strip()
            os.close(lock)
            message = f"{self.data_dir} is in use by process {holder}: stop that one first, or take another folder"
            raise PrerequisiteError(message) from error
        os.truncate(lock, 0)
        os.write(lock, f"{os.getpid()}\n".encode())
        return lock


def _lock_soon(lock: int) -> None:
    """Take the lock, also while a command checks whether it is taken; see :func:`in_use`.

    Raises:
        BlockingIOError: another process holds the lock.
    """
    for _ in range(_LOOKS_OUTLASTED):
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(0.01)
        else:
            return
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
