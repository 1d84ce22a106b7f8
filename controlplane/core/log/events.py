"""What a decision can do to the state: one frozen value per kind of change, nothing else changes a state.

An event carries its consequences as data (the new rows, the log time), so that applying it needs no rule and no clock.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias

from controlplane.core.bundles.bundle import Bundle, Namespace
from controlplane.core.cluster.policy import FormerSilenceLimit, Policy
from controlplane.core.membership.node import Node
from controlplane.core.membership.standing_orders import StandingOrder
from controlplane.core.slots.pins import Exclusion, Pin
from controlplane.core.slots.plans import Departure
from controlplane.core.slots.table import Slot
from controlplane.core.values.canonical import LATER, union_member
from controlplane.core.values.identifiers import ControllerId, Incarnation, IntentId, NodeId, Seq, Term


@union_member
@dataclass(frozen=True, slots=True)
class ClusterCreated:
    """The first event of a log: names the log and sets the policy."""

    log_id: str
    policy: Policy


@union_member
@dataclass(frozen=True, slots=True)
class TermOpened:
    """A controller begins to lead; everything after this belongs to its term until the next one opens.

    Attributes:
        term: its number.
        controller_id: who leads.
        code_version: of the leader's software.
        feature_level: of the log, which the leader supports.
        policy: the whole policy under which the term begins.
        observed_from: the first offset of each input partition that the leader observed, keyed ``topic[partition]``;
            empty at feature level 1, which does not record it.
    """

    term: Term
    controller_id: ControllerId
    code_version: str
    feature_level: int
    policy: Policy
    observed_from: Mapping[str, int] = field(default_factory=dict, metadata=LATER)


@union_member
@dataclass(frozen=True, slots=True)
class FeatureLevelRaised:
    """From this decision on the log has another feature level; who does not support it stops here.

    Attributes:
        feature_level: the new one, greater than the one before.
    """

    feature_level: int


@union_member
@dataclass(frozen=True, slots=True)
class NodeAdmitted:
    """A node is a member from now on, new or again. ``node`` is its whole row."""

    node: Node


@union_member
@dataclass(frozen=True, slots=True)
class NodeDraining:
    """A node goes: it is relieved of what it holds. ``leaving``: it asked for that itself, and not an operator."""

    node_id: NodeId
    incarnation: Incarnation
    at_ms: int
    leaving: bool = True


@union_member
@dataclass(frozen=True, slots=True)
class NodeUndrained:
    """An operator takes a drain back: the node is active again."""

    node_id: NodeId
    incarnation: Incarnation
    at_ms: int


class FencingCause(Enum):
    """Why a node is fenced."""

    SILENCE = "silence"
    """No heartbeat for longer than the silence limit."""
    SUPERSEDED = "superseded"
    """A greater incarnation of the same node joined: the old process is gone."""


@union_member
@dataclass(frozen=True, slots=True)
class NodeFenced:
    """A node is taken for dead and loses what it held; ``silence_ms`` is the evidence."""

    node_id: NodeId
    incarnation: Incarnation
    cause: FencingCause
    silence_ms: int
    at_ms: int


@union_member
@dataclass(frozen=True, slots=True)
class NodeRemoved:
    """A node has left on its own account."""

    node_id: NodeId
    incarnation: Incarnation
    at_ms: int


@union_member
@dataclass(frozen=True, slots=True)
class NodeOrdered:
    """An operator's whole word on a node's name from now on; an empty one takes everything back."""

    node_id: NodeId
    order: StandingOrder


@union_member
@dataclass(frozen=True, slots=True)
class SlotsPinned:
    """Replicas that have to be there from now on; one of the same slot and node is replaced."""

    pins: tuple[Pin, ...]


@union_member
@dataclass(frozen=True, slots=True)
class SlotsUnpinned:
    """Pins that are taken back."""

    pins: tuple[Pin, ...]


@union_member
@dataclass(frozen=True, slots=True)
class SlotsExcluded:
    """Replicas that must not be there from now on."""

    exclusions: tuple[Exclusion, ...]


@union_member
@dataclass(frozen=True, slots=True)
class SlotsIncluded:
    """Exclusions that are taken back."""

    exclusions: tuple[Exclusion, ...]


@union_member
@dataclass(frozen=True, slots=True)
class ReconciliationPaused:
    """No slot moves from now on; only the dead are taken out of the table. ``reason`` says why."""

    reason: str


@union_member
@dataclass(frozen=True, slots=True)
class ReconciliationResumed:
    """Slots are planned again; ``reason`` says why."""

    reason: str


@union_member
@dataclass(frozen=True, slots=True)
class PolicyChanged:
    """The cluster's whole policy from now on, and the longer silence limit that still fences if it was shortened."""

    policy: Policy
    former_silence_limit: FormerSilenceLimit | None


