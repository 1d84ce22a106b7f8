"""Pins and exclusions: replicas that operators require or forbid on a node."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from controlplane.core.values.identifiers import NodeId, SlotId


@dataclass(frozen=True, slots=True, order=True)
class Pin:
    """A replica that has to be on the node that an operator chose.

    Attributes:
        slot_id: the slot.
        node_id: the node.
        leads: whether the node also has to lead the slot.
    """

    slot_id: SlotId
    node_id: NodeId
    leads: bool = False


@dataclass(frozen=True, slots=True, order=True)
class Exclusion:
    """A pair of a slot and a node that must not hold it. A standing order excludes a node from all slots."""

    slot_id: SlotId
    node_id: NodeId


def inherited_pins(pins: Iterable[Pin], before_count: int, after_count: int) -> tuple[Pin, ...]:
    """The pins that the parts of split slots inherit."""
    return tuple(
        sorted(
            replace(pin, slot_id=part)
            for pin in pins
            for part in range(pin.slot_id + before_count, after_count, before_count)
        )
    )


def inherited_exclusions(exclusions: Iterable[Exclusion], before_count: int, after_count: int) -> tuple[Exclusion, ...]:
    """The exclusions that the parts of split slots inherit."""
    return tuple(
        sorted(
            replace(exclusion, slot_id=part)
            for exclusion in exclusions
            for part in range(exclusion.slot_id + before_count, after_count, before_count)
        )
    )
