"""The search over nodes: breadth first, each world as it is, because there are few enough of them."""

from tests.exploration.nodes import Nodes, World
from tests.exploration.search import Found


def search(nodes: Nodes, *, depth: int) -> Found:
    """Look at every world within so many steps of three beginnings; stop at what must not be."""
    level = [nodes.first(), nodes.members(), nodes.serving()]
    parents: dict[World, tuple[World, str] | None] = dict.fromkeys(level)
    counts, rows = [len(level)], set[str]()
    while level and len(counts) <= depth:
        following: list[World] = []
        for world in level:
            for way in nodes.ways(world):
                rows |= way.rows
                if way.after in parents:
                    continue
                parents[way.after] = (world, way.name)
                if broken := nodes.broken(way.after):
                    return Found(tuple(counts), frozenset(rows), _trace(parents, way.after), broken)
                following.append(way.after)
        level = following
        counts.append(len(level))
    return Found(tuple(counts), frozenset(rows))


def _trace(parents: dict[World, tuple[World, str] | None], world: World) -> tuple[str, ...]:
    names: list[str] = []
    while (parent := parents[world]) is not None:
        world, name = parent
        names.append(name)
    return tuple(reversed(names))
