"""The contracts of a placement strategy and of a filter of nodes, and the words of their results."""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, Protocol, TypeVar

from controlplane.core.bundles.load.view import BundleHistory
from controlplane.core.bundles.names import namespace_of
from controlplane.core.values.draws import drawn
from controlplane.errors import InvalidInputError

M = TypeVar("M")
View_contra = TypeVar("View_contra", contravariant=True)
Context_contra = TypeVar("Context_contra", contravariant=True)


class MissingLoadError(InvalidInputError):
    """A rule needs the load of a node that has not reported (Pulsar throws a NullPointerException there)."""

    def __init__(self, node_id: str) -> None:
        """Name the node."""
        super().__init__("missing_load", f"node {node_id} has sent no load report, but this rule needs its load")
        self.node_id = node_id


@dataclass(frozen=True, slots=True)
class BundleToPlace:
    """A bundle that needs a node.

    Attributes:
        bundle_id: ``namespace/range``; the namespace may contain slashes.
        history: its averages and topics; defaults for a bundle without reports.
        has_non_persistent_topic: it holds a non-persistent topic.
    """

    bundle_id: str
    history: BundleHistory
    has_non_persistent_topic: bool = False

    @property
    def namespace(self) -> str:
        """Its namespace."""
        return namespace_of(self.bundle_id)


@dataclass(frozen=True, slots=True)
class Selection(Generic[M]):
    """What a strategy answers.

    Attributes:
        best: the equally good nodes, in the order of the candidates; empty if there is no candidate.
        memory: the memory of the strategy after this selection.
        scores: by node, the figure that was compared; empty for a strategy that compares none.
        limit: the figure that a node's score must not exceed to be among the best; None if no node was within it, or
            if the strategy compares none. Then every candidate is among the best.
    """

    best: tuple[str, ...]
    memory: M
    scores: Mapping[str, float] = field(default_factory=dict)
    limit: float | None = None

    def pick(self, draw: float) -> str | None:
        """The node that a random number chooses from the best ones; None if there is none.

        Args:
            draw: a uniformly distributed number, at least 0 and below 1.

        Raises:
            InvariantViolationError: the number is outside that range.
        """
        position = drawn(draw, len(self.best))
        return self.best[position] if self.best else None


class PlacementStrategy(Protocol[View_contra, M]):
    """A rule that chooses the best nodes for a bundle (Pulsar's ModularLoadManagerStrategy)."""

    @property
    def name(self) -> str:
        """The name under which a configuration asks for the rule."""
        ...

    @property
    def first_memory(self) -> M:
        """The memory before the first selection."""
        ...

    def select(self, bundle: BundleToPlace, candidates: Sequence[str], view: View_contra, memory: M) -> Selection[M]:
        """The best nodes among the candidates, which are different names in the order of sums and ties.

        Raises:
            MissingLoadError: the rule needs the load of a candidate that the view does not have.
        """
        ...

    def after_pick(self, bundle: BundleToPlace, node_id: str, view: View_contra, memory: M) -> M:
        """The memory after one of the best nodes was picked for the bundle."""
        ...

    def retain(self, memory: M, active: AbstractSet[str]) -> M:
        """The memory without what it holds of nodes that are not active."""
        ...


class Dropped(NamedTuple):
    """A node that a filter dropped, with the evidence: what was measured, and the only value or bound that is kept."""

    node_id: str
    measured: float | str
    limit: float | str


@dataclass(frozen=True, slots=True)
class Filtering:
    """What a filter answers.

    Attributes:
        filter_name: the filter.
        kept: the nodes that remain, in the order of the candidates.
        dropped: the others, in the same order.
        failure: why the filter could not decide; None if it could.
    """

    filter_name: str
    kept: tuple[str, ...]
    dropped: tuple[Dropped, ...] = ()
    failure: str | None = None


class NodeFilter(Protocol[Context_contra]):
    """A rule that drops nodes before a strategy chooses (Pulsar's BrokerFilter)."""

    @property
    def name(self) -> str:
        """The name by which decisions refer to the filter."""
        ...

    def keep(self, bundle: BundleToPlace, candidates: Sequence[str], context: Context_contra) -> Filtering:
        """The candidates that may take the bundle, and why the others may not."""
        ...


def keep_least(filter_name: str, candidates: Sequence[str], measured: Mapping[str, float]) -> Filtering:
    """Keep the candidates with the least measured value; a candidate without one counts as 0."""
    if not candidates:
        return Filtering(filter_name, ())
    least = min(measured.get(node_id, 0) for node_id in candidates)
    dropped = tuple(
        Dropped(node_id, measured.get(node_id, 0), least) for node_id in candidates if measured.get(node_id, 0) != least
    )
    kept = tuple(node_id for node_id in candidates if measured.get(node_id, 0) == least)
    return Filtering(filter_name, kept, dropped)
