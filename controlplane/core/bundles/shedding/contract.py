"""The contract of a shedder, and the words of its result."""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from enum import Enum
from typing import Generic, NamedTuple, Protocol, TypeVar

M = TypeVar("M")
View_contra = TypeVar("View_contra", contravariant=True)


class ShedReason(Enum):
    """Why a bundle should leave its node."""

    OVERLOADED = "overloaded"
    """The node's load is above an absolute threshold, or the loads of all nodes differ too much."""
    UNDERLOADED = "underloaded"
    """The node that takes the bundle has far less load than the others."""
    ABOVE_MEAN = "above-mean"
    """The node's load is above the mean of all nodes by a threshold."""
    BELOW_LOWER_BOUNDARY = "below-lower-boundary"
    """The load of another node is below the mean by a threshold."""
    UNEVEN_MESSAGE_RATE = "uneven-message-rate"
    """The message rates of two nodes differ too much."""
    UNEVEN_THROUGHPUT = "uneven-throughput"
    """The throughputs of two nodes differ too much."""


class SkipReason(Enum):
    """Why no bundle is shed: by a node, or in the whole cycle."""

    HIT_COUNT = "hit-count"
    """The condition has not held often enough in a row."""
    NO_BUNDLES = "no-bundles"
    """The node has no bundle that can leave."""
    SOLE_BUNDLE = "sole-bundle"
    """The node has one bundle; moving it would only move the overload. Splitting it can help."""
    SMALL_TARGET = "small-target"
    """There is less to shed than the least amount for which a move is worth its costs."""
    COOL_DOWN = "cool-down"
    """A node shed so recently that its load is not known yet."""
    OUTDATED_LOAD = "outdated-load"
    """The loads are too old."""
    NO_LOAD = "no-load"
    """Loads are missing."""
    NO_NODES = "no-nodes"
    """There is no node."""
    IMPLAUSIBLE_LOAD = "implausible-load"
    """A figure of the node or of the bundle cannot be true. It takes no part in the cycle."""


class UnloadOutcome(Enum):
    """What came of a choice."""

    UNLOADED = "unloaded"
    """The bundle left its node in time."""
    FAILED = "failed"
    """Its node was told to unload it, and that failed or took too long."""
    KEPT = "kept"
    """A check kept it where it is before its node was told."""


class Evidence(NamedTuple):
    """A measured value and the limit that it was held against. The name holds the unit; shares are of 1, not of 100."""

    name: str
    measured: float
    limit: float


@dataclass(frozen=True, slots=True)
class ShedChoice:
    """A bundle that should leave its node.

    Attributes:
        node_id: its node.
        bundle_id: the bundle.
        reason: why.
        traffic: the bundle's traffic in the unit of ``target``.
        target: the traffic that the node should shed in total: bytes or messages per second, as the evidence says.
        evidence: the comparisons that led to this choice.
        destination: the node that should take it; None leaves this to the placement.
    """

    node_id: str
    bundle_id: str
    reason: ShedReason
    traffic: float
    target: float
    evidence: tuple[Evidence, ...]
    destination: str | None = None


class Skip(NamedTuple):
    """A node, a bundle or a cycle that was passed over.

    Attributes:
        reason: why.
        node_id: the node; empty for the whole cycle.
        bundle_id: the bundle; empty if it is not about one.
        evidence: the comparisons that led to it.
    """

    reason: SkipReason
    node_id: str = ""
    bundle_id: str = ""
    evidence: tuple[Evidence, ...] = ()


@dataclass(frozen=True, slots=True)
class Shedding(Generic[M]):
    """The result of one cycle of a shedder.

    Attributes:
        choices: the bundles to shed, in the order in which they were chosen.
        memory: what the next cycle starts from.
        skips: who was passed over, and why.
        figures: figures of the whole cluster that the rule computed, by name.
    """

    choices: tuple[ShedChoice, ...]
    memory: M
    skips: tuple[Skip, ...] = ()
    figures: Mapping[str, float] = field(default_factory=dict)

    def bundles_by_node(self) -> dict[str, list[str]]:
        """The ids of the chosen bundles by node, in order of choice."""
        bundles: dict[str, list[str]] = {}
        for choice in self.choices:
            bundles.setdefault(choice.node_id, []).append(choice.bundle_id)
        return bundles


class Shedder(Protocol[View_contra, M]):
    """Chooses the bundles that nodes should give away.

    A shedder is pure: equal views and memories get equal results. It changes neither of them.
    """

    @property
    def name(self) -> str:
        """The rule's name, under which decisions and evidence refer to it."""
        ...

    @property
    def first_memory(self) -> M:
        """What the first cycle starts from."""
        ...

    def shed(self, view: View_contra, memory: M) -> Shedding[M]:
        """The result of one cycle."""
        ...

    def retain(self, memory: M, active: AbstractSet[str]) -> M:
        """The memory after the active nodes have changed (Pulsar's onActiveBrokersChange)."""
        ...

    def after_unload(self, memory: M, choice: ShedChoice, outcome: UnloadOutcome, now_ms: int) -> M:
        """The memory after one of the choices has ended; it is asked once for each, and before the next cycle.

        Args:
            memory: the memory that the cycle returned, or that the former choice's end left.
            choice: the choice.
            outcome: what came of it.
            now_ms: the leader's clock.
        """
        ...
