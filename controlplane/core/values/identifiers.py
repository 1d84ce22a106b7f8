"""Identifiers and numbers of the log as types. ``docs/reference/glossary.md`` defines the terms.

Numbers that are easily confused (term, epoch, seq) are distinct types for the type checker. Others are aliases.
"""

from typing import NamedTuple, NewType, TypeAlias

Term = NewType("Term", int)
"""Number of a leadership, greater with each, with gaps. 0 means "before the first"."""

Epoch = NewType("Epoch", int)
"""Number of a state of the routing table, +1 per change of rows, no gaps. 0 means "no table yet"."""

Seq = NewType("Seq", int)
"""Number of a decision, +1 each, no gaps. 0 means "none yet"."""

NodeId: TypeAlias = str
"""Name of a node, chosen by its operator and stable over restarts."""

Incarnation: TypeAlias = int
"""Number of a process life of a node, greater on every start: max(wall clock in ms, last known + 1)."""

ControllerId: TypeAlias = str

ProcessId: TypeAlias = str
"""Random id of a controller's process, chosen at its start. Empty if unknown."""

SlotId: TypeAlias = int
IntentId: TypeAlias = str
NamespaceName: TypeAlias = str
TenantName: TypeAlias = str
ClusterName: TypeAlias = str


class TopicPartition(NamedTuple):
    """A partition of one of the cluster's topics; ``topic`` is the name without the cluster's prefix."""

    topic: str
    partition: int


class Coordinates(NamedTuple):
    """The place of an input record, and the time at which the broker appended it."""

    topic: str
    partition: int
    offset: int
    append_time_ms: int

    def __str__(self) -> str:
        """The text ``topic[partition]@offset``, for errors and reasons."""
        return f"{self.topic}[{self.partition}]@{self.offset}"
