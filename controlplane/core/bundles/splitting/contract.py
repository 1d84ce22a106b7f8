"""The protocol of a split algorithm: it chooses the positions at which a bundle is split."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from controlplane.core.bundles.load.averages import MessageLoad
from controlplane.core.bundles.ranges import HashRange


@dataclass(frozen=True, slots=True)
class SplitRequest:
    """A bundle to split, and what an algorithm may look at.

    Attributes:
        bundle: its range.
        topics: full names of its topics, in any order; empty if they are not known. A sum of their loads is taken in
            this order.
        topic_loads: the latest load of a topic, by full name.
        positions: the positions that an operator asked for.
        is_forced: whether to split at them whatever topics the bundle has.
    """

    bundle: HashRange
    topics: tuple[str, ...] = ()
    topic_loads: Mapping[str, MessageLoad] = field(default_factory=dict)
    positions: tuple[int, ...] = ()
    is_forced: bool = False


class SplitPositions(NamedTuple):
    """An algorithm's answer.

    Attributes:
        positions: the inner bounds of the parts; empty if the algorithm finds none, and then nothing is split.
        reason: why, with the figures that an operator can check.
    """

    positions: tuple[int, ...]
    reason: str


class SplitAlgorithm(Protocol):
    """Chooses the positions at which a bundle is split (Pulsar's NamespaceBundleSplitAlgorithm).

    It is a pure function of the request. Positions that are not inside the range, or are repeated, are refused later,
    and the bundle stays as it is.
    """

    @property
    def name(self) -> str:
        """The name by which settings and operators choose it."""
        ...

    def choose(self, request: SplitRequest) -> SplitPositions:
        """The positions.

        Raises:
            ConfigurationError: the request lacks what the algorithm needs.
        """
        ...
