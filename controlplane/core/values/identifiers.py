"""The words of the log as types: see the glossary in ``docs/reference/glossary.md``.

Numbers that are easily taken for one another (term, epoch, seq) are distinct types for the type checker; names that
cannot be confused are aliases.
"""

from typing import NamedTuple, NewType, TypeAlias

Term = NewType("Term", int)
"""Number of one leadership, +1 each time: the fencing token. 0 means "before the first"."""

Epoch = NewType("Epoch", int)
"""Number of one state of the routing table, +1 per change of rows, no gaps. 0 means "no table yet"."""

Seq = NewType("Seq", int)
"""Number of a decision, +1 each, no gaps. 0 means "none yet"."""

NodeId: TypeAlias = str
"""A member's name, chosen by its operator, stable over its restarts."""

Incarnation: TypeAlias = int
"""One process life of a node; greater on every start: max(wall clock in ms, last known + 1)."""

ControllerId: TypeAlias = str

ProcessId: TypeAlias = str
"""Which process of a controller's name: random, made when it starts. Empty where nobody knows."""

SlotId: TypeAlias = int
IntentId: TypeAlias = str
NamespaceName: TypeAlias = str


class TopicPartition(NamedTuple):
    """One partition of one of the cluster's topics; ``topic`` is the name without the cluster's prefix."""

    topic: str
    partition: int


class Coordinates(NamedTuple):
    """Where an input record stands in the log, and when the broker appended it."""

    topic: str
    partition: int
    offset: int
    append_time_ms: int

    def __str__(self) -> str:
        """Printed in errors and reasons as ``topic[partition]@offset``."""
        return f"{self.topic}[{self.partition}]@{self.offset}"
