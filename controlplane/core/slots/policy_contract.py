"""The slot policy: the part that decides who holds and leads which slot, and that a user can write himself.

Inherit :class:`SlotPolicy` and override what your policy has to say otherwise. It is asked whenever the members or the
standing orders of operators have changed, and, if it wants to be, again after each ``interval_ms`` without a decision.
It is pure: equal requests get equal answers. What it has to remember from one answer to the next is written into the
decision and comes back as ``memory``.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
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
    """What a slot policy is asked.

    Attributes:
        slots: the table as it stands, one row for each slot, by slot id.
        nodes: the data nodes that live, by name. One of weight 0 is to hold nothing (draining, or excluded).
        renewed: nodes whose process is a new one since the table was decided: they hold nothing of what it says.
        policy: the cluster's policy, with this slot policy's options.
        epoch: the epoch of the table that is planned; a slot whose leader changes takes it as its leader epoch.
        now_ms: log time.
        reports: what each living node last said of its slots; a node that never spoke of any is missing.
        pins: replicas that an operator wants to be there.
        exclusions: replicas that an operator wants not to be there.
        memory: what this policy has remembered, by name.
        refresh: an operator asks for a plan at once, whatever would otherwise be waited for.
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
        """The table without what the renewed nodes no longer hold."""
        return without_nodes(self.slots, self.renewed)

    def as_published(self) -> tuple[Slot, ...]:
        """The rows with which an answer leaves the table as it was, its renewed nodes included."""
        return tuple(slot for slot, held in zip(self.slots, self.held, strict=True) if slot != held)

    @property
    def living(self) -> frozenset[NodeId]:
        """Who may be in a row: every node that lives, also one that is to hold nothing as soon as that can be."""
        return frozenset(node.node_id for node in self.nodes)

    @property
    def survivors(self) -> frozenset[NodeId]:
        """Who holds what the table says: the nodes that live and whose process the table knows."""
        return self.living - self.renewed

    @property
    def owner_ids(self) -> tuple[NodeId, ...]:
        """Who is to hold slots, by name; see :attr:`controlplane.core.membership.image.MembershipImage.owner_ids`."""
        return tuple(node.node_id for node in self.nodes if node.weight > 0)

    @property
    def stranded(self) -> tuple[Slot, ...]:
        """The rows that living nodes hold and that nobody else may be given: who holds them has to keep them."""
        return stranded_slots(self.held, self.living, self.owner_ids, self.exclusions)

    @property
    def ready(self) -> frozenset[tuple[SlotId, NodeId]]:
        """The replicas of which their holders say that they have all the data."""
        return frozenset(
            (status.slot_id, node_id)
            for node_id, report in self.reports.items()
            for status in report.statuses
            if status.status is ReplicaStatus.HEALTHY
        )


@dataclass(frozen=True, slots=True)
class SlotAnswer:
    """What a slot policy decides.

    Attributes:
        slots: the rows that change, by slot id; rows that are not here stay as ``SlotRequest.held`` has them.
        certificate: the proof that nothing moved without need, from a policy of :data:`CERTIFYING_POLICIES` only.
        remembered: what is to be remembered from now on, by name; None forgets.
        deed: what it did or left alone, for people; a decision gives it as a cause. Empty if there is nothing to say.
        waits: nothing changes, and what nodes report next might change that; only for a policy with an interval.
        protects: the table is left as it is because so few nodes live; ``table status`` says so.
    """

    slots: tuple[Slot, ...]
    certificate: Certificate | None = None
    remembered: Mapping[str, str | None] = field(default_factory=dict)
    deed: str = ""
    waits: bool = False
    protects: bool = False


@dataclass(frozen=True, slots=True)
class SlotBalance:
    """Whether no node leads, or follows, too many or too few slots."""

    leaders: bool
    followers: bool


class OrderKind(Enum):
    """What operators may order that a slot policy looks at or not, by the word for it in answers.

    Drains and exclusions of whole nodes are not here: :attr:`SlotRequest.owner_ids` says them to every policy.
    """

    PINS = "pins"
    SLOT_EXCLUSIONS = "exclusions of slots"
    WEIGHTS = "weights"
    ZONES = "zones"


class SlotPolicy(ABC):
    """Decides who holds and leads which slot.

    A policy has to have a ``name``, ``check_options`` and ``plan``; everything else is right as it is for a policy that
    makes one plan and leaves its pace to the operator.

    Attributes:
        name: how an operator chooses it: ``--policy slot_policy=NAME``.
        interval_ms: log time without a decision after which it wants to be asked again; None if only changes matter to
            it. Whoever answers that nothing changes is asked about that state again only if the answer says that it
            ``waits``.
        dead_may_hold: rows may be left as they were, with those who are gone still in them, and are when the policy
            refuses to answer; nobody is put into a row dead.
        paces_itself: its answers are carried out at once, whatever pace the operator has chosen.
        supported_orders: the kinds of orders that it looks at; the answers to all others say that they do not count.
    """

    name: str
    interval_ms: int | None = None
    dead_may_hold: bool = False
    paces_itself: bool = False
    supported_orders: frozenset[OrderKind] = frozenset()

    @abstractmethod
    def check_options(self, options: Mapping[str, str]) -> None:
        """Refuse options that it does not know or cannot use.

        Raises:
            ConfigurationError: naming the option and what it may be.
        """

    @abstractmethod
    def plan(self, request: SlotRequest) -> SlotAnswer:
        """The table for these nodes.

        Raises:
            PlacementRefusedError: there is no such table; the sentence says why.
        """

    def check_table(self, slots: tuple[Slot, ...], policy: ClusterPolicy) -> None:  # noqa: B027 - most can begin with any table
        """Refuse a table from which it could not go on under a policy.

        Raises:
            ConfigurationError: saying what to do first.
        """

    def balance(self, request: SlotRequest, answer: SlotAnswer) -> SlotBalance:
        """Whether the table as it stands is within the policy's bounds: balanced is what its plan leaves where it is.

        Args:
            request: what it was asked.
            answer: what it answered, as far as it was believed.
        """
        pairs = [(request.slots[slot.slot_id], slot) for slot in answer.slots]
        return SlotBalance(
            leaders=all(old.leader == new.leader for old, new in pairs),
            followers=all({*old.replicas} == {*new.replicas} for old, new in pairs),
        )

    def is_in_sync(self, request: SlotRequest) -> bool:
        """Whether all slot leaders say that they have their data, and all followers that they were in sync lately."""
        return is_stable(request.slots, request.reports)


SlotPolicies: TypeAlias = Mapping[str, SlotPolicy]
"""The slot policies that a controller knows, by name."""


def supports(policies: SlotPolicies, name: str, kind: OrderKind) -> bool:
    """Whether the slot policy of that name looks at such orders; one that is not known here is held to do so."""
    policy = policies.get(name)
    return policy is None or kind in policy.supported_orders


CERTIFYING_POLICIES: Final = frozenset({"minimal"})
"""The slot policies that prove every plan. Nobody could check a proof of another one, whose plans have to be legal."""
