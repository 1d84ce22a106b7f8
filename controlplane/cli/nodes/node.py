"""``controlplane node``: a member without a service, which prints its assignments."""

import socket
from collections.abc import Sequence

import click
import structlog

from controlplane.cli.common.failures import ExitStatus
from controlplane.cli.common.invocation import Invocation, pass_invocation
from controlplane.cli.common.metrics_server import metrics_port_option, serve_metrics
from controlplane.cli.common.reading import reading
from controlplane.cli.common.stopping import stop_on_signals
from controlplane.config import ROUTING_TABLE
from controlplane.core.bundles.bundle import Bundle
from controlplane.core.membership.node import NodeRole
from controlplane.core.operations.slot_numbers import counted, leading_ranges
from controlplane.errors import ConfigurationError, SupersededError
from controlplane.garbage_collection import collect_seldom
from controlplane.node import FencingToken, NodeAgent, NodeCallbacks, SlotChanged, SlotGained, SlotLost

_CHECK_INTERVAL_S = 0.5
_MOST_RANGES = 20
"""The number of ranges of slots in a line: with very many slots, a line would otherwise have some 70 kB."""


@click.group()
def node() -> None:
    """A member without a service: it joins, sends heartbeats, and prints what it gains and loses."""


@node.command("run")
@click.option("--node-id", help="The node's id, stable over its restarts.  [default: the host's name]")
@click.option(
    "--address",
    "addresses",
    multiple=True,
    metavar="NAME=HOST:PORT",
    help="An address at which it serves, published in the table; repeatable.",
)
@click.option(
    "--role",
    type=click.Choice(NodeRole, case_sensitive=False),
    default=NodeRole.DATA,
    show_default="data",
    help="A data node owns slots and bundles, a session node only uses the table.",
)
@click.option("--zone", default="", help="Its failure domain.")
@click.option("--weight", type=click.IntRange(min=1), default=1, help="Its share of slots relative to other nodes.")
@click.option("--capacity", type=click.IntRange(min=0), default=0, help="The most replicas it may hold; 0: no limit.")
@metrics_port_option
@pass_invocation
def run(
    invocation: Invocation,
    *,
    node_id: str | None,
    addresses: tuple[str, ...],
    role: NodeRole,
    zone: str,
    weight: int,
    capacity: int,
    metrics_port: int | None,
) -> ExitStatus:
    """Join the cluster and stay until Ctrl-C or SIGTERM, then leave in order."""
    from controlplane.bootstrap.members import node_agent

    kafka = invocation.kafka
    name = socket.gethostname() if node_id is None else node_id
    named = _addresses(addresses)
    printer = _Printer()
    with stop_on_signals() as stop:
        with reading(invocation, first_topic=ROUTING_TABLE):
            pass  # a node may read no more
        serve_metrics(metrics_port)
        collect_seldom()
        agent = node_agent(
            invocation.cluster.name,
            kafka.bootstrap_servers,
            name,
            addresses=named,
            callbacks=printer,
            role=role,
            zone=zone,
            weight=weight,
            capacity=capacity,
            security=kafka.security,
        )
        printer.agent = agent
        structlog.get_logger(__name__).info("joining; Ctrl-C leaves", node=name)
        try:
            with agent:
                while not stop.wait(_CHECK_INTERVAL_S):
                    agent.check()
            agent.check()
        except SupersededError:
            return ExitStatus.FAILED  # the agent's log has told it
    return ExitStatus.DONE


class _Printer(NodeCallbacks):
    """Prints one line for each change. A slot is ready at once, because there is no data to fetch."""

    agent: NodeAgent | None = None

    def on_slots_lost(self, lost: Sequence[SlotLost]) -> None:
        """Slots that other nodes hold now."""
        self._say(lost[0].epoch, "lost", lost)

    def on_slots_gained(self, gained: Sequence[SlotGained]) -> None:
        """Slots that the node gained."""
        self._say(gained[0].epoch, "gained", gained)
        for slot in gained:
            if self.agent is not None:
                self.agent.slot_ready(slot.slot_id)

    def on_slots_changed(self, changed: Sequence[SlotChanged]) -> None:
        """Slots that the node keeps and that have another slot leader."""
        self._say(changed[0].epoch, "keeps", changed)

    def on_bundle_preparing(self, bundle: Bundle) -> None:
        """A bundle that another node releases for this one."""
        click.echo(f"prepares bundle {bundle.bundle_id}")

    def on_bundle_assigned(self, bundle: Bundle, token: FencingToken) -> None:
        """A bundle that came; it is open at once, because there is nothing to open."""
        click.echo(f"opens bundle {bundle.bundle_id} (term {token.term}, epoch {token.since_epoch})")

    def on_bundle_releasing(self, bundle: Bundle) -> None:
        """A bundle that the node has to release."""
        click.echo(f"releases bundle {bundle.bundle_id}")

    def on_bundle_released(self, bundle_id: str, bundle: Bundle | None) -> None:
        """A bundle that another node owns now, or that has ended."""
        owner = None if bundle is None else bundle.next_owner or bundle.owner
        click.echo(f"lost bundle {bundle_id}{'' if owner is None else f' to {owner}'}")

    def on_bundle_split(self, parent: Bundle, children: Sequence[Bundle]) -> None:
        """A bundle in whose place there are others."""
        click.echo(f"bundle {parent.bundle_id} is split into {', '.join(child.bundle_id for child in children)}")

    def _say(self, epoch: int, what: str, slots: Sequence[SlotLost | SlotGained | SlotChanged]) -> None:
        parts: dict[str, list[int]] = {"leads": [], "follows": []}
        for slot in slots:
            leads = slot.led if isinstance(slot, SlotLost) else slot.leads
            parts["leads" if leads else "follows"].append(slot.slot_id)
        words = ", ".join(f"{part} {leading_ranges(ids, _MOST_RANGES)}" for part, ids in parts.items() if ids)
        click.echo(f"epoch {epoch}: {what} {counted(len(slots), 'slot')} ({words})")


def _addresses(texts: Sequence[str]) -> dict[str, tuple[str, int]]:
    found = {}
    for text in texts:
        name, equals, place = text.partition("=")
        host, colon, port = place.rpartition(":")
        if not (equals and colon and port.isdigit()):
            raise ConfigurationError(f"--address {text!r}: write NAME=HOST:PORT")
        if name in found:
            raise ConfigurationError(f"--address {text!r}: {name!r} is given twice; take a name of its own for each")
        found[name] = (host, int(port))
    return found
