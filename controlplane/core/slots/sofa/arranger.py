"""One tick of the arranger (ScheduledSlotArranger): what runs, and whether its table is published."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

from controlplane.core.slots.sofa.assigner import assign
from controlplane.core.slots.sofa.balance_numbers import BalanceNumbers
from controlplane.core.slots.sofa.balancer import balance
from controlplane.core.slots.sofa.builder import SlotTableBuilder
from controlplane.core.slots.sofa.table import EpochSource, SofaTable


class TickAction(Enum):
    """The action of a tick."""

    EMPTY = "empty"
    """There are no nodes: the table stays as it is, including its dead nodes."""
    PROTECT = "protect"
    """There are no more nodes than ``protected_nodes``: the table is frozen."""
    ASSIGN = "assign"
    """A slot lacked a leader or a follower. This action does not wait for stability."""
    BALANCE = "balance"
    """Every slot was complete and stable."""
    NONE = "none"
    """Every slot was complete, and one was not stable."""


@dataclass(frozen=True, slots=True)
class ArrangeSettings:
    """The settings of a cluster.

    Attributes:
        slot_count: ``registry.data.slot.num``.
        replicas: replicas of each slot, the leader included (``registry.data.slot.replicas``).
        protected_nodes: with this number of nodes or fewer nothing changes (``registry.data.protection.num``); 0 is
            off.
        numbers: thresholds and limits.
    """

    slot_count: int = 256
    replicas: int = 2
    protected_nodes: int = 0
    numbers: BalanceNumbers = field(default_factory=BalanceNumbers)


@dataclass(frozen=True, slots=True)
class Tick:
    """The action of a tick, and the published table after it."""

    action: TickAction
    published: bool
    table: SofaTable


def arrange(
    before: SofaTable, nodes: Sequence[str], settings: ArrangeSettings, mint: EpochSource, *, stable: bool
) -> Tick:
    """Run one tick.

    Args:
        before: the published table.
        nodes: the current data nodes, in the order in which they became known.
        settings: the cluster's settings.
        mint: the source of epochs.
        stable: whether every slot's holders have reported that they are in sync.

    Raises:
        TooManyFollowersError: the number of replicas was lowered.
        InvalidSlotTableError: the new table must not be published.
    """
    if not nodes:
        return Tick(TickAction.EMPTY, published=False, table=before)
    if len(nodes) <= settings.protected_nodes:
        return Tick(TickAction.PROTECT, published=False, table=before)
    builder = SlotTableBuilder(before, settings.slot_count, settings.replicas, nodes, mint)
    table: SofaTable | None = None
    action = TickAction.NONE
    if builder.lacks_replicas():
        action = TickAction.ASSIGN
        table = assign(builder, nodes, settings.numbers)
    elif stable:
        action = TickAction.BALANCE
        table = balance(builder, nodes, settings.numbers)
    if table is not None:
        table.check()
        if table.epoch > before.epoch:
            return Tick(action, published=True, table=table)
    return Tick(action, published=False, table=before)
