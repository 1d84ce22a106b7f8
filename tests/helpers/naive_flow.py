"""A textbook minimum-cost flow: slow, obvious, and the judge of the planner on small problems."""

from dataclasses import dataclass

_INFINITE = 1 << 60


@dataclass
class _Edge:
    target: str
    room: int
    cost: int
    back: "_Edge | None" = None


class NaiveFlow:
    """Successive shortest paths by Bellman and Ford, one unit at a time."""

    def __init__(self) -> None:
        self._edges: dict[str, list[_Edge]] = {}

    def edge(self, source: str, target: str, room: int, cost: int = 0) -> None:
        """Add a way for ``room`` units at ``cost`` each."""
        forth, back = _Edge(target, room, cost), _Edge(source, 0, -cost)
        forth.back, back.back = back, forth
        self._edges.setdefault(source, []).append(forth)
        self._edges.setdefault(target, []).append(back)

    def least_cost(self, source: str, sink: str, units: int) -> int | None:
        """The least cost of sending so many units; None if that is impossible."""
        paid = 0
        for _ in range(units):
            distance = dict.fromkeys(self._edges, _INFINITE)
            distance[source] = 0
            came: dict[str, _Edge] = {}
            changed = True
            while changed:
                changed = False
                for vertex, edges in self._edges.items():
                    for edge in edges:
                        through = distance[vertex] + edge.cost
                        if edge.room and distance[vertex] < _INFINITE and through < distance[edge.target]:
                            distance[edge.target], came[edge.target], changed = through, edge, True
            if distance.get(sink, _INFINITE) >= _INFINITE:
                return None
            paid += distance[sink]
            vertex = sink
            while vertex != source:
                edge = came[vertex]
                edge.room -= 1
                assert edge.back is not None
                edge.back.room += 1
                vertex = edge.back.target
        return paid
