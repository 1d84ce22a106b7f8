"""The search over handoffs: breadth first from one order, each world told from others by what matters of it."""

from collections.abc import Callable, Hashable, Mapping
from typing import Final

from controlplane.core.intents.intent import IntentKind
from tests.exploration.handoffs import NAMESPACE, NEXT, Handoffs
from tests.exploration.search import Found


def _pinned(replica_count: int) -> Handoffs:
    """The leadership of the slot goes to the next node, which holds it where there are two replicas."""
    world = Handoffs(replica_count, has_bundle=False)
    return world.ordered(IntentKind.PIN_SLOTS, slots="0", node=NEXT, leads="true")


def _split(**by: str) -> Handoffs:
    return Handoffs().ordered(IntentKind.SPLIT_BUNDLES, bundles=NAMESPACE, **by)


ORDERS: Final[Mapping[str, Callable[[], Handoffs]]] = {
    "a bundle is transferred": lambda: Handoffs().ordered(IntentKind.TRANSFER_BUNDLES, bundles=NAMESPACE, node=NEXT),
    "a bundle is unloaded": lambda: Handoffs().ordered(IntentKind.UNLOAD_BUNDLES, bundles=NAMESPACE),
    "a bundle is split by number": lambda: _split(by="number", numbers="2"),
    "a bundle is split by its owner": lambda: _split(by="range_equally_divide"),
    "a namespace is deleted": lambda: Handoffs().ordered(IntentKind.DELETE_NAMESPACE, namespace=NAMESPACE),
    "a leadership moves with a copy": lambda: _pinned(1),
    "a leadership moves in sync": lambda: _pinned(2),
}
"""What is ordered in the world in which a search begins."""


def search(first: Handoffs, *, depth: int) -> Found:
    """Look at every world within so many steps; in the last ones everything has to come to an end as well."""
    level: dict[Hashable, Handoffs] = {first.key(): first}
    parents: dict[Hashable, tuple[Hashable, str] | None] = dict.fromkeys(level)
    counts, rows = [len(level)], set(first.rows)
    for _ in range(depth):
        following: dict[Hashable, Handoffs] = {}
        for key, world in level.items():
            for name, happen in world.ways():
                after = world.after(happen)
                rows |= after.rows
                key_after = after.key()
                if key_after in parents and not after.broken:
                    continue
                parents[key_after] = key, name
                if after.broken:
                    return Found(tuple(counts), frozenset(rows), _trace(parents, key_after), after.broken)
                following[key_after] = after
        level = following
        counts.append(len(level))
    for key, world in level.items():
        if unfinished := world.unfinished():
            return Found(tuple(counts), frozenset(rows), _trace(parents, key), unfinished)
    return Found(tuple(counts), frozenset(rows))


def _trace(parents: dict[Hashable, tuple[Hashable, str] | None], key: Hashable) -> tuple[str, ...]:
    names: list[str] = []
    while (parent := parents[key]) is not None:
        key, name = parent
        names.append(name)
    return tuple(reversed(names))
