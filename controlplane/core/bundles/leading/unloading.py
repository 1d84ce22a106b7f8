"""What a leader does with the bundles that a shedder chose.

The leader of the modular manager checks each bundle again and chooses its destination before it is unloaded; that of
the extensible manager publishes a record for each, because its shedder has done both.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from controlplane.core.bundles.load.averages import UNSEEN_BUNDLE
from controlplane.core.bundles.load.view import BundleHistory
from controlplane.core.bundles.ownership_channel import requests
from controlplane.core.bundles.ownership_channel.record import OwnershipRecord
from controlplane.core.bundles.ownership_channel.table import Written
from controlplane.core.bundles.placement.context import ModularContext
from controlplane.core.bundles.placement.contract import BundleToPlace
from controlplane.core.bundles.placement.modular import PlacementMemory
from controlplane.core.bundles.placement.shed_checks import UnloadCheck, UnloadChecks
from controlplane.core.bundles.shedding.contract import ShedChoice, Shedder, UnloadOutcome
from controlplane.core.bundles.shedding.recent import RecentlyUnloaded

M = TypeVar("M")
V = TypeVar("V")


class EndedChoice(NamedTuple):
    """A bundle that a shedder chose, and what came of it."""

    choice: ShedChoice
    outcome: UnloadOutcome


class CheckedChoice(NamedTuple, Generic[M]):
    """A bundle that a shedder chose, and whether it leaves; if so, to the check's destination, if it names one."""

    choice: ShedChoice
    check: UnloadCheck[M]


@dataclass(frozen=True, slots=True)
class UnloadRound(Generic[M]):
    """What a modular leader does after a shedder.

    Attributes:
        unloads: the bundles to unload, in the order of the shedder's choices.
        kept: the bundles that stay, with the reason.
        memory: the memory of the placement afterwards.
    """

    unloads: tuple[CheckedChoice[M], ...]
    kept: tuple[CheckedChoice[M], ...]
    memory: PlacementMemory[M]


def plan_unloads(
    choices: Sequence[ShedChoice],
    checks: UnloadChecks[M],
    context: ModularContext,
    memory: PlacementMemory[M],
    draws: Sequence[tuple[float, float]],
    non_persistent: Iterable[str] = (),
) -> UnloadRound[M]:
    """Check the bundles that a shedder chose (Pulsar's doLoadShedding).

    The placement decides the destination. A shedder that plans destinations has to be the placement too, and finds its
    plan in ``memory``, whose strategy's part is then the memory that the shedder returned. When the unloads have ended,
    :func:`after_unloads` tells the shedder.

    Args:
        choices: the shedder's choices.
        checks: the checks, with the placement.
        context: the leader's knowledge, on which the shedder decided.
        memory: the memory of the placement.
        draws: for each choice two random numbers, as ``ModularPlacement.place`` takes them.
        non_persistent: the bundles that hold a non-persistent topic.
    """
    with_non_persistent = frozenset(non_persistent)
    checked: list[CheckedChoice[M]] = []
    for choice, drawn in zip(choices, draws, strict=True):
        history = context.view.bundles.get(choice.bundle_id, BundleHistory(UNSEEN_BUNDLE))
        bundle = BundleToPlace(choice.bundle_id, history, choice.bundle_id in with_non_persistent)
        checked.append(CheckedChoice(choice, checks.check(bundle, choice.node_id, context, memory, drawn)))
        memory = checked[-1].check.memory
    unloads = tuple(each for each in checked if each.check.refusal is None)
    return UnloadRound(unloads, tuple(each for each in checked if each.check.refusal is not None), memory)


def plan_transfers(
    choices: Sequence[ShedChoice], records: Mapping[str, OwnershipRecord], now_ms: int
) -> tuple[Written, ...]:
    """The records with which the leader of the extensible manager unloads the bundles that a shedder chose.

    Args:
        choices: the shedder's choices; one without a destination is released to the node that is chosen for it next.
        records: the ownership table.
        now_ms: the leader's clock.
    """
    return tuple(
        Written(
            choice.bundle_id,
            requests.unload(records.get(choice.bundle_id), choice.node_id, now_ms, choice.destination),
        )
        for choice in choices
    )


def after_unloads(
    shedder: Shedder[V, M], memory: M, recent: RecentlyUnloaded, ended: Iterable[EndedChoice], now_ms: int
) -> tuple[RecentlyUnloaded, M]:
    """What the leader remembers of a shedder's choices that have ended: bundles that were unloaded rest for a while.

    Args:
        shedder: the rule.
        memory: the memory that the shedder returned. If the placement shares it, that which the placement left.
        recent: the bundles that were unloaded before.
        ended: the choices and what came of them, those included that a check kept.
        now_ms: the leader's clock.
    """
    unloaded = []
    for choice, outcome in ended:
        memory = shedder.after_unload(memory, choice, outcome, now_ms)
        if outcome is UnloadOutcome.UNLOADED:
            unloaded.append(choice.bundle_id)
    return recent.with_unloaded(unloaded, now_ms), memory
