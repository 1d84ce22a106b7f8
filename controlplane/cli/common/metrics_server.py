"""The ``--metrics-port`` option of long-running commands: Prometheus reads the process's metrics there."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from controlplane.config import MAX_PORT
from controlplane.errors import PrerequisiteError

_Command = TypeVar("_Command", bound=Callable[..., Any])


def metrics_port_option(command: _Command) -> _Command:
    """The ``--metrics-port`` option."""
    return click.option(
        "--metrics-port",
        type=click.IntRange(1, MAX_PORT),
        help="Serve Prometheus metrics over HTTP on this port.",
    )(command)


def serve_metrics(port: int | None) -> None:
    """Serve this process's metrics until it ends; without a port, do nothing.

    Raises:
        PrerequisiteError: the port is taken.
    """
    if port is None:
        return
    from prometheus_client import start_http_server

    try:
        start_http_server(port)
    except OSError as error:
        raise PrerequisiteError(f"--metrics-port {port} cannot be opened: {error}; take another port") from error
