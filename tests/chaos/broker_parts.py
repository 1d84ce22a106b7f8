"""Several brokers and Valkey, with links of its own from each process to each broker, and a clock for each broker."""

import shutil
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from controlplane.embedded.services import Addresses
from controlplane.embedded.valkey import EmbeddedValkey
from tests.chaos.lease_links import LeaseLinks
from tests.chaos.proxy import LinkMode
from tests.helpers.certificates import Authority
from tests.helpers.proxied_kafka import ProxiedKafka
from tests.helpers.secured_kafka import tls_login_of
from tests.helpers.shifted_clock import shifted_clocks


class BrokerParts:
    """What :class:`~tests.chaos.parts.ChaosParts` is, with several brokers. A context manager: it ends all of it.

    Args:
        folder: the data of all.
        names: of the processes, which get links of their own.
        brokers: their number. On four, each partition has a broker that holds no copy of it.
        controllers_apart: whether Kafka's controllers are processes of their own.
        secured: whether processes log in under TLS, and brokers speak TLS with one another.

    Attributes:
        brokers: the proxied cluster.
        clocks: the brokers' wall clocks by id; empty where clocks cannot be shifted.
        security: the settings with which processes log in; empty where they need not.
        security_file: the same as ``--security`` takes them, or None.
    """

    def __init__(
        self,
        folder: Path,
        names: Sequence[str],
        brokers: int,
        *,
        controllers_apart: bool = False,
        secured: bool = False,
    ) -> None:
        authority = Authority(folder / "certificates") if secured else None
        self.security = tls_login_of("node", authority) if authority else {}
        self.security_file = folder / "login.properties" if authority else None
        if self.security_file:
            lines = [f"{key}={value}\n" for key, value in self.security.items()]
            self.security_file.write_text("".join(lines), encoding="utf-8")
        self.clocks = shifted_clocks(folder, brokers)
        self.brokers = ProxiedKafka(
            folder / "kafka",
            brokers,
            processes=names,
            environments={each: clock.environment for each, clock in self.clocks.items()},
            controllers_apart=controllers_apart,
            authority=authority,
        )
        self.valkey = EmbeddedValkey(folder / "valkey")
        self._names = tuple(names)
        self._copy = folder / "valkey-copy"
        self._lease_links = LeaseLinks(self.valkey, names)
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        """Start everything, with every link open and every clock right."""
        with ExitStack() as stack:
            stack.enter_context(self.valkey)
            stack.enter_context(self._lease_links)
            stack.enter_context(self.brokers)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Stop everything."""
        self.valkey.resume()
        self.resume_kafka()
        self._stack.close()

    @property
    def names(self) -> tuple[str, ...]:
        """The processes that have links."""
        return self._names

    @property
    def bootstrap_servers(self) -> str:
        """The brokers' own addresses."""
        return self.brokers.kafka.bootstrap_servers

    def addresses_of(self, name: str) -> Addresses:
        """Where a process finds its links."""
        return Addresses(self.brokers.bootstrap_servers(name), self._lease_links.url_of(name))

    def set_kafka_link(self, name: str, mode: LinkMode, delay_ms: int = 0) -> None:
        """Change what becomes of what a process and every broker send each other."""
        for broker in self.brokers.kafka.brokers:
            self.brokers.set_link(name, broker, mode, delay_ms)

    def set_lease_link(self, name: str, mode: LinkMode, delay_ms: int = 0) -> None:
        """The same for the lease store."""
        self._lease_links.set(name, mode, delay_ms)

    def kill_kafka(self) -> None:
        """Kill every server of Kafka, as a power failure of the whole room would."""
        for server in self.brokers.kafka.servers:
            server.kill()

    def start_kafka(self) -> None:
        """Start those that do not run, and wait until they have met."""
        self.brokers.kafka.start()

    def pause_kafka(self) -> None:
        """Freeze every server of Kafka."""
        for server in self.brokers.kafka.servers:
            server.pause()

    def resume_kafka(self) -> None:
        """Let them go on."""
        for server in self.brokers.kafka.servers:
            server.resume()

    def copy_lease_store(self) -> None:
        """Take a copy of what the lease store holds now."""
        shutil.rmtree(self._copy, ignore_errors=True)
        shutil.copytree(self.valkey.store_dir, self._copy)

    def fail_lease_store_over(self) -> int:
        """Let the copy take the lease store's place: a replica that was behind, at the address of the former one.

        Returns:
            How many bytes of writes the copy lacks.
        """
        self.valkey.kill()
        lost = _bytes_in(self.valkey.store_dir) - _bytes_in(self._copy)
        self.valkey.erase_data()
        shutil.copytree(self._copy, self.valkey.store_dir)
        self.valkey.start()
        return lost


def _bytes_in(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
