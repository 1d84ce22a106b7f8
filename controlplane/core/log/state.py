"""The state: the fold of the decision log and nothing else."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from controlplane.core.bundles.bundle import Bundle, Namespace
from controlplane.core.cluster.policy import FormerSilenceLimit, Policy
from controlplane.core.membership.node import Node
from controlplane.core.membership.standing_orders import NO_ORDER, StandingOrder, as_ordered
from controlplane.core.routing.rows import add_hashes, format_digest, row_hash
from controlplane.core.slots.pins import Exclusion, Pin
from controlplane.core.slots.plans import Departure, PlanInFlight
from controlplane.core.slots.table import Slot
from controlplane.core.values.canonical import canonical_bytes, digest_hex
from controlplane.core.values.identifiers import (
    ControllerId,
    Epoch,
    IntentId,
    NamespaceName,
    NodeId,
    Seq,
    SlotId,
    Term,
)

ANSWERED_INTENTS_KEPT: Final = 10_000
"""How many intent ids are remembered so that none counts twice; the topic keeps far fewer than this in practice."""


_NO_TERM: Final = Term(0)


_NO_SEQ: Final = Seq(0)


_NO_EPOCH: Final = Epoch(0)


@dataclass(frozen=True, slots=True)
class State:
    """What all decisions up to ``seq`` say. Change it with ``apply`` only.

    Attributes:
        log_id: random name of this log; empty before the first decision.
        term: of the last decision.
        leader: the controller that opened the term.
        seq: of the last decision.
        epoch: of the routing table.
        feature_level: the level of the log.
        policy: how the cluster decides.
        decided_at_ms: log time of the last decision.
        last_digest: digest of the last decision, which the next one repeats.
        positions: next offset per input partition, keyed as ``heartbeats[3]``.
        nodes: members by name, those that left included (for their incarnation).
        slots: the slot table, index = slot id.
        namespaces: by name.
        bundles: by bundle id.
        policy_memory: what the slot policy has remembered, by name; another slot policy begins without it.
        plan: the plan that is being carried out, if rows of one are left.
        planned_rows: its rows that are left, ascending by slot.
        departures: what living nodes have given up lately, ascending by slot and node.
        evictions_frozen: self-preservation holds: nobody is fenced for silence.
        orders: operators' standing words on nodes, by node name; names that never joined included, empty ones not.
        pins: replicas that have to be there, ascending by slot and node, one for each pair.
        exclusions: replicas that must not be there, ascending by slot and node.
        paused: reconciliation is paused: no slot is planned.
        former_silence_limit: a longer limit that still fences, after the policy's was shortened.
        answered_intents: ids of intents that were answered, oldest first, bounded.
        entries_digest: sum of the shares of nodes, slots, namespaces, bundles, memory, planned rows, departures,
            orders, pins and exclusions; kept up to date by ``apply``.
    """

    log_id: str = ""
    term: Term = _NO_TERM
    leader: ControllerId = ""
    seq: Seq = _NO_SEQ
    epoch: Epoch = _NO_EPOCH
    feature_level: int = 0
    policy: Policy = field(default_factory=Policy)
    decided_at_ms: int = 0
    last_digest: str = ""
    positions: Mapping[str, int] = field(default_factory=dict)
    nodes: Mapping[NodeId, Node] = field(default_factory=dict)
    slots: tuple[Slot, ...] = ()
    namespaces: Mapping[NamespaceName, Namespace] = field(default_factory=dict)
    bundles: Mapping[str, Bundle] = field(default_factory=dict)
    policy_memory: Mapping[str, str] = field(default_factory=dict)
    plan: PlanInFlight | None = None
    planned_rows: tuple[Slot, ...] = ()
    departures: tuple[Departure, ...] = ()
    evictions_frozen: bool = False
    orders: Mapping[NodeId, StandingOrder] = field(default_factory=dict)
    pins: tuple[Pin, ...] = ()
    exclusions: tuple[Exclusion, ...] = ()
    paused: bool = False
    former_silence_limit: FormerSilenceLimit | None = None
    answered_intents: tuple[IntentId, ...] = ()
    entries_digest: int = 0

    def digest(self) -> str:
        """64 hexadecimal digits over the whole state, at a cost that does not depend on the number of entries."""
        return digest_hex(self.header())

    def header(self) -> dict[str, object]:
        """What the digest is over: every field by name, and the digest of the entries in place of these.

        ``last_digest`` is left out: it is the digest of a decision that carries this one's.
        """
        return {
            "log_id": self.log_id,
            "term": self.term,
            "leader": self.leader,
            "seq": self.seq,
            "epoch": self.epoch,
            "feature_level": self.feature_level,
            "policy": self.policy,
            "decided_at_ms": self.decided_at_ms,
            "positions": self.positions,
            "plan": self.plan,
            "evictions_frozen": self.evictions_frozen,
            "paused": self.paused,
            "former_silence_limit": self.former_silence_limit,
            "answered_intents": self.answered_intents,
            "entries": format_digest(self.entries_digest),
        }

    @property
    def planned(self) -> dict[SlotId, Slot]:
        """The rows that are left of the plan in flight, by slot."""
        return {slot.slot_id: slot for slot in self.planned_rows}

    @property
    def silence_limit_ms(self) -> int:
        """Log time without a heartbeat after which a node is fenced now."""
        former = self.former_silence_limit
        return max(self.policy.silence_limit_ms, former.limit_ms if former else 0)

    def order(self, node_id: NodeId) -> StandingOrder:
        """What operators have said about a node."""
        return self.orders.get(node_id, NO_ORDER)

    def as_ordered(self, node: Node) -> Node:
        """The node with the weight and the zone that count, whoever said them."""
        return as_ordered(node, self.order(node.node_id))

    @property
    def data_nodes(self) -> tuple[Node, ...]:
        """The nodes with which slots and bundles may stay, by name."""
        return tuple(node for _, node in sorted(self.nodes.items()) if node.may_hold)

    @property
    def placing_nodes(self) -> tuple[Node, ...]:
        """The nodes to which slots and bundles may be given, by name: those that are active, and not excluded."""
        return tuple(
            node for node_id, node in sorted(self.nodes.items()) if node.places and not self.order(node_id).excluded
        )

    def can_relieve(self, node_id: NodeId) -> bool:
        """Whether there is another node to which what this one holds may be given."""
        return any(node.node_id != node_id for node in self.placing_nodes)

    @property
    def owner_ids(self) -> frozenset[NodeId]:
        """Who is to own slots and bundles: the nodes to which they may be given.

        If there are none, the draining ones keep what they hold rather than leave it to nobody, and if there are none
        of those either, the excluded ones do.
        """
        living = self.data_nodes
        wanted = [node for node in living if not self.order(node.node_id).excluded]
        return frozenset(node.node_id for node in self.placing_nodes or wanted or living)


Entry: TypeAlias = Node | Slot | Namespace | Bundle | StandingOrder | Pin | Exclusion | Departure | str
"""What a state has many of."""


def memory_key(name: str) -> str:
    """The key of something that the slot policy remembers."""
    return f"memory/{name}"


def planned_key(slot_id: SlotId) -> str:
    """The key of a row of the plan in flight."""
    return f"planned/{slot_id}"


def departure_key(departure: Departure) -> str:
    """The key of what a node has given up."""
    return f"departure/{departure.slot_id}/{departure.node_id}"


def entry_share(key: str, entry: Entry) -> int:
    """What one entry adds to ``entries_digest``; ``key`` names its kind and id."""
    return row_hash(key.encode(), canonical_bytes(entry))


def pair_share(kind: str, entry: Pin | Exclusion) -> int:
    """The same for what operators ordered of a slot and a node."""
    return entry_share(f"{kind}/{entry.slot_id}/{entry.node_id}", entry)


def entries_digest(state: State) -> int:
    """The digest of all entries computed from nothing: what ``apply`` has to agree with."""
    total = 0
    for node_id, node in state.nodes.items():
        total = add_hashes(total, entry_share(f"node/{node_id}", node))
    for slot in state.slots:
        total = add_hashes(total, entry_share(f"slot/{slot.slot_id}", slot))
    for name, namespace in state.namespaces.items():
        total = add_hashes(total, entry_share(f"namespace/{name}", namespace))
    for bundle_id, bundle in state.bundles.items():
        total = add_hashes(total, entry_share(f"bundle/{bundle_id}", bundle))
    for name, value in state.policy_memory.items():
        total = add_hashes(total, entry_share(memory_key(name), value))
    for slot in state.planned_rows:
        total = add_hashes(total, entry_share(planned_key(slot.slot_id), slot))
    for departure in state.departures:
        total = add_hashes(total, entry_share(departure_key(departure), departure))
    for node_id, order in state.orders.items():
        total = add_hashes(total, entry_share(f"order/{node_id}", order))
    for pin in state.pins:
        total = add_hashes(total, pair_share("pin", pin))
    for exclusion in state.exclusions:
        total = add_hashes(total, pair_share("exclusion", exclusion))
    return total
