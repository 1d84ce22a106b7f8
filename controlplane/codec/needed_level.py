"""The feature level that a value of the log needs, from what its events and later fields declare."""

import functools
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, cast

from controlplane.codec.conversion import element_type, field_types, union_members, unwrap
from controlplane.core.values.canonical import later_fields_in_use, later_levels
from controlplane.core.values.events import DECLARED, FIRST_LEVEL

_Measure: TypeAlias = Callable[[Any], int]


def needed_level(value: object) -> int:
    """The least feature level at which a log may hold a value.

    It is the greatest level declared by an event in the value, or by a later field that is in use.
    """
    measure = _measure(cast("Any", type(value)))
    return FIRST_LEVEL if measure is None else measure(value)


# None stands for "the first level, for any value": rows of slots, of which there are many, are not inspected.


@functools.cache
def _measure(kind: Any) -> _Measure | None:  # noqa: ANN401 - a type expression
    kind = unwrap(kind)
    if members := union_members(kind):
        return _union_measure({member: _measure(member) for member in members})
    element = element_type(kind)
    if element is not None:
        return _items_measure(_measure(element))
    return _record_measure(kind)


def _union_measure(members: Mapping[type, _Measure | None]) -> _Measure | None:
    if not any(members.values()):
        return None

    def measure(value: object) -> int:
        of_member = members[type(value)]
        return FIRST_LEVEL if of_member is None else of_member(value)

    return measure


def _items_measure(of_item: _Measure | None) -> _Measure | None:
    if of_item is None:
        return None
    return lambda items: max(map(of_item, items.values() if isinstance(items, Mapping) else items), default=FIRST_LEVEL)


def _record_measure(kind: type) -> _Measure | None:
    nested = [(name, each) for name, hint in field_types(kind) or () if (each := _measure(hint)) is not None]
    own = DECLARED[kind].since_level if kind in DECLARED else FIRST_LEVEL
    if own == FIRST_LEVEL and not nested and not later_levels(kind):
        return None

    def measure(record: object) -> int:
        in_use = later_fields_in_use(record).values()
        return max((own, *in_use, *(each(getattr(record, name)) for name, each in nested)))

    return measure
