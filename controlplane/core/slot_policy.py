"""The slot policy: the part that decides who holds and leads which slot, and that a user can write himself.

A policy is asked whenever the members or an operator's wishes have changed, and, if it wants to be, again after each
``interval_ms`` without a decision. It is pure: equal requests get equal answers. What it has to remember from one
answer to the next is written into the decision and comes back as ``memory``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias, runtime_checkable

from controlplane.core.decision import Certificate
from controlplane.core.identifiers import Epoch, NodeId, SlotId
from controlplane.core.orders import Exclusion, Pin
from controlplane.core.placement.contract import PlacementNode
from controlplane.core.policy import Policy
from controlplane.core.records import ReplicaStatus, SlotReport
from controlplane.core.slot_table import Slot, without_nodes


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
    policy: Policy
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
        certificate: the proof that nothing moved without need, from a policy that gives one.
        remembered: what is to be remembered from now on, by name; None forgets.
        deed: what it did or left alone, for people; a decision gives it as a cause. Empty if there is nothing to say.
        waits: nothing changes, and what nodes report next might change that; only for a policy with an interval.
    """

    slots: tuple[Slot, ...]
    certificate: Certificate | None = None
    remembered: Mapping[str, str | None] = field(default_factory=dict)
    deed: str = ""
    waits: bool = False


class SlotPolicy(Protocol):
    """Decides who holds and leads which slot."""

    @property
    def name(self) -> str:
        """How an operator chooses it: ``--policy slot_policy=NAME``."""
        ...

    @property
    def interval_ms(self) -> int | None:
        """Log time without a decision after which it wants to be asked again; None if only changes matter to it.

        Whoever answers that nothing changes is asked about that state again only if the answer says that it ``waits``.
        """
        ...

    def check_options(self, options: Mapping[str, str]) -> None:
        """Refuse options that it does not know or cannot use.

        Raises:
            ConfigurationError: naming the option and what it may be.
        """
        ...

    def plan(self, request: SlotRequest) -> SlotAnswer:
        """The table for these nodes."""
        ...


@runtime_checkable
class LeavesTheDead(Protocol):
    """A slot policy that may say so of itself: the table stays as it was, with everybody who is gone still in it."""

    @property
    def dead_may_hold(self) -> bool:
        """Whether rows may be left as they were, and are when the policy refuses to answer."""
        ...


def may_leave_the_dead(policy: SlotPolicy) -> bool:
    """Whether nodes that do not live any more may stay in this policy's table; nobody is put into it dead."""
    return isinstance(policy, LeavesTheDead) and policy.dead_may_hold


@dataclass(frozen=True, slots=True)
class SlotBalance:
    """Whether no node leads, or follows, too many or too few slots."""

    leaders: bool
    followers: bool


@runtime_checkable
class JudgesBalance(Protocol):
    """A slot policy with bounds of its own: where counts are within them, nothing has to move."""

    def balance(self, request: SlotRequest) -> SlotBalance:
        """Whether the table as it stands is within the bounds."""
        ...


SlotPolicies: TypeAlias = Mapping[str, SlotPolicy]
"""The slot policies that a controller knows, by name."""
