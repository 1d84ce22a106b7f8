"""Kafka and Valkey, and for each process of the cluster links of its own to both."""

from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from controlplane.embedded.kafka import EmbeddedKafka
from controlplane.embedded.kafka_settings import Listener
from controlplane.embedded.server import free_port
from controlplane.embedded.services import Addresses
from controlplane.embedded.valkey import EmbeddedValkey
from tests.chaos.lease_links import LeaseLinks
from tests.chaos.proxy import HOST, LinkMode, Proxy


class Parts(Protocol):
    """What faults are done to, on one broker or on several."""

    valkey: EmbeddedValkey

    @property
    def bootstrap_servers(self) -> str:
        """Kafka's address past every link, for the one who looks."""

    def addresses_of(self, name: str) -> Addresses:
        """Where a process finds its links."""

    def set_kafka_link(self, name: str, mode: LinkMode, delay_ms: int = 0) -> None:
        """Change what becomes of what a process and Kafka send each other."""

    def set_lease_link(self, name: str, mode: LinkMode, delay_ms: int = 0) -> None:
        """The same for the lease store."""

    def kill_kafka(self) -> None:
        """Kill every server of Kafka."""

    def start_kafka(self) -> None:
        """Start those that do not run."""

    def pause_kafka(self) -> None:
        """Freeze every server of Kafka."""

    def resume_kafka(self) -> None:
        """Let them go on."""


class ChaosParts:
    """The servers and the links. A context manager: it ends all of them.

    Kafka tells its clients where to come again, so it has a door for each process, and tells those who come through a
    door the link that leads to it.
    """

    def __init__(self, folder: Path, names: list[str]) -> None:
        """Choose the ports; nothing runs yet."""
        self._kafka_links = {name: Listener(name.upper(), free_port(), free_port()) for name in names}
        self.kafka = EmbeddedKafka(folder / "kafka", listeners=list(self._kafka_links.values()))
        self.valkey = EmbeddedValkey(folder / "valkey")
        self._lease_links = LeaseLinks(self.valkey, names)
        self._proxy = Proxy()
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        """Start everything, with every link open."""
        with ExitStack() as stack:
            stack.enter_context(self._proxy)
            stack.enter_context(self.valkey)
            stack.enter_context(self._lease_links)
            stack.enter_context(self.kafka)
            for name, door in self._kafka_links.items():
                self._proxy.link(name, door.advertised_port, door.port)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Stop everything."""
        self.valkey.resume()
        self.kafka.resume()
        self._stack.close()

    @property
    def bootstrap_servers(self) -> str:
        """Kafka's own address."""
        return self.kafka.bootstrap_servers

    def kill_kafka(self) -> None:
        """Kill the broker."""
        self.kafka.kill()

    def start_kafka(self) -> None:
        """Start it."""
        self.kafka.start()

    def pause_kafka(self) -> None:
        """Freeze it."""
        self.kafka.pause()

    def resume_kafka(self) -> None:
        """Let it go on."""
        self.kafka.resume()

    def addresses_of(self, name: str) -> Addresses:
        """Where a process finds its links."""
        return Addresses(f"{HOST}:{self._kafka_links[name].advertised_port}", self._lease_links.url_of(name))

    def set_kafka_link(self, name: str, mode: LinkMode, delay_ms: int = 0) -> None:
        """Change what becomes of what a process and Kafka send each other."""
        self._proxy.set(name, mode, delay_ms)

    def set_lease_link(self, name: str, mode: LinkMode, delay_ms: int = 0) -> None:
        """The same for the lease store."""
        self._lease_links.set(name, mode, delay_ms)
