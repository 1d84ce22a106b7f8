"""The record of a bundle's ownership (Pulsar's ServiceUnitStateData)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from controlplane.core.bundles.ownership_state import OwnershipState
from controlplane.errors import InvalidInputError

FIRST_VERSION: Final = 1
LEAST_VERSION: Final = -(1 << 63)
GREATEST_VERSION: Final = (1 << 63) - 1
# Characters that Python counts as white space and Java does not.
_NOT_BLANK_IN_JAVA: Final = frozenset("\x85\xa0\u2007\u202f")


@dataclass(frozen=True, slots=True)
class OwnershipRecord:
    """The ownership of one bundle.

    Attributes:
        state: the state.
        destination: the node that owns the bundle or shall own it; None for none.
        source: the node that has to give it away or to divide it, or that gave it away; None for none.
        version: 1 for the first record of a bundle, then one more each time, see :func:`next_version`.
        timestamp_ms: when it was written; the writer's clock, ms since 1970.
        is_forced: it follows any record with a lower version. The leader sets it to repair a bundle.
        children: for a split, by range of each part the node that shall own it; None for the bundle's owner.
    """

    state: OwnershipState
    destination: str | None = None
    source: str | None = None
    version: int = FIRST_VERSION
    timestamp_ms: int = 0
    is_forced: bool = False
    children: Mapping[str, str | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse a record without a node, and a version that no record can have.

        Raises:
            InvalidInputError: one of both.
        """
        if self.state is not OwnershipState.FREE and is_blank(self.destination) and is_blank(self.source):
            detail = f"a record in state {self.state.value} names a destination or a source, and this one names neither"
            raise InvalidInputError("ownership_without_node", detail)
        if not LEAST_VERSION <= self.version <= GREATEST_VERSION:
            raise InvalidInputError("ownership_version", f"a version has 64 bits with sign, unlike {self.version}")

    @property
    def is_transfer(self) -> bool:
        """Whether it names both nodes, so that the bundle goes from one to the other."""
        return bool(self.destination) and bool(self.source)


def state_of(record: OwnershipRecord | None) -> OwnershipState:
    """The state of a bundle with this record; *Init* without one."""
    return OwnershipState.INIT if record is None else record.state


def next_version(record: OwnershipRecord | None) -> int:
    """The version of the record that follows; behind the greatest one comes the least."""
    if record is None:
        return FIRST_VERSION
    return LEAST_VERSION if record.version == GREATEST_VERSION else record.version + 1


def is_blank(node_id: str | None) -> bool:
    """Whether a name is missing, empty or nothing but white space, by Java's notion of it."""
    return node_id is None or all(each.isspace() and each not in _NOT_BLANK_IN_JAVA for each in node_id)
