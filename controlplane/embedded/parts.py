"""Everything that a control plane needs besides itself, on one machine and in one folder: Kafka and a lease store."""

import fcntl
import json
import os
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from controlplane.embedded.kafka import EmbeddedKafka
from controlplane.embedded.valkey import EmbeddedValkey
from controlplane.errors import PrerequisiteError

ADDRESSES_FILE = "addresses.json"
LOCK_FILE = "lock"


@dataclass(frozen=True, slots=True)
class Addresses:
    """Where the parts are, as other commands find it in the data folder.

    Attributes:
        bootstrap_servers: Kafka's ``host:port``.
        redis_url: the lease store, ``redis://host:port/0``.
    """

    bootstrap_servers: str
    redis_url: str


def addresses_path(data_dir: Path) -> Path:
    """The file that holds the addresses while the parts of this folder run."""
    return data_dir / ADDRESSES_FILE


def read_addresses(data_dir: Path) -> Addresses:
    """The addresses of the parts that run in this folder.

    Raises:
        PrerequisiteError: nothing runs there, or the file is damaged.
    """
    path = addresses_path(data_dir)
    try:
        read = json.loads(path.read_text(encoding="utf-8"))
        return Addresses(str(read["bootstrap_servers"]), str(read["redis_url"]))
    except FileNotFoundError as error:
        message = f"{path} does not exist: no parts run in this folder"
        raise PrerequisiteError(message) from error
    except (ValueError, KeyError, TypeError) as error:
        message = f"{path} is damaged ({error}): stop what runs in this folder, remove the file and start again"
        raise PrerequisiteError(message) from error


class EmbeddedParts:
    """Kafka and Valkey in one folder, with the same ports and data at every start.

    Only one process may run the parts of a folder; a lock that ends with that process sees to it. While they run, the
    folder holds ``addresses.json`` for other commands.

    Args:
        data_dir: the folder; made when missing.
        kafka_port: None takes the former one of this folder, or a free one.
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
        """Start both and write the addresses; nothing is left behind when one fails.

        Raises:
            PrerequisiteError: the folder's parts already run, here or in another process, or one did not start.
            MissingExtraError: the extra ``embedded`` is not installed.
        """
        with ExitStack() as starting:
            starting.callback(os.close, self._take_lock())
            starting.enter_context(self.valkey)
            starting.enter_context(self.kafka)
            path = addresses_path(self.data_dir)
            # Readers see the whole file or none.
            unfinished = path.with_suffix(".incoming")
            unfinished.write_text(
                json.dumps(asdict(Addresses(self.bootstrap_servers, self.redis_url)), indent=1) + "\n", encoding="utf-8"
            )
            unfinished.replace(path)
            starting.callback(path.unlink, missing_ok=True)
            self._started = starting.pop_all()

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
        """Lock the folder for this process; closing the answer, or the end of the process, frees it."""
        lock = os.open(self.data_dir / LOCK_FILE, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.read(lock, 32).decode(errors="replace").strip()
            os.close(lock)
            message = f"{self.data_dir} is in use by process {holder}: stop that one first, or take another folder"
            raise PrerequisiteError(message) from error
        os.truncate(lock, 0)
        os.write(lock, f"{os.getpid()}\n".encode())
        return lock
