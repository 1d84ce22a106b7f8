"""Recorded answers of Pulsar's load managers, compared with ours.

An area of operations has a module here with ``OPERATIONS``: by the operation's name, a function from its input to our
answer in the recorded form. A recorded error is the name of a Java exception; ``ERRORS`` of an area gives ours.
"""

from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any, Final

from tests.conformance.pulsar import loads, ownership, placement, ranges, shedding, splits
from tests.conformance.pulsar.numbers import first_difference

AREAS: Final[tuple[ModuleType, ...]] = (loads, ownership, placement, ranges, shedding, splits)
OPERATIONS: Final[Mapping[str, Callable[[Any], object]]] = {
    name: run for area in AREAS for name, run in area.OPERATIONS.items()
}
ERRORS: Final[Mapping[type[Exception], str]] = {
    kind: name for area in AREAS for kind, name in getattr(area, "ERRORS", {}).items()
}


def mismatch(case: Mapping[str, Any]) -> str | None:
    """How our answer differs from the recorded one; None if it does not."""
    run = OPERATIONS.get(case["op"])
    if run is None:
        return f"unknown operation {case['op']!r}"
    expected = {"error": case["error"]} if "error" in case else case["out"]
    try:
        found = run(case["in"])
    except tuple(ERRORS) as error:
        found = {"error": ERRORS[type(error)]}
    return first_difference(found, expected)
