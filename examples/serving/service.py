"""A service as a member of the cluster, and its process: from the start to the end of a drain."""

import argparse
import logging
import os
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

import structlog

from controlplane import node_agent
from controlplane.node import NodeAgent, NodeCallbacks, NodeLoad, SessionState
from examples.serving.command_line import parser_of, security_in
from examples.serving.protocol import Place

_DRAIN_MS: Final = 20_000
_LINGER_S: Final = 2.0
"""How long requests are answered when the node has left: nodes may still be fetching data, and clients are told whom to
ask."""


class Service(NodeCallbacks):
    """What a process serves. Its agent says which slots and bundles.

    Attributes:
        version: of the software, for the operator.
        addresses: where it listens, by name. It does so before it is a member.
        agent: from :meth:`join` on.
    """

    version = ""
    agent: NodeAgent

    @property
    def addresses(self) -> Mapping[str, Place]:
        """See the class."""
        raise NotImplementedError

    def join(self, agent: NodeAgent) -> None:
        """Take the agent, which is not started yet."""
        self.agent = agent

    def load(self) -> NodeLoad:
        """The load since the last call."""
        raise NotImplementedError

    def start(self) -> None:
        """Start what runs beside requests and callbacks."""

    def close(self) -> None:
        """Answer no more requests."""
        raise NotImplementedError


def give_agent(service: Service, make_agent: Callable[..., NodeAgent]) -> None:
    """Give a service its agent.

    Args:
        service: has none yet.
        make_agent: ``controlplane.node_agent`` with everything that is not given here.
    """
    agent = make_agent(
        addresses=service.addresses, callbacks=service, load_source=service.load, version=service.version
    )
    service.join(agent)


def run(service: Service) -> SessionState:
    """Serve until SIGTERM or SIGINT, then hand everything over and leave. Also ends if another process replaces this.

    Returns:
        ``LEFT`` or ``SUPERSEDED``.
    """
    service.start()
    service.agent.start()
    structlog.get_logger().info("service starts", addresses=dict(service.addresses))
    ended_as = service.agent.run_until_signal(timeout_ms=_DRAIN_MS)
    time.sleep(_LINGER_S)
    service.close()
    return ended_as


def service_parser(description: str) -> argparse.ArgumentParser:
    """A parser of the options that every service has."""
    parser = parser_of(description)
    parser.add_argument("--node-id", required=True, help="its name in the cluster, the same after a restart")
    parser.add_argument("--host", default="127.0.0.1", help="where it listens; published to others as given")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--load-interval-s", type=float, default=5.0, help="interval of load reports")
    return parser


def serve(service: Service, options: argparse.Namespace, run: Callable[[Service], SessionState] = run) -> int:
    """Make a service with these options a member, and run it.

    Returns:
        the exit status of the process: 1 if another one has replaced it.
    """
    threading.excepthook = _end_process
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.INFO))
    make_agent = partial(
        node_agent,
        options.cluster,
        options.bootstrap_servers,
        options.node_id,
        load_interval_ms=round(options.load_interval_s * 1_000),
        security=security_in(options.security),
    )
    give_agent(service, make_agent)
    return 0 if run(service) is SessionState.LEFT else 1


def _end_process(failed: threading.ExceptHookArgs) -> None:
    """End the process after an error in any thread, because the cluster replaces only a node that has ended."""
    structlog.get_logger().error("thread_failed", exc_info=(failed.exc_type, failed.exc_value, failed.exc_traceback))
    os._exit(1)
