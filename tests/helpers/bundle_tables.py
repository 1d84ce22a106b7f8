"""Routing tables that have only nodes and bundles."""

from collections.abc import Iterable
from dataclasses import replace

from controlplane.core.bundles.bundle import Bundle, Namespace, equal_bundles
from controlplane.core.bundles.ownership_state import OwnershipState
from controlplane.core.cluster.policy import HashFunction
from controlplane.core.cluster.rows import TableSettings
from controlplane.core.membership.node import NodeRole, NodeStatus
from controlplane.core.membership.rows import NodeRow
from controlplane.core.routing.replica import RoutingTable
from controlplane.core.values.identifiers import Epoch, Seq, Term


def owned_bundles(namespace: str, count: int, owner: str = "n1") -> list[Bundle]:
    """A namespace of equal bundles with one owner."""
    rows = equal_bundles(namespace, count)
    return [replace(row, owner=owner, state=OwnershipState.OWNED, version=1) for row in rows]


def table_of(
    bundles: Iterable[Bundle], *, namespaces: Iterable[Namespace] = (), fenced: Iterable[str] = ()
) -> RoutingTable:
    """A table with these bundles, their namespaces and any others, and the nodes n1 to n3, of which some are fenced."""
    rows = list(bundles)
    dead = set(fenced)
    nodes = [
        NodeRow(name, 1, NodeRole.DATA, NodeStatus.FENCED if name in dead else NodeStatus.ACTIVE, (), "", 1, "")
        for name in ("n1", "n2", "n3")
    ]
    return RoutingTable(
        term=Term(1),
        epoch=Epoch(7),
        seq=Seq(7),
        log_id="log",
        settings=TableSettings(1, 2, HashFunction.CRC32C, 2_500, feature_level=3),
        slots=(),
        nodes={row.node_id: row for row in nodes},
        bundles={row.bundle_id: row for row in rows},
        namespaces={
            **{row.namespace: Namespace(row.namespace, 1) for row in rows},
            **{namespace.name: namespace for namespace in namespaces},
        },
        digest="",
    )
