"""The choice that a placement strategy and a random number make together."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeVar

from controlplane.core.bundles.placement.contract import BundleToPlace, PlacementStrategy

M = TypeVar("M")
V = TypeVar("V")


class Pick(NamedTuple):
    """One choice of a strategy.

    Attributes:
        strategy: its name.
        candidates: the nodes that it chose from.
        best: the nodes that the random number chose from.
        scores: by node, the compared figure.
        limit: the greatest score that is good; None as in a strategy's selection.
        node_id: the chosen node; None if there was none.
    """

    strategy: str
    candidates: tuple[str, ...]
    best: tuple[str, ...]
    scores: Mapping[str, float]
    limit: float | None
    node_id: str | None


def picked(
    strategy: PlacementStrategy[V, M],
    bundle: BundleToPlace,
    candidates: Sequence[str],
    view: V,
    draw: float,
    memory: M,
) -> tuple[Pick, M]:
    """The choice that a strategy and a random number make among the candidates, and the strategy's memory after it."""
    selection = strategy.select(bundle, candidates, view, memory)
    node_id, memory = selection.pick(draw), selection.memory
    if node_id is not None:
        memory = strategy.after_pick(bundle, node_id, view, memory)
    return Pick(strategy.name, tuple(candidates), selection.best, selection.scores, selection.limit, node_id), memory
