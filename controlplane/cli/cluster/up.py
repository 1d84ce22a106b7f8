"""``controlplane up``: a real Kafka and a real Valkey on this machine, until Ctrl-C."""

from typing import Final

import click

from controlplane.cli.common.invocation import Invocation, pass_invocation
from controlplane.cli.common.stopping import stop_on_signals
from controlplane.config import MAX_PORT

_LOOK_INTERVAL_S: Final = 0.5
"""How often both processes are checked."""


@click.command("up")
@click.option(
    "--kafka-port",
    type=click.IntRange(1, MAX_PORT),
    help="Kafka's port.  [default: that of the last run, or a free one]",
)
@click.option(
    "--redis-port",
    type=click.IntRange(1, MAX_PORT),
    help="Valkey's port.  [default: that of the last run, or a free one]",
)
@pass_invocation
def up(invocation: Invocation, kafka_port: int | None, redis_port: int | None) -> None:
    """Start Kafka and Valkey in --data-dir and stay until Ctrl-C.

    Other commands with the same --data-dir find the addresses there. The data stays when the command ends. If one of
    the two services ends by itself, the command stops the other one and exits with 1.
    """
    from controlplane.embedded.services import EmbeddedServices

    with stop_on_signals() as stop:
        services = EmbeddedServices(invocation.data_dir, kafka_port=kafka_port, redis_port=redis_port)
        click.echo(f"starting Kafka and Valkey in {services.data_dir} ...", err=True)
        with services:
            click.echo(f"Kafka:  {services.bootstrap_servers}")
            click.echo(f"Redis:  {services.redis_url}")
            click.echo("Ready. Ctrl-C ends both; the data stays.", err=True)
            while not stop.wait(_LOOK_INTERVAL_S):
                services.refuse_dead()
            click.echo("stopping ...", err=True)
