"""The real Kafka, broker and controller in one JVM, for one machine."""

import os
import socket
import struct
import subprocess
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from controlplane.embedded.jars import broker_jars
from controlplane.embedded.java import Java, find_java
from controlplane.embedded.server import HOST, EmbeddedServer, free_port
from controlplane.errors import PrerequisiteError

_START_DEADLINE_S = 60.0
_STOP_GRACE_S = 10.0
_FORMAT_TIMEOUT_S = 60.0
_ANSWER_TIMEOUT_S = 1.0

_METADATA_API_KEY = 3
_METADATA_VERSION = 1

BROKER_SETTINGS = """\
# Written at every start. One process is broker and controller at once.
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@{host}:{controller_port}
listeners=CONTROLLER://{host}:{controller_port},{listeners}
advertised.listeners={advertised_listeners}
listener.security.protocol.map=CONTROLLER:PLAINTEXT,{protocols}
inter.broker.listener.name=BROKER
controller.listener.names=CONTROLLER
log.dirs={log_dir}

# One machine has one copy; 4 partitions, because the usual 50 are slow to load at a start.
offsets.topic.replication.factor=1
offsets.topic.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=4
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
share.coordinator.state.topic.num.partitions=4

# Topics exist because `controlplane topics apply` made them, with settings that hold our promises.
auto.create.topics.enable=false
group.initial.rebalance.delay.ms=0

# After a crash the broker serves again once its former session has expired: 5 s instead of 13 s.
broker.session.timeout.ms=2000
broker.heartbeat.interval.ms=500

# A dead leader's open transaction holds read_committed readers back until its time-out, looked for this often.
transaction.abort.timed.out.transaction.cleanup.interval.ms=1000

# Small memory and few threads; the cleaner's buffer is 128 MB by default.
log.cleaner.dedupe.buffer.size=16777216
num.network.threads=2
num.io.threads=4
background.threads=4
"""
"""The broker's settings file; ``infra/compose.yaml`` has the same settings for a container."""

_LOGGING = """\
appender.out.type=Console
appender.out.name=out
appender.out.layout.type=PatternLayout
appender.out.layout.pattern=%d{yyyy-MM-dd HH:mm:ss,SSS} %p %m (%c)%n
rootLogger.level=INFO
rootLogger.appenderRef.out.ref=out
"""


class Listener(NamedTuple):
    """A listener of the broker.

    Attributes:
        name: in capitals, as Kafka names listeners.
        port: the port on which it listens.
        advertised_port: the port that clients of this listener are told to connect to, for example that of a proxy.
        protocol: ``PLAINTEXT``, ``SASL_PLAINTEXT``, ``SSL`` or ``SASL_SSL``; its settings are the caller's.
    """

    name: str
    port: int
    advertised_port: int
    protocol: str = "PLAINTEXT"


class EmbeddedKafka(EmbeddedServer):
    """One broker of the real Kafka, without passwords, on 127.0.0.1.

    Its port is chosen once and kept in the data folder, so that clients find it again after a restart.

    Args:
        data_dir: its log, settings and output; a folder that was used before is used with its data.
        port: the clients' port; None uses the former one of this folder, or a free one.
        settings: broker settings in addition to ours, for example a shorter ``log.cleaner.backoff.ms``.
        listeners: listeners in addition to the one at ``port``.
    """

    def __init__(
        self,
        data_dir: Path,
        port: int | None = None,
        *,
        settings: Mapping[str, str] = MappingProxyType({}),
        listeners: Sequence[Listener] = (),
    ) -> None:
        super().__init__("kafka", data_dir, port, start_deadline_s=_START_DEADLINE_S, stop_grace_s=_STOP_GRACE_S)
        self._settings = dict(settings)
        self._listeners = (Listener("BROKER", self.port, self.port), *listeners)

    @property
    def bootstrap_servers(self) -> str:
        """The address for clients, ``127.0.0.1:port``."""
        return f"{HOST}:{self.port}"

    def _free_controller_port(self) -> int:
        """A port for the controller listener, chosen at each start: only the JVM itself connects to it."""
        while (port := free_port()) == self.port:
            pass
        return port

    def _prepare(self) -> Sequence[str]:
        java = find_java()
        class_path = os.pathsep.join(str(jar) for jar in broker_jars())
        settings_file = self.data_dir / "server.properties"
        log_dir = self.data_dir / "log"
        text = BROKER_SETTINGS.format(
            host=HOST,
            controller_port=self._free_controller_port(),
            listeners=",".join(f"{door.name}://{HOST}:{door.port}" for door in self._listeners),
            advertised_listeners=",".join(f"{door.name}://{HOST}:{door.advertised_port}" for door in self._listeners),
            protocols=",".join(f"{door.name}:{door.protocol}" for door in self._listeners),
            log_dir=_escaped(str(log_dir)),
        )
        text += "".join(f"{name}={_escaped(value)}\n" for name, value in sorted(self._settings.items()))
        settings_file.write_text(text, encoding="utf-8")
        logging_file = self.data_dir / "log4j2.properties"
        logging_file.write_text(_LOGGING, encoding="utf-8")
        if not (log_dir / "meta.properties").exists():
            self._format(java, class_path, settings_file)
        return [
            *_jvm(java, class_path),
            f"-Dlog4j2.configurationFile={logging_file}",
            "kafka.Kafka",
            str(settings_file),
        ]

    def _format(self, java: Java, class_path: str, settings_file: Path) -> None:
        cluster_id = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        command = [
            *_jvm(java, class_path),
            *("kafka.tools.StorageTool", "format"),
            *(f"--cluster-id={cluster_id}", f"--config={settings_file}"),
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
        """Ask for metadata in Kafka's own protocol; a broker that is still fenced answers without any broker."""
        body = struct.pack(">hhih", _METADATA_API_KEY, _METADATA_VERSION, 1, -1) + struct.pack(">i", 0)
        with socket.create_connection((HOST, self.port), timeout=_ANSWER_TIMEOUT_S) as connection:
            connection.sendall(struct.pack(">i", len(body)) + body)
            with connection.makefile("rb") as answer:
                # size, correlation id, then the number of brokers
                head = answer.read(12)
        return len(head) == 12 and struct.unpack(">iii", head)[2] >= 1  # noqa: PLR2004 - three int32


def _jvm(java: Java, class_path: str) -> tuple[str, ...]:
    """The command for a small JVM with a short life: quick to start, 360 MB resident, a collector on one core."""
    return (
        str(java.executable),
        "-Xmx512m",
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        "-Djava.awt.headless=true",
        *("-cp", class_path),
    )


def _escaped(value: str) -> str:
    """A value for a properties file, in which a backslash starts an escape."""
    return value.replace("\\", "\\\\")
