"""Declarations of event classes. The decorator :func:`event` makes every event class declare its properties."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Any, Final, TypeVar

from controlplane.core.values.canonical import union_member
from controlplane.core.values.identifiers import NodeId

T = TypeVar("T")

FIRST_LEVEL: Final = 1
"""The lowest feature level of a log."""


class CallsFor(Enum):
    """What the decision that holds an event has to plan after it."""

    NOTHING = "nothing"
    OWNERS = "owners"
    """Bundles may lack an owner."""
    PLAN = "plan"
    """A node may be gone, or own too many, too few or the wrong slots and bundles."""


def _no_node(_: object) -> Iterable[NodeId]:
    return ()


@dataclass(frozen=True, slots=True)
class Declaration:
    """The declared properties of an event class.

    Attributes:
        calls_for: see :class:`CallsFor`.
        nodes: returns the names of the nodes that an event is about; a name may occur several times.
        since_level: lowest feature level of a log that may hold such an event.
    """

    calls_for: CallsFor
    nodes: Callable[[Any], Iterable[NodeId]] = _no_node
    since_level: int = FIRST_LEVEL


_DECLARED: Final[dict[type, Declaration]] = {}

DECLARED: Final[Mapping[type, Declaration]] = MappingProxyType(_DECLARED)
"""The declaration of every event class."""


def event(
    *, calls_for: CallsFor, nodes: Callable[[Any], Iterable[NodeId]] = _no_node, since_level: int = FIRST_LEVEL
) -> Callable[[type[T]], type[T]]:
    """Class decorator for events: stores the declaration, and adds the class name to the canonical form.

    For the arguments see :class:`Declaration`.
    """

    def declare(kind: type[T]) -> type[T]:
        _DECLARED[kind] = Declaration(calls_for, nodes, since_level)
        return union_member(kind)

    return declare


def calls_for_plan(happened: object) -> bool:
    """Whether the slots have to be planned after an event."""
    return DECLARED[type(happened)].calls_for is CallsFor.PLAN


def calls_for_owners(happened: object) -> bool:
    """Whether bundles may lack an owner after an event; true also if the slots have to be planned."""
    return DECLARED[type(happened)].calls_for is not CallsFor.NOTHING


def nodes_of(happened: object) -> frozenset[NodeId]:
    """The names of the nodes that an event is about."""
    return frozenset(DECLARED[type(happened)].nodes(happened))
