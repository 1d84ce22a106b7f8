"""Finds out which items of a failing run's plan are needed for it to fail."""

from collections.abc import Callable

from tests.simulation.plan import Item


def shrink(items: tuple[Item, ...], fails: Callable[[frozenset[int]], bool]) -> tuple[Item, ...]:
    """The items without which the run does not fail any more: first halves are dropped, then single ones."""
    needed = list(items)
    size = max(len(needed) // 2, 1)
    while True:
        before = len(needed)
        for start in range(len(needed) - size, -size, -size):
            rest = needed[: max(start, 0)] + needed[max(start, 0) + size :]
            if len(rest) < len(needed) and fails(frozenset(item.number for item in rest)):
                needed = rest
        if size == 1 and len(needed) == before:
            return tuple(needed)
        size = max(size // 2, 1)
