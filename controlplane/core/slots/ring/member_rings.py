"""The two rings of a HiveMQ cluster, and who serves, is written to and may be read while nodes come and go.

The *primary* ring has the nodes that run: it says who answers now. The *minority* ring has in addition those that are
being given their data, and lacks those that are on their way out: it says who answers when the changes under way are
done. Writes go to the nodes of both, so nothing is lost when a node passes from one to the other.
"""

from enum import Enum
from typing import Final

from controlplane.core.slots.ring.hash_ring import HashRing


class MemberState(Enum):
    """The states of a member in HiveMQ, with its numbers."""

    UNKNOWN = 0
    NOT_JOINED = 1
    JOINING = 2
    """It is given its first data."""
    RUNNING = 3
    MERGE_MINORITY = 4
    """It was on the losing side of a partition, and its data may be old."""
    MERGING = 5
    """It is given the data that it missed."""
    SHUTTING_DOWN = 6
    SHUTDOWN_FINISHED = 7
    DEAD = 8


_IN_PRIMARY: Final = frozenset({MemberState.RUNNING})
_IN_MINORITY: Final = frozenset({MemberState.JOINING, MemberState.RUNNING, MemberState.MERGING})
_NEVER_USED: Final = frozenset({MemberState.SHUTTING_DOWN, MemberState.SHUTDOWN_FINISHED, MemberState.DEAD})


class MemberRings:
    """The primary and the minority ring, kept by the states of the members.

    Args:
        primary: the ring to begin with; an empty one if it is left out.
        minority: likewise.

    Attributes:
        primary: the ring of those that run.
        minority: the ring as it will be when the changes under way are done.
    """

    def __init__(self, primary: HashRing | None = None, minority: HashRing | None = None) -> None:
        self.primary = HashRing() if primary is None else primary
        self.minority = HashRing() if minority is None else minority

    def become(self, node: str, state: MemberState) -> None:
        """Record a member's new state.

        A member goes ``NOT_JOINED``, ``JOINING``, ``RUNNING``; the first member of a cluster is ``RUNNING`` at once.
        After a partition those of the losing side go ``MERGE_MINORITY``, ``MERGING``, ``RUNNING``.

        Raises:
            ValueError: HiveMQ defines the state and refuses it; members depart by :meth:`begin_departure`.
        """
        if state in _NEVER_USED:
            raise ValueError(f"{node!r} cannot become {state.name}: a member departs and has no state after that")
        _put(self.minority, node, wanted=state in _IN_MINORITY)
        _put(self.primary, node, wanted=state in _IN_PRIMARY)

    def begin_departure(self, node: str) -> None:
        """Take a member from the minority ring: it goes on serving while others are given its data."""
        _put(self.minority, node, wanted=False)

    def finish_departure(self, node: str) -> None:
        """Take a member from both rings: its data is elsewhere, or it died."""
        _put(self.minority, node, wanted=False)
        _put(self.primary, node, wanted=False)

    def responsible(self, key: str) -> str:
        """The node that serves a key: its owner in the primary ring.

        Raises:
            NoRouteError: no node runs.
            TypeError: the key is not a text.
        """
        return self.primary.owner(key)

    def readable(self, key: str, count: int) -> frozenset[str]:
        """The nodes that have all data of a key: owner and replicas in the primary ring.

        Args:
            key: the key.
            count: copies beside the owner's.

        Raises:
            NoRouteError: no node runs.
            TypeError: the key is not a text.
        """
        return self.primary.replicas(key, count) | {self.primary.owner(key)}

    def writable(self, key: str, count: int) -> frozenset[str]:
        """The nodes to which the responsible one passes on each write, itself excluded.

        They are its replicas in the primary ring, and owner and replicas in the minority ring.

        Args:
            key: the key.
            count: copies beside the owner's, in each ring.

        Raises:
            NoRouteError: one of the rings is empty.
            TypeError: the key is not a text.
        """
        after = self.minority.replicas(key, count) | {self.minority.owner(key)}
        return (self.primary.replicas(key, count) | after) - {self.primary.owner(key)}


def _put(ring: HashRing, node: str, *, wanted: bool) -> None:
    """Let a node join or leave if it has not yet: to remove a node twice could take places from others."""
    if wanted and node not in ring.nodes:
        ring.add(node)
    elif not wanted and node in ring.nodes:
        ring.remove(node)
