"""What a class of events declares of itself, at the class: an event that says nothing cannot be defined."""

from collections.abc import Callable, Mapping
from enum import Enum
from types import MappingProxyType
from typing import Final, TypeVar

from controlplane.core.values.canonical import union_member

T = TypeVar("T")


class CallsFor(Enum):
    """What has to be planned after an event, in the decision that holds it."""

    NOTHING = "nothing"
    OWNERS = "owners"
    """Bundles may lack an owner."""
    PLAN = "plan"
    """A node may own too much, too little or the wrong slots and bundles, or be gone."""


_DECLARED: Final[dict[type, CallsFor]] = {}

DECLARED: Final[Mapping[type, CallsFor]] = MappingProxyType(_DECLARED)
"""Every class of events, with what it calls for."""


def event(*, calls_for: CallsFor) -> Callable[[type[T]], type[T]]:
    """Class decorator for events: they are written with their class name wherever they stand."""

    def declare(kind: type[T]) -> type[T]:
        _DECLARED[kind] = calls_for
        return union_member(kind)

    return declare


def calls_for_plan(happened: object) -> bool:
    """Whether slots have to be planned after an event."""
    return DECLARED[type(happened)] is CallsFor.PLAN


def calls_for_owners(happened: object) -> bool:
    """Whether bundles may lack an owner after an event: always where slots have to be planned."""
    return DECLARED[type(happened)] is not CallsFor.NOTHING
