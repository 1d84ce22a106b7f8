"""The slot policy: decides which nodes hold and lead each slot. Users can write their own.

Inherit from :class:`SlotPolicy` and override what differs. A policy is asked whenever members or standing orders have
changed. If it has an ``interval_ms``, it is also asked after each such interval without a decision. A policy is pure:
equal requests get equal answers. What it has to remember between answers is written into the decision and comes back as
``memory``.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, TypeAlias

from controlplane.core.cluster.policy import ClusterPolicy
from controlplane.core.slots.certificate import Certificate
from controlplane.core.slots.minimal.contract import PlacementNode
from controlplane.core.slots.pins import Exclusion, Pin
from controlplane.core.slots.reports import SlotReport
from controlplane.core.slots.survivors import stranded_slots
from controlplane.core.slots.sync import is_stable
from controlplane.core.slots.table import Slot, without_nodes
from controlplane.core.values.identifiers import Epoch, NodeId, SlotId
from controlplane.core.values.replica_status import ReplicaStatus


@dataclass(frozen=True, slots=True)
class SlotRequest:
    """The input of a slot policy.

    Attributes:
        slots: the current table, one row for each slot, by slot id.
        nodes: the living data nodes, by name. A node of weight 0 is to hold nothing (draining, or excluded).
        renewed: nodes with a process that is newer than the table; they hold nothing of what it says.
        policy: the cluster's policy, with this slot policy's options.
        epoch: the epoch of the planned table; a slot whose leader changes takes it as its leader epoch.
        now_ms: log time.
        reports: the last slot report of each living node; a node that never sent one is missing.
        pins: replicas that operators require.
        exclusions: replicas that operators forbid.
        memory: what this policy has remembered, by name.
        refresh: whether an operator asks for an immediate plan, without any waiting.
    """

    slots: tuple[Slot, ...]
    nodes: tuple[PlacementNode, ...]
    renewed: frozenset[NodeId]
    policy: ClusterPolicy
    epoch: Epoch
    now_ms: int
    reports: Mapping[NodeId, SlotReport] = field(default_factory=dict)
    pins: tuple[Pin, ...] = ()
    exclusions: tuple[Exclusion, ...] = ()
    memory: Mapping[str, str] = field(default_factory=dict)
    refresh: bool = False

    @property
    def held(self) -> tuple[Slot, ...]:
        """The table without the replicas that renewed nodes no longer hold."""
        return without_nodes(self.slots, self.renewed)

    def table_after(self, answer: "SlotAnswer") -> tuple[Slot, ...]:
        """The whole table of an answer."""
        answered = {slot.slot_id: slot for slot in answer.slots}
        return tuple(answered.get(held.slot_id, held) for held in self.held)

    def as_published(self) -> tuple[Slot, ...]:
        """The rows for an answer that leaves the table as it was, including its renewed nodes."""
        return tuple(slot for slot, held in zip(self.slots, self.held, strict=True) if slot != held)

    @property
    def living(self) -> frozenset[NodeId]:
        """The nodes that may be in a row: all living ones, even those that are to hold nothing as soon as possible."""
        return frozenset(node.node_id for node in self.nodes)

    @property
    def survivors(self) -> frozenset[NodeId]:
        """The nodes that hold what the table says: those that live and are not renewed."""
        return self.living - self.renewed

    @property
    def owner_ids(self) -> tuple[NodeId, ...]:
        """The owner nodes, by name; see :attr:`controlplane.core.membership.image.MembershipImage.owner_ids`."""
        return tuple(node.node_id for node in self.nodes if node.weight > 0)

    @property
    def stranded(self) -> tuple[Slot, ...]:
        """The rows of living nodes that no other node may be given: their holders have to keep them."""
        return stranded_slots(self.held, self.living, self.owner_ids, self.exclusions)

    @property
    def ready(self) -> frozenset[tuple[SlotId, NodeId]]:
        """The replicas whose holders report that they have all the data."""
        return frozenset(
            (status.slot_id, node_id)
            for node_id, report in self.reports.items()
            for status in report.statuses
            if status.status is ReplicaStatus.HEALTHY
        )


@dataclass(frozen=True, slots=True)
class SlotAnswer:
    """The output of a slot policy.

    Attributes:
        slots: the rows that change, by slot id; all other rows stay as in ``SlotRequest.held``.
        certificate: the proof of least movement, from a policy in :data:`CERTIFYING_POLICIES` only.
        remembered: changes to the policy's memory, by name; None removes an entry.
        evidence: what the policy did or left alone, for readers; a decision records it as a cause. Empty if there is
            nothing to report.
        waits: nothing changes, and the next reports of nodes might change that; only for a policy with an interval.
        protects: the table is left as it is because too few nodes live; ``table status`` shows it.
    """

    slots: tuple[Slot, ...]
    certificate: Certificate | None = None
    remembered: Mapping[str, str | None] = field(default_factory=dict)
    evidence: str = ""
    waits: bool = False
    protects: bool = False


@dataclass(frozen=True, slots=True)
class SlotBalance:
    """Whether no node leads, or follows, too many or too few slots."""

    leaders: bool
    followers: bool


class OrderKind(Enum):
    """The kinds of orders that a slot policy may obey or ignore. The value is the word for the kind in answers.

    Drains and exclusions of whole nodes are not included, because :attr:`SlotRequest.owner_ids` gives them to every
    policy.
    """

    PINS = "pins"
    SLOT_EXCLUSIONS = "exclusions of slots"
    WEIGHTS = "weights"
    ZONES = "zones"


class SlotPolicy(ABC):
    """Decides which nodes hold and lead each slot.

    A policy must have a ``name``, ``check_options`` and ``plan``. The defaults of all other members suit a policy that
    makes one plan and leaves the pace to the operator.

    Attributes:
        name: the name by which an operator chooses it: ``--policy slot_policy=NAME``.
        interval_ms: log time without a decision after which it is asked again; None if only changes matter. A policy
            that changed nothing is asked again about the same state only if its answer ``waits``.
        dead_may_hold: whether rows may be left as they were, with dead nodes in them; they are left so if the policy
            refuses to answer. A dead node is never added to a row. A row whose leader is renewed gets the table's epoch
            as its leader epoch.
        paces_itself: whether its answers are carried out at once, regardless of the pace that the operator chose.
        supported_orders: the kinds of orders that it obeys; answers to intents say that all others are ignored.
    """

    name: str
    interval_ms: int | None = None
    dead_may_hold: bool = False
    paces_itself: bool = False
    supported_orders: frozenset[OrderKind] = frozenset()

    @abstractmethod
    def check_options(self, options: Mapping[str, str]) -> None:
        """Check the options of the policy.

        Raises:
            ConfigurationError: an option is unknown or invalid; the message names it and says what it may be.
        """

    @abstractmethod
    def plan(self, request: SlotRequest) -> SlotAnswer:
        """The table for a request.

        Raises:
            PlacementRefusedError: there is no valid table; the sentence says why.
        """

    def check_table(self, slots: tuple[Slot, ...], policy: ClusterPolicy) -> None:  # noqa: B027 - most can begin with any table
        """Check that the policy can continue from a table under a cluster's policy.

        Raises:
            ConfigurationError: it cannot; the message says what to do first.
        """

    def balance(self, request: SlotRequest, answer: SlotAnswer) -> SlotBalance:
        """Whether the current table is within the policy's bounds: by default, whether its plan leaves it unchanged.

        Args:
            request: the request.
            answer: the policy's answer, or what replaced it after a refusal.
        """
        pairs = [(request.slots[slot.slot_id], slot) for slot in answer.slots]
        return SlotBalance(
            leaders=all(old.leader == new.leader for old, new in pairs),
            followers=all({*old.replicas} == {*new.replicas} for old, new in pairs),
        )

    def remember_leader_epochs(self, slots: Sequence[Slot], memory: Mapping[str, str]) -> Mapping[str, str | None]:  # noqa: ARG002 - most need not remember them
        """The changes to the memory when leader epochs of rows rise that this policy left as they were.

        They rise when a new process of the leader is admitted, also while reconciliation is paused.

        Args:
            slots: these rows, with their former leader epochs.
            memory: the policy's memory before its answer.

        Returns:
            The changes by name; None removes an entry.
        """
        return {}

    def is_in_sync(self, request: SlotRequest) -> bool:
        """Whether all slot leaders report that they have their data, and all followers a recent sync."""
        return is_stable(request.slots, request.reports)


SlotPolicies: TypeAlias = Mapping[str, SlotPolicy]
"""The slot policies that a controller knows, by name."""


def supports(policies: SlotPolicies, name: str, kind: OrderKind) -> bool:
    """Whether the slot policy with this name obeys such orders; True for an unknown policy."""
    policy = policies.get(name)
    return policy is None or kind in policy.supported_orders


CERTIFYING_POLICIES: Final = frozenset({"minimal"})
"""The slot policies that prove every plan. The certificates of other policies could not be verified."""
