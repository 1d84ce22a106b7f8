"""The values by which a node describes itself: once when it joins, and its load at intervals."""

from dataclasses import dataclass

from controlplane.codec.input_checks import check_payload
from controlplane.core.bundles.reports import BundleLoad, LoadReport, ResourceUsage
from controlplane.core.membership.inputs import NodeJoined
from controlplane.core.membership.node import NodeRole
from controlplane.core.slots.reports import SlotLoad
from controlplane.core.values.addresses import Address
from controlplane.core.values.identifiers import Incarnation, NodeId, ProcessId
from controlplane.errors import ConfigurationError, InvalidInputError

_UNKNOWN = ResourceUsage(-1.0, -1.0)


@dataclass(frozen=True, slots=True)
class NodeDescription:
    """The properties with which a node joins.

    Attributes:
        node_id: its name, stable over restarts.
        role: data or session.
        addresses: the addresses at which it serves, by name.
        zone: its failure domain; empty for none.
        weight: its share of slots relative to other nodes.
        capacity: the greatest number of replicas it may hold; 0 means no limit.
        version: its software's version, for display.
    """

    node_id: NodeId
    role: NodeRole = NodeRole.DATA
    addresses: tuple[Address, ...] = ()
    zone: str = ""
    weight: int = 1
    capacity: int = 0
    version: str = ""

    def __post_init__(self) -> None:
        """Refuse a description that the leader would refuse."""
        if not self.node_id:
            raise ConfigurationError("node_id is empty: give each node a name of its own")
        try:
            check_payload(join_record(self, Incarnation(1), started_at_ms=0))
        except InvalidInputError as error:
            raise ConfigurationError(f"node {self.node_id!r} cannot join as described: {error.detail}") from error


@dataclass(frozen=True, slots=True)
class NodeLoad:
    """The load since the last report; units are those of :class:`controlplane.core.bundles.reports.LoadReport`."""

    cpu: ResourceUsage = _UNKNOWN
    memory: ResourceUsage = _UNKNOWN
    direct_memory: ResourceUsage = _UNKNOWN
    bandwidth_in: ResourceUsage = _UNKNOWN
    bandwidth_out: ResourceUsage = _UNKNOWN
    bundles: tuple[BundleLoad, ...] = ()
    slots: tuple[SlotLoad, ...] = ()


def join_record(
    node: NodeDescription,
    incarnation: Incarnation,
    started_at_ms: int,
    process_id: ProcessId = "",
    *,
    hands_off: bool = False,
) -> NodeJoined:
    """The record by which a node asks to join.

    Args:
        node: the node.
        incarnation: its process life.
        started_at_ms: its wall clock at process start.
        process_id: its process; empty where controllers may not know it.
        hands_off: whether it takes part in handoffs; False likewise.
    """
    return NodeJoined(
        node_id=node.node_id,
        incarnation=incarnation,
        role=node.role,
        addresses=node.addresses,
        zone=node.zone,
        weight=node.weight,
        capacity=node.capacity,
        version=node.version,
        started_at_ms=started_at_ms,
        process_id=process_id,
        hands_off=hands_off,
    )


def load_record(
    node: NodeDescription, load: NodeLoad, incarnation: Incarnation, *, sent_at_ms: int, started_at_ms: int
) -> LoadReport:
    """The record by which a node reports its load; both times are its wall clock."""
    return LoadReport(
        node_id=node.node_id,
        incarnation=incarnation,
        sent_at_ms=sent_at_ms,
        cpu=load.cpu,
        memory=load.memory,
        direct_memory=load.direct_memory,
        bandwidth_in=load.bandwidth_in,
        bandwidth_out=load.bandwidth_out,
        addresses=node.addresses,
        version=node.version,
        started_at_ms=started_at_ms,
        bundles=load.bundles,
        slots=load.slots,
    )
