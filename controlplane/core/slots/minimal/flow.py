"""Maximum flow in small networks with integer capacities of any size (Dinic's algorithm).

Networks have an arc for each pair of a node and a group of slots that are alike, not for each slot, so they are small.
"""

from collections import deque
from collections.abc import Sequence


class FlowNetwork:
    """A network under construction, and the flow through it."""

    def __init__(self, vertices: int) -> None:
        self._arcs: list[list[int]] = [[] for _ in range(vertices)]
        self._heads: list[int] = []
        self._room: list[int] = []

    def add_arc(self, tail: int, head: int, capacity: int) -> None:
        """Add an arc, and its reverse for taking flow back."""
        for start, end, room in ((tail, head, capacity), (head, tail, 0)):
            self._arcs[start].append(len(self._heads))
            self._heads.append(end)
            self._room.append(room)

    def push_all(self, source: int, sink: int) -> int:
        """Send as much flow as possible, and return the amount."""
        total = 0
        while (levels := self._levels(source))[sink] >= 0:
            cursors = [0] * len(self._arcs)
            while pushed := self._push_one(source, sink, levels, cursors):
                total += pushed
        return total

    def reached_from(self, source: int) -> Sequence[bool]:
        """For each vertex, whether more flow could still be sent to it."""
        return [level >= 0 for level in self._levels(source)]

    def _levels(self, source: int) -> list[int]:
        levels = [-1] * len(self._arcs)
        levels[source] = 0
        queue = deque([source])
        while queue:
            vertex = queue.popleft()
            for arc in self._arcs[vertex]:
                head = self._heads[arc]
                if self._room[arc] and levels[head] < 0:
                    levels[head] = levels[vertex] + 1
                    queue.append(head)
        return levels

    def _push_one(self, source: int, sink: int, levels: list[int], cursors: list[int]) -> int:
        """Send flow along one path of a level graph, and return the amount; 0 if no path is left."""
        path: list[int] = []
        vertex = source
        while vertex != sink:
            arcs = self._arcs[vertex]
            while cursors[vertex] < len(arcs):
                arc = arcs[cursors[vertex]]
                if self._room[arc] and levels[self._heads[arc]] == levels[vertex] + 1:
                    path.append(arc)
                    vertex = self._heads[arc]
                    break
                cursors[vertex] += 1
            else:
                if not path:
                    return 0
                vertex = self._heads[path.pop() ^ 1]
                cursors[vertex] += 1
        pushed = min(self._room[arc] for arc in path)
        for arc in path:
            self._room[arc] -= pushed
            self._room[arc ^ 1] += pushed
        return pushed
