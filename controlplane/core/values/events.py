"""What a class of events declares of itself, at the class: an event that says nothing cannot be defined."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Any, Final, TypeVar

from controlplane.core.values.canonical import union_member
from controlplane.core.values.identifiers import NodeId

T = TypeVar("T")

FIRST_LEVEL: Final = 1
"""The feature level of every log that holds nothing of what later levels brought."""


class CallsFor(Enum):
    """What has to be planned after an event, in the decision that holds it."""

    NOTHING = "nothing"
    OWNERS = "owners"
    """Bundles may lack an owner."""
    PLAN = "plan"
    """A node may own too much, too little or the wrong slots and bundles, or be gone."""


def _no_node(_: object) -> Iterable[NodeId]:
    return ()


@dataclass(frozen=True, slots=True)
class Declaration:
    """What a class of events says of itself.

    Attributes:
        calls_for: see :class:`CallsFor`.
        nodes: the names of the nodes that such an event is about, as often as it names them.
        since_level: the feature level below which no log may hold such an event.
    """

    calls_for: CallsFor
    nodes: Callable[[Any], Iterable[NodeId]] = _no_node
    since_level: int = FIRST_LEVEL


_DECLARED: Final[dict[type, Declaration]] = {}

DECLARED: Final[Mapping[type, Declaration]] = MappingProxyType(_DECLARED)
"""Every class of events, with what it says of itself."""


def event(
    *, calls_for: CallsFor, nodes: Callable[[Any], Iterable[NodeId]] = _no_node, since_level: int = FIRST_LEVEL
) -> Callable[[type[T]], type[T]]:
    """Class decorator for events: they are written with their class name wherever they stand.

    For the arguments see :class:`Declaration`.
    """

    def declare(kind: type[T]) -> type[T]:
        _DECLARED[kind] = Declaration(calls_for, nodes, since_level)
        return union_member(kind)

    return declare


def calls_for_plan(happened: object) -> bool:
    """Whether slots have to be planned after an event."""
    return DECLARED[type(happened)].calls_for is CallsFor.PLAN


def calls_for_owners(happened: object) -> bool:
    """Whether bundles may lack an owner after an event: always where slots have to be planned."""
    return DECLARED[type(happened)].calls_for is not CallsFor.NOTHING


def nodes_of(happened: object) -> frozenset[NodeId]:
    """The nodes that an event is about."""
    return frozenset(DECLARED[type(happened)].nodes(happened))
