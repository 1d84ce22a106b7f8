"""The services that a control plane needs, Kafka and a lease store, on one machine and in one folder."""

import fcntl
import json
import os
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from controlplane.embedded.kafka import EmbeddedKafka, holds_data
from controlplane.embedded.kafka_cluster import EmbeddedKafkaCluster, brokers_in
from controlplane.embedded.running import Running
from controlplane.embedded.server import EmbeddedServer
from controlplane.embedded.valkey import EmbeddedValkey
from controlplane.errors import PrerequisiteError

ADDRESSES_FILE = "addresses.json"
LOCK_FILE = "lock"
RESTART_PAUSE_S: Final = 10.0
"""How long a broker of several stays away that ended by itself: long enough to see the others take over."""

_LOOKS_OUTLASTED: Final = 20
"""Attempts to take the lock, ten milliseconds apart: commands that check it hold it for an instant."""


@dataclass(frozen=True, slots=True)
class Addresses:
    """The addresses of the services, stored in the data folder for other commands.

    Attributes:
        bootstrap_servers: the ``host:port`` of each broker of Kafka, separated by commas.
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


class FolderRefusedError(PrerequisiteError):
    """These services cannot run in this folder, but in another one."""


class EmbeddedServices(Running):
    """Kafka and Valkey in one folder, with the same ports and data at every start.

    Only one process may run the services of a folder, which a lock ensures that ends with the process. While they run,
    the folder contains ``addresses.json`` for other commands.

    Args:
        data_dir: the folder; created if missing.
        kafka_port: None uses the former one of this folder, or a free one. Of several brokers it is the first one's,
            and the others have the next ones.
        redis_port: as ``kafka_port``, for Valkey.
        brokers: how many brokers Kafka has; None uses the former number of this folder, or 1.

    Raises:
        FolderRefusedError: the folder holds the data of another number of brokers.
        ConfigurationError: the ports from ``kafka_port`` on do not suffice.
    """

    def __init__(
        self,
        data_dir: Path,
        *,
        kafka_port: int | None = None,
        redis_port: int | None = None,
        brokers: int | None = None,
    ) -> None:
        self.data_dir = data_dir.absolute()
        self.data_dir.mkdir(parents=True, exist_ok=True)
        kafka_dir = self.data_dir / "kafka"
        former = brokers_in(kafka_dir) or (1 if holds_data(kafka_dir) else None)
        number = brokers or former or 1
        if former not in {None, number}:
            held = "1 broker" if former == 1 else f"{former} brokers"
            raise FolderRefusedError(f"{self.data_dir} holds the data of {held}, not of {number}: take another folder")
        self.kafka = (
            EmbeddedKafka(kafka_dir, kafka_port)
            if number == 1
            else EmbeddedKafkaCluster(kafka_dir, number, first_port=kafka_port)
        )
        self.valkey = EmbeddedValkey(self.data_dir / "valkey", redis_port)
        self._ended_s: dict[int, float] = {}
        self._started = ExitStack()

    @property
    def brokers(self) -> Mapping[int, EmbeddedKafka]:
        """Kafka's brokers by id; a single one has the id 1."""
        return {1: self.kafka} if isinstance(self.kafka, EmbeddedKafka) else self.kafka.brokers

    @property
    def bootstrap_servers(self) -> str:
        """The ``host:port`` of each broker, separated by commas."""
        return self.kafka.bootstrap_servers

    @property
    def redis_url(self) -> str:
        """The lease store's URL."""
        return self.valkey.redis_url

    def start(self) -> None:
        """Start both and write the addresses; if one fails, both are stopped.

        Raises:
            FolderRefusedError: the folder's services already run, here or in another process.
            PrerequisiteError: one did not start.
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

    def look_after(self, report: Callable[[str], None]) -> None:
        """Check that both services run, and start a broker of several again that ended 10 s ago; call it often.

        Args:
            report: told, in a line, of each broker of several that ended or is started again.

        Raises:
            PrerequisiteError: Valkey or every broker ended by itself, or a broker cannot be started again; the message
                names it and its log.
        """
        if not any(broker.running for broker in self.brokers.values()):
            raise PrerequisiteError(_ended("Kafka", self.brokers.values()))
        if not self.valkey.running:
            raise PrerequisiteError(_ended("Valkey", [self.valkey]))
        for node_id, broker in self.brokers.items():
            if broker.running:
                self._ended_s.pop(node_id, None)
            elif node_id not in self._ended_s:
                self._ended_s[node_id] = time.monotonic()
                report(
                    f"broker {node_id} ended {broker.end}; it is started again in {RESTART_PAUSE_S:.0f} s "
                    f"(log: {broker.log_path})"
                )
            elif time.monotonic() - self._ended_s[node_id] >= RESTART_PAUSE_S:
                broker.launch()
                report(f"broker {node_id} is started again, process {broker.pid}")

    def stop(self) -> None:
        """Stop both; the data stays. Idempotent."""
        self._started.close()

    def _take_lock(self) -> int:
        """Lock the folder for this process; closing the returned descriptor, or the end of the process, unlocks it."""
        lock = os.open(self.data_dir / LOCK_FILE, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            _lock_soon(lock)
        except BlockingIOError as error:
            holder = os.read(lock, 32).decode(errors="replace").strip()
            os.close(lock)
            message = f"{self.data_dir} is in use by process {holder}: stop that one first, or take another folder"
            raise FolderRefusedError(message) from error
        os.truncate(lock, 0)
        os.write(lock, f"{os.getpid()}\n".encode())
        return lock


def _ended(name: str, servers: Collection[EmbeddedServer]) -> str:
    """The message about a service of which every server has ended."""
    if len(servers) == 1:
        (server,) = servers
        return f"{name} ended by itself, {server.end}: look at the end of {server.log_path}"
    each = "\n".join(f"  {server.data_dir.name} {server.end}: {server.log_path}" for server in servers)
    return f"{name} ended by itself: look at the end of the log of each broker\n{each}"


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
