"""Orders of bundles: what operators, drains and deletions ask for, until it has come about or has failed."""

from dataclasses import dataclass, field
from enum import Enum
from typing import Final, NamedTuple

from controlplane.core.values.identifiers import NodeId

BY_NUMBER: Final = "number"
"""A split into parts of equal width."""
BY_POSITIONS: Final = "positions"
"""A split at given hashes."""


class BundleOrderKind(Enum):
    """What a bundle is ordered to do."""

    TRANSFER = "transfer"
    """To go to a named node."""
    UNLOAD = "unload"
    """To be released, and to go to the node that placement chooses then."""
    RELIEVE = "relieve"
    """To leave a node that is to own nothing: it drains, or is excluded. It ends if the node may own bundles again."""
    SPLIT = "split"
    """To be split."""
    END = "end"
    """To be released for good, because its namespace is being deleted."""


@dataclass(frozen=True, slots=True)
class BundleOrder:
    """What is ordered for one bundle. It stands from the decision that gives it until it ends.

    Attributes:
        bundle_id: the bundle.
        kind: see :class:`BundleOrderKind`.
        destination: the node that it goes to, for a transfer; None otherwise.
        split_by: for a split :data:`BY_NUMBER`, :data:`BY_POSITIONS`, or the name of one of Pulsar's split algorithms,
            which its owner runs over its topics; empty otherwise.
        numbers: for a split, the number of parts or the positions.
    """

    bundle_id: str
    kind: BundleOrderKind
    destination: NodeId | None = None
    split_by: str = ""
    numbers: tuple[int, ...] = field(default=())


class OrderOutcome(Enum):
    """What came of an order."""

    DONE = "done"
    FAILED = "failed"
    """It cannot be carried out, or a step of it did not come about in its time."""


class EndedOrder(NamedTuple):
    """An order that has ended.

    Attributes:
        bundle_id: its bundle.
        outcome: see :class:`OrderOutcome`.
        detail: what happened, as a sentence.
    """

    bundle_id: str
    outcome: OrderOutcome
    detail: str
