"""Several brokers whose every connection goes over a link of the proxy: cut, slow, or silent without a reset."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Self

from controlplane.embedded.kafka_cluster import EmbeddedKafkaCluster, ServerOptions, controller_ids
from controlplane.embedded.kafka_settings import Listener
from controlplane.embedded.server import free_port
from tests.chaos.proxy import HOST, LinkMode, Proxy
from tests.helpers.certificates import Authority
from tests.helpers.secured_kafka import PASSWORDS

CLIENTS = "clients"
"""The caller that stands for every client without a name of its own."""


class ProxiedKafka:
    """A cluster of brokers with a link from each caller to each broker. A context manager: it ends all of it.

    Callers are ``clients``, processes by name, and the brokers themselves (``broker-1``), which fetch from one another
    and report to the controllers over their own links. So a broker can be cut off from one process, from another
    broker, or from all. The first brokers are controllers too, unless these are apart. ``kafka.bootstrap_servers``
    passes by every link.

    Args:
        folder: the data of all.
        brokers: their number.
        processes: names of callers that get links of their own.
        environments: environment variables of single brokers, for example of a shifted clock.
        settings: settings of every broker in addition to the cluster's.
        controllers_apart: whether Kafka's controllers are processes of their own. Only brokers' links lead to them.
        authority: signs the brokers' certificate. Processes then log in with a password under TLS, and brokers speak
            TLS with certificates among one another; ``clients`` and the controllers go without.
    """

    def __init__(
        self,
        folder: Path,
        brokers: int = 3,
        *,
        processes: Sequence[str] = (),
        environments: Mapping[int, Mapping[str, str]] = MappingProxyType({}),
        settings: Mapping[str, str] = MappingProxyType({}),
        controllers_apart: bool = False,
        authority: Authority | None = None,
    ) -> None:
        ids = range(1, brokers + 1)
        callers = [CLIENTS, *processes, *(f"broker-{each}" for each in ids)]
        self._listeners = {
            (caller, broker): Listener(
                _listener_name(caller), free_port(), free_port(), _protocol(caller) if authority else "PLAINTEXT"
            )
            for caller in callers
            for broker in ids
        }
        controllers = controller_ids(brokers, controllers_apart=controllers_apart)
        self._controller_listeners = {(f"broker-{caller}", each): free_port() for caller in ids for each in controllers}
        # One that leads the quorum tells all others the same address, from which each goes on over its own link.
        self._shared_ports = {} if controllers_apart else {each: free_port() for each in controllers}
        secured = _security_of(authority, callers) if authority else {}
        options = {
            broker: ServerOptions(
                listeners=[self._listeners[caller, broker] for caller in callers],
                brokers_listener=_listener_name(f"broker-{broker}"),
                controllers={each: self._controller_listeners[f"broker-{broker}", each] for each in controllers},
                advertised_controller_port=self._shared_ports.get(broker),
                environment=environments.get(broker, {}),
                # For each listener.
                settings={"num.network.threads": "1", **secured},
            )
            for broker in ids
        }
        self.kafka = EmbeddedKafkaCluster(
            folder, brokers, controllers_apart=controllers_apart, settings=settings, options=options
        )
        self._proxy = Proxy()
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        """Start everything, with every link open."""
        with ExitStack() as stack:
            stack.enter_context(self._proxy)
            for (caller, broker), listener in self._listeners.items():
                self._proxy.link(_link(caller, broker), listener.advertised_port, listener.port)
            for (caller, controller), port in self._controller_listeners.items():
                self._proxy.link(_controller_link(caller, controller), port, self.kafka.controller_ports[controller])
            for controller, port in self._shared_ports.items():
                callers = {
                    str(broker.settings_file): _controller_link(f"broker-{each}", controller)
                    for each, broker in self.kafka.brokers.items()
                }
                self._proxy.share(port, callers)
            stack.enter_context(self.kafka)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """End everything."""
        self._stack.close()

    def bootstrap_servers(self, caller: str = CLIENTS) -> str:
        """The addresses of the brokers for a process, which leads it over its links."""
        return ",".join(self.address(caller, broker) for each, broker in self._listeners if each == caller)

    def address(self, caller: str, broker: int) -> str:
        """Where a process finds one broker: its own link to it."""
        return f"{HOST}:{self._listeners[caller, broker].advertised_port}"

    def answered_bytes(self, caller: str, broker: int) -> int:
        """How many bytes of answers a broker has sent to a caller so far."""
        return self._proxy.answered_bytes(_link(caller, broker))

    def set_link(
        self, caller: str, broker: int, mode: LinkMode, delay_ms: int = 0, *, also_controller: bool = True
    ) -> None:
        """Change what becomes of what a caller and a broker send each other.

        Args:
            caller: a process's name, ``clients`` or ``broker-1``.
            broker: the broker's id, or that of a controller that is apart.
            mode: what becomes of it.
            delay_ms: how much later it arrives, in each direction.
            also_controller: between brokers, whether the same becomes of the link to the broker's controller.
        """
        if (caller, broker) in self._listeners:
            self._proxy.set(_link(caller, broker), mode, delay_ms)
        if also_controller and (caller, broker) in self._controller_listeners:
            self._proxy.set(_controller_link(caller, broker), mode, delay_ms)

    def isolate(self, broker: int, mode: LinkMode = LinkMode.HALF_OPEN, *, also_from_clients: bool = True) -> None:
        """Cut a broker off from all other brokers, and from every process unless these are to reach it still.

        Half-open, packets are lost without a reset, and neither side is told.
        """
        for caller, target in self._links_of(broker):
            if also_from_clients or caller.startswith("broker-"):
                self.set_link(caller, target, mode)

    def heal(self) -> None:
        """Open every link."""
        for caller, target in self._every_link():
            self.set_link(caller, target, LinkMode.OPEN)

    def _every_link(self) -> Iterator[tuple[str, int]]:
        yield from {**self._listeners, **self._controller_listeners}

    def _links_of(self, broker: int) -> Iterator[tuple[str, int]]:
        name = f"broker-{broker}"
        for caller, target in self._every_link():
            if (caller == name) != (target == broker):
                yield caller, target


def _listener_name(caller: str) -> str:
    return "FROM_" + re.sub("[^A-Z0-9]", "_", caller.upper())


def _protocol(caller: str) -> str:
    if caller == CLIENTS:
        return "PLAINTEXT"
    return "SSL" if caller.startswith("broker-") else "SASL_SSL"


def _security_of(authority: Authority, callers: Sequence[str]) -> dict[str, str]:
    """The settings of the listeners that are not plain."""
    server = authority.sign("broker").both()
    settings: dict[str, str] = {}
    for caller in callers:
        protocol, prefix = _protocol(caller), f"listener.name.{_listener_name(caller).lower()}"
        if protocol != "PLAINTEXT":
            settings |= {
                f"{prefix}.ssl.keystore.type": "PEM",
                f"{prefix}.ssl.keystore.location": str(server),
                f"{prefix}.ssl.truststore.type": "PEM",
                f"{prefix}.ssl.truststore.location": str(authority.certificate),
            }
        if protocol == "SSL":
            settings[f"{prefix}.ssl.client.auth"] = "required"
        if protocol == "SASL_SSL":
            settings |= {
                f"{prefix}.sasl.enabled.mechanisms": "PLAIN",
                f"{prefix}.plain.sasl.jaas.config": PASSWORDS,
            }
    return settings


def _link(caller: str, broker: int) -> str:
    return f"{caller} to broker {broker}"


def _controller_link(caller: str, broker: int) -> str:
    return f"{caller} to controller {broker}"
