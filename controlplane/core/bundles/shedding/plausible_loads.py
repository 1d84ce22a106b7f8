"""A shedder that does not see loads which cannot be true."""

from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from controlplane.core.bundles.load.plausible import Implausible, plausible
from controlplane.core.bundles.load.view import LoadView
from controlplane.core.bundles.shedding.contract import (
    Evidence,
    ShedChoice,
    Shedder,
    Shedding,
    Skip,
    SkipReason,
    UnloadOutcome,
)
from controlplane.core.bundles.shedding.transfer_view import TransferView, plausible_transfers

V = TypeVar("V")
M = TypeVar("M")


@dataclass(frozen=True, slots=True)
class PlausibleLoads(Generic[V, M]):
    """A shedder behind a filter of loads. What the filter leaves out is a skip, with the figure as evidence.

    Attributes:
        shedder: the rule.
        filtered: the view without implausible loads, and those.
    """

    shedder: Shedder[V, M]
    filtered: Callable[[V], tuple[V, tuple[Implausible, ...]]]

    @property
    def name(self) -> str:
        """The name of the rule."""
        return self.shedder.name

    @property
    def first_memory(self) -> M:
        """That of the rule."""
        return self.shedder.first_memory

    def shed(self, view: V, memory: M) -> Shedding[M]:
        """The result of the rule on what can be true."""
        seen, implausible = self.filtered(view)
        shedding = self.shedder.shed(seen, memory)
        return replace(shedding, skips=(*_skips(implausible), *shedding.skips)) if implausible else shedding

    def retain(self, memory: M, active: AbstractSet[str]) -> M:
        """As the rule does."""
        return self.shedder.retain(memory, active)

    def after_unload(self, memory: M, choice: ShedChoice, outcome: UnloadOutcome, now_ms: int) -> M:
        """As the rule does."""
        return self.shedder.after_unload(memory, choice, outcome, now_ms)


def modular(shedder: Shedder[LoadView, M]) -> PlausibleLoads[LoadView, M]:
    """A shedder of the modular manager, on plausible loads."""
    return PlausibleLoads(shedder, plausible)


def extensible(shedder: Shedder[TransferView, M]) -> PlausibleLoads[TransferView, M]:
    """A shedder of the extensible manager, likewise."""
    return PlausibleLoads(shedder, plausible_transfers)


def _skips(implausible: Iterable[Implausible]) -> Iterable[Skip]:
    for each in implausible:
        evidence = (Evidence(each.name, each.value, each.limit),)
        yield Skip(SkipReason.IMPLAUSIBLE_LOAD, each.node_id, each.bundle_id, evidence)
