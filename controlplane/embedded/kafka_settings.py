"""What a server of Kafka reads at its start: its part in a cluster, its listeners, its settings file."""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from controlplane.embedded.server import HOST

CLIENTS_LISTENER: Final = "BROKER"
"""The listener that every broker has: for clients, and for the other brokers unless its role says otherwise."""

_SETTINGS: Final = """\
# One broker has one copy.
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1

# 4 partitions, because the usual 50 are slow to load at a start.
offsets.topic.num.partitions=4
transaction.state.log.num.partitions=4
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
"""The settings of every server; ``infra/compose.yaml`` has the same for a container. A cluster's differ in some."""


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


@dataclass(frozen=True, slots=True)
class ServerRole:
    """One server's part in a cluster.

    Attributes:
        name: of the server in messages and of its log file, as in ``broker-2``.
        node_id: the server's id, unique among brokers and controllers.
        cluster_id: of the cluster; None for a new one with the storage's first use.
        controllers: the port at which this server reaches each controller, by the controller's id.
        controller_port: the port on which it listens as a controller; None for a broker only.
        advertised_controller_port: the port at which a broker that is a controller too tells others to reach it when it
            leads the quorum, for example that of a proxy; None for ``controller_port``.
        is_broker: whether it stores topics and serves clients.
        brokers_listener: the listener of the others that it calls as a broker; it must have one of this name itself.
    """

    name: str
    node_id: int
    cluster_id: str | None
    controllers: Mapping[int, int]
    controller_port: int | None
    is_broker: bool = True
    brokers_listener: str = CLIENTS_LISTENER
    advertised_controller_port: int | None = None

    @classmethod
    def alone(cls, controller_port: int) -> "ServerRole":
        """The role of the only server of a cluster, which is broker and controller at once."""
        return cls("kafka", 1, None, {1: controller_port}, controller_port)


def settings_text(role: ServerRole, listeners: Sequence[Listener], log_dir: Path, settings: Mapping[str, str]) -> str:
    """The text of a server's settings file, in which each setting has one line.

    Args:
        role: the server's part in its cluster.
        listeners: those of the broker; without effect on a server that is a controller only.
        log_dir: the folder of its data.
        settings: settings in addition to ours, or in place of one of ours.
    """
    own, port = list(listeners) if role.is_broker else [], role.controller_port
    advertised_port = role.advertised_controller_port
    controller = [] if port is None else [Listener("CONTROLLER", port, advertised_port or port)]
    addresses = {
        "process.roles": ",".join(_roles(role)),
        "node.id": str(role.node_id),
        "controller.quorum.voters": ",".join(f"{each}@{HOST}:{port}" for each, port in role.controllers.items()),
        "controller.listener.names": "CONTROLLER",
        "listeners": ",".join(f"{each.name}://{HOST}:{each.port}" for each in (*controller, *own)),
        "listener.security.protocol.map": ",".join(
            ["CONTROLLER:PLAINTEXT", *(f"{each.name}:{each.protocol}" for each in own)]
        ),
        "log.dirs": str(log_dir),
    }
    if role.is_broker:
        advertised = own if advertised_port is None else [*controller, *own]
        addresses["advertised.listeners"] = ",".join(
            f"{each.name}://{HOST}:{each.advertised_port}" for each in advertised
        )
        addresses["inter.broker.listener.name"] = role.brokers_listener
    head = f"# Written at every start. This process is {' and '.join(_roles(role))}.\n"
    blocks = [
        head + "".join(_lines({name: value for name, value in addresses.items() if name not in settings})),
        *_blocks_without(settings.keys()),
        *(
            ["# Of this cluster or this server.\n" + "".join(_lines(dict(sorted(settings.items()))))]
            if settings
            else []
        ),
    ]
    return "\n".join(blocks)


def _blocks_without(replaced: AbstractSet[str]) -> list[str]:
    """The blocks of the settings of every server without those that are replaced; a comment goes with its last one."""
    blocks = []
    for block in _SETTINGS.split("\n\n"):
        lines = [line for line in block.splitlines() if line.partition("=")[0] not in replaced]
        if any(not line.startswith("#") for line in lines):
            blocks.append("".join(f"{line}\n" for line in lines))
    return blocks


def _roles(role: ServerRole) -> list[str]:
    return ["broker"] * role.is_broker + ["controller"] * (role.controller_port is not None)


def _lines(settings: Mapping[str, str]) -> list[str]:
    # In a properties file a backslash starts an escape.
    return ["{}={}\n".format(name, value.replace("\\", "\\\\")) for name, value in settings.items()]