@union_member
@dataclass(frozen=True, slots=True)
class SilenceLimitSettled:
    """Whoever may have served under a longer, former silence limit has stopped: the policy's limit fences now."""

    silence_limit_ms: int


@union_member
@dataclass(frozen=True, slots=True)
class SlotsSplit:
    """The rows that the slot table gains because each slot was split: those of the split slots, ascending by slot."""

    slots: tuple[Slot, ...]


@union_member
@dataclass(frozen=True, slots=True)
class SlotsAssigned:
    """New rows of the slot table, whole, ascending by slot."""

    slots: tuple[Slot, ...]


@dataclass(frozen=True, slots=True)
class MemoryEntry:
    """Something that a slot policy remembers, by name; a value of None forgets it."""

    name: str
    value: str | None


@union_member
@dataclass(frozen=True, slots=True)
class PolicyRemembered:
    """What the slot policy has to know again when it is asked next, as far as it changes, sorted by name."""

    entries: tuple[MemoryEntry, ...]


@union_member
@dataclass(frozen=True, slots=True)
class PlanMade:
    """What of this decision's plan is carried out later: ``rows`` as planned, ascending by slot.

    A row that is assigned is done. Leader epochs are those of the decision that assigns.
    """

    plan_id: Seq
    made_at_ms: int
    not_before_ms: int
    rows: tuple[Slot, ...]


@union_member
@dataclass(frozen=True, slots=True)
class PlanDropped:
    """What was left of a plan is not carried out any more."""

    plan_id: Seq
    reason: str


@union_member
@dataclass(frozen=True, slots=True)
class ReplicasLeft:
    """Living nodes have given replicas up; older departures that matter no more are forgotten."""

    at_ms: int
    departures: tuple[Departure, ...]


@union_member
@dataclass(frozen=True, slots=True)
class NamespaceCreated:
    """A namespace with its bundles."""

    namespace: Namespace
    bundles: tuple[Bundle, ...]


@union_member
@dataclass(frozen=True, slots=True)
class BundlesAssigned:
    """New rows of the bundle table, whole."""

    bundles: tuple[Bundle, ...]


@union_member
@dataclass(frozen=True, slots=True)
class EvictionsFrozen:
    """Too many nodes fell silent at once: nobody is fenced for silence until this is lifted."""

    silent: tuple[NodeId, ...]
    allowed: int


@union_member
@dataclass(frozen=True, slots=True)
class EvictionsResumed:
    """Fencing for silence is allowed again; ``reason`` says why."""

    reason: str


class IntentOutcome(Enum):
    """How an intent was answered."""

    DONE = "done"
    REFUSED = "refused"
    SUPERSEDED = "superseded"
    """Another intent, taken up together with it, asked for something else instead; it had no effect."""


@union_member
@dataclass(frozen=True, slots=True)
class IntentAnswered:
    """An operator's intent and its answer."""

    intent_id: IntentId
    kind: str
    principal: str
    outcome: IntentOutcome
    detail: str


Event: TypeAlias = (
    ClusterCreated
    | TermOpened
    | NodeAdmitted
    | NodeDraining
    | NodeUndrained
    | NodeFenced
    | NodeRemoved
    | NodeOrdered
    | SlotsPinned
    | SlotsUnpinned
    | SlotsExcluded
    | SlotsIncluded
    | ReconciliationPaused
    | ReconciliationResumed
    | PolicyChanged
    | SilenceLimitSettled
    | SlotsAssigned
    | PolicyRemembered
    | SlotsSplit
    | PlanMade
    | PlanDropped
    | ReplicasLeft
    | NamespaceCreated
    | BundlesAssigned
    | EvictionsFrozen
    | EvictionsResumed
    | IntentAnswered
    | FeatureLevelRaised
)

EVENT_TYPES: tuple[type[Event], ...] = (
    ClusterCreated,
    TermOpened,
    NodeAdmitted,
    NodeDraining,
    NodeUndrained,
    NodeFenced,
    NodeRemoved,
    NodeOrdered,
    SlotsPinned,
    SlotsUnpinned,
    SlotsExcluded,
    SlotsIncluded,
    ReconciliationPaused,
    ReconciliationResumed,
    PolicyChanged,
    SilenceLimitSettled,
    SlotsAssigned,
    PolicyRemembered,
    SlotsSplit,
    PlanMade,
    PlanDropped,
    ReplicasLeft,
    NamespaceCreated,
    BundlesAssigned,
    EvictionsFrozen,
    EvictionsResumed,
    IntentAnswered,
    FeatureLevelRaised,
)
"""Every member of :data:`Event`, for the codec and for exhaustiveness tests."""


def renewed_by(events: Iterable[Event]) -> frozenset[NodeId]:
    """Nodes of which a new process is admitted: it holds nothing of what a former one of that name held."""
    return frozenset(event.node.node_id for event in events if isinstance(event, NodeAdmitted))
