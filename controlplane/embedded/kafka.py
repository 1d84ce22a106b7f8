"""A server of the real Kafka in a JVM of its own, for one machine."""

import os
import struct
import subprocess
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Final

from controlplane.embedded.jars import broker_jars
from controlplane.embedded.java import Java, find_java
from controlplane.embedded.kafka_request import ask
from controlplane.embedded.kafka_settings import CLIENTS_LISTENER, Listener, ServerRole, settings_text
from controlplane.embedded.server import HOST, EmbeddedServer, free_port
from controlplane.errors import PrerequisiteError

LOG_FOLDER: Final = "log"
"""The folder of a server's data, in its own folder."""

_HEAP_MB = 512
_START_DEADLINE_S = 60.0
_STOP_GRACE_S = 10.0
_FORMAT_TIMEOUT_S = 60.0
_ANSWER_TIMEOUT_S = 1.0

_METADATA_API_KEY = 3
_VERSIONS_API_KEY = 18
_METADATA_VERSION = 1
_HEADER_BYTES = 4
"""An answer's header: the correlation id."""

_LOGGING = """\
appender.out.type=Console
appender.out.name=out
appender.out.layout.type=PatternLayout
appender.out.layout.pattern=%d{yyyy-MM-dd HH:mm:ss,SSS} %p %m (%c)%n
rootLogger.level=INFO
rootLogger.appenderRef.out.ref=out
"""


class EmbeddedKafka(EmbeddedServer):
    """One server of the real Kafka, without passwords, on 127.0.0.1.

    By itself it is a whole cluster of one broker. With a role it is one server of several: see
    :class:`~controlplane.embedded.kafka_cluster.EmbeddedKafkaCluster`. Its port is chosen once and kept in the data
    folder, so that clients find it again after a restart.

    Args:
        data_dir: its log, settings and output; a folder that was used before is used with its data.
        port: the clients' port, or a controller's; None uses the former one of this folder, or a free one.
        settings: settings in addition to ours or in place of one of them, for example ``log.cleaner.backoff.ms``.
        listeners: listeners in addition to the one at ``port``.
        role: its part in a cluster of several servers; None for a cluster of this one alone.
        environment: environment variables of the server in addition to those of this process.
        heap_mb: the greatest size of its heap.
    """

    def __init__(
        self,
        data_dir: Path,
        port: int | None = None,
        *,
        settings: Mapping[str, str] = MappingProxyType({}),
        listeners: Sequence[Listener] = (),
        role: ServerRole | None = None,
        environment: Mapping[str, str] = MappingProxyType({}),
        heap_mb: int = _HEAP_MB,
    ) -> None:
        name = "kafka" if role is None else role.name
        super().__init__(name, data_dir, port, start_deadline_s=_START_DEADLINE_S, stop_grace_s=_STOP_GRACE_S)
        self._settings = dict(settings)
        self._listeners = (Listener(CLIENTS_LISTENER, self.port, self.port), *listeners)
        self._given_role = role
        self._environment = dict(environment)
        self._heap_mb = heap_mb

    @property
    def bootstrap_servers(self) -> str:
        """The address for clients, ``127.0.0.1:port``."""
        return f"{HOST}:{self.port}"

    @property
    def settings_file(self) -> Path:
        """What it reads when it starts, written anew each time; the last word of its command line."""
        return self.data_dir / "server.properties"

    def known_brokers(self) -> frozenset[int]:
        """The ids of the brokers that this one shows to clients; one that is still fenced shows none, or the others.

        Raises:
            OSError: it does not answer.
        """
        answer = self._ask(_METADATA_API_KEY, _METADATA_VERSION, struct.pack(">i", 0))
        (count,) = struct.unpack_from(">i", answer)
        brokers, offset = set[int](), 4
        for _ in range(count):
            node_id, host_bytes = struct.unpack_from(">ih", answer, offset)
            brokers.add(node_id)
            offset += 6 + host_bytes + 4  # id and length of the host's name, the name, the port
            (rack_bytes,) = struct.unpack_from(">h", answer, offset)
            offset += 2 + max(0, rack_bytes)
        return frozenset(brokers)

    def _free_controller_port(self) -> int:
        """A port for the controller of a broker alone, chosen at each start: only the JVM itself connects to it."""
        while (port := free_port()) == self.port:
            pass
        return port

    def _prepare(self) -> Sequence[str]:
        java = find_java()
        class_path = os.pathsep.join(str(jar) for jar in broker_jars())
        log_dir = self.data_dir / LOG_FOLDER
        role = self._given_role or ServerRole.alone(self._free_controller_port())
        self.settings_file.write_text(settings_text(role, self._listeners, log_dir, self._settings), encoding="utf-8")
        logging_file = self.data_dir / "log4j2.properties"
        logging_file.write_text(_LOGGING, encoding="utf-8")
        if not holds_data(self.data_dir):
            self._format(java, class_path, role.cluster_id or new_cluster_id())
        return [
            # Set by a program on the way, so that the keeper does not get them.
            *(["env", *(f"{name}={value}" for name, value in self._environment.items())] if self._environment else []),
            *_jvm(java, class_path, self._heap_mb),
            f"-Dlog4j2.configurationFile={logging_file}",
            "kafka.Kafka",
            str(self.settings_file),
        ]

    def _format(self, java: Java, class_path: str, cluster_id: str) -> None:
        command = [
            *_jvm(java, class_path, self._heap_mb),
            *("kafka.tools.StorageTool", "format"),
            *(f"--cluster-id={cluster_id}", f"--config={self.settings_file}"),
        ]
        try:
            subprocess.run(
                command,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=_FORMAT_TIMEOUT_S,
                check=True,
            )
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
            output = (error.output or b"").decode("utf-8", errors="replace")
            message = f"Kafka's storage in {self.data_dir} could not be formatted ({type(error).__name__}):\n{output}"
            raise PrerequisiteError(message) from error

    def _answers(self) -> bool:
        """Whether a broker shows itself to clients; whether a controller answers at all."""
        if self._given_role is None:
            return bool(self.known_brokers())
        if self._given_role.is_broker:
            return self._given_role.node_id in self.known_brokers()
        return bool(self._ask(_VERSIONS_API_KEY, 0, b""))

    def _ask(self, api_key: int, version: int, body: bytes) -> bytes:
        """A request in Kafka's own protocol, with the oldest kind of header; the answer's body.

        Raises:
            OSError: there is no whole answer.
        """
        request = struct.pack(">hhih", api_key, version, 1, -1) + body
        return ask(HOST, self.port, request, _ANSWER_TIMEOUT_S)[_HEADER_BYTES:]


def holds_data(data_dir: Path) -> bool:
    """Whether a server has begun to keep data in this folder; the folder is bound to its cluster from then on."""
    return (data_dir / LOG_FOLDER / "meta.properties").exists()


def new_cluster_id() -> str:
    """A random id of a cluster, in the form that Kafka wants."""
    return urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")


def _jvm(java: Java, class_path: str, heap_mb: int) -> tuple[str, ...]:
    """The command for a small JVM with a short life: quick to start, 360 MB resident, a collector on one core."""
    return (
        str(java.executable),
        f"-Xmx{heap_mb}m",
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        "-Djava.awt.headless=true",
        *("-cp", class_path),
    )
