"""``controlplane up``: a real Kafka and a real Valkey on this machine, until Ctrl-C."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import click

from controlplane.cli.common.connecting import telling
from controlplane.cli.common.invocation import Invocation, pass_invocation
from controlplane.cli.common.stopping import stop_on_signals
from controlplane.config import MAX_PORT
from controlplane.errors import ConfigurationError, PrerequisiteError

if TYPE_CHECKING:
    from controlplane.embedded.services import EmbeddedServices

_LOOK_INTERVAL_S: Final = 0.5
"""How often the processes are checked."""

MAX_BROKERS: Final = 9
"""More do not fit a machine of a developer, and show nothing that fewer do not."""

_TOO_FEW: Final = (
    "With 2 brokers, broker 1 is Kafka's only controller: while it is away, Kafka elects no leaders. One copy is "
    "enough to acknowledge a write, so the end of a broker may lose some. --brokers 3, in another --data-dir, bears "
    "the end of any one."
)


@click.command("up")
@click.option(
    "--kafka-port",
    type=click.IntRange(1, MAX_PORT),
    help="Kafka's port; of several brokers the first one's, and the others have the next ones.  "
    "[default: that of the last run, or a free one]",
)
@click.option(
    "--redis-port",
    type=click.IntRange(1, MAX_PORT),
    help="Valkey's port.  [default: that of the last run, or a free one]",
)
@click.option(
    "--brokers",
    type=click.IntRange(1, MAX_BROKERS),
    help="How many brokers Kafka has; 3 is the number to try. With 2, Kafka does not bear the end of broker 1, which "
    "is its only controller, and one copy acknowledges a write. A folder keeps its number.  [default: that of the last "
    "run, or 1]",
)
@pass_invocation
def up(invocation: Invocation, kafka_port: int | None, redis_port: int | None, brokers: int | None) -> None:
    """Start Kafka and Valkey in --data-dir and stay until Ctrl-C.

    Other commands with the same --data-dir find the addresses there. The data stays when the command ends. If one of
    the two services ends by itself, the command stops the other one and exits with 1.

    With --brokers 3 every topic has three copies, and a write is acknowledged when two have it. The process of each
    broker is printed. A broker that ends by itself is started again after 10 s, and the command ends only when all
    have ended. Each broker takes about 200 MB of memory.
    """
    from controlplane.embedded.kafka_cluster import CONTROLLERS
    from controlplane.embedded.services import EmbeddedServices

    with _options_named(), stop_on_signals() as stop:
        services = EmbeddedServices(invocation.data_dir, kafka_port=kafka_port, redis_port=redis_port, brokers=brokers)
        click.echo(f"starting Kafka and Valkey in {services.data_dir} ...", err=True)
        with telling(lambda elapsed_s: start_progress(services, elapsed_s)):
            services.start()
        try:
            click.echo(f"Kafka:  {services.bootstrap_servers}")
            click.echo(f"Redis:  {services.redis_url}")
            if len(services.brokers) > 1:
                for node_id, broker in services.brokers.items():
                    click.echo(f"Broker {node_id}: {broker.bootstrap_servers}, process {broker.pid}")
            if 1 < len(services.brokers) < CONTROLLERS:
                click.echo(_TOO_FEW, err=True)
            parts = "Kafka" if len(services.brokers) == 1 else f"the {len(services.brokers)} brokers"
            click.echo(
                f"Ready. Ctrl-C ends {parts} and Valkey; controllers and nodes that you have started go on. "
                "The data stays.",
                err=True,
            )
            while not stop.wait(_LOOK_INTERVAL_S):
                services.look_after(lambda line: click.echo(line, err=True))
            click.echo("stopping ...", err=True)
        finally:
            services.stop()


def start_progress(services: "EmbeddedServices", elapsed_s: float) -> str:
    """What of a start has happened: each broker prepares its folder, starts, and answers after some seconds."""
    brokers = services.brokers.values()
    if len(brokers) == 1:
        return f"Kafka does not answer yet ({elapsed_s:.0f} s)"
    started = sum(broker.pid is not None for broker in brokers)
    answering = sum(broker.answered for broker in brokers)
    return f"{started} of {len(brokers)} brokers started, {answering} of {len(brokers)} answering ({elapsed_s:.0f} s)"


@contextmanager
def _options_named() -> Iterator[None]:
    """Name the option that helps in the messages of errors that an option can mend."""
    from controlplane.embedded.server import PortTakenError
    from controlplane.embedded.services import FolderRefusedError

    try:
        yield
    except PortTakenError as error:
        option = "--redis-port" if error.server == "valkey" else "--kafka-port"
        raise PrerequisiteError(f"{error}: stop that one, or choose another port with {option}") from error
    except FolderRefusedError as error:
        raise PrerequisiteError(f"{error} with --data-dir") from error
    except ConfigurationError as error:
        raise ConfigurationError(f"{error} (--kafka-port)") from error
