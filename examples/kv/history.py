"""Judges what writers saw of a slot's ownership: whether its acknowledged writes have an order that time allows.

The object is a register of ownership per slot. Every acknowledged write carries the slot leader epoch under which it
was accepted (the fencing token, ordered by the log across terms) and the number that its slot leader gave it. A history
is linearizable if its writes, in the order of these two, contradict no pair of which one ended before the other began
(Herlihy and Wing 1990). Because the order is a witness that every write carries, no search is needed: sorted by their
beginning, each write is compared with the greatest that had ended by then.
"""

import heapq
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from examples.kv.client import Acknowledged


class Verdict(NamedTuple):
    """What a history shows.

    Attributes:
        writes: how many there are.
        slots: of how many slots.
        stale: writes that were accepted under an older token than one accepted before them, a sentence each.
        doubled: tokens under which two nodes accepted writes, and numbers given twice.
    """

    writes: int
    slots: int
    stale: tuple[str, ...]
    doubled: tuple[str, ...]

    @property
    def linearizable(self) -> bool:
        """Whether nothing contradicts."""
        return not self.stale and not self.doubled


def judge(history: Sequence[Acknowledged]) -> Verdict:
    """Judge every slot for itself: linearizability is local, so that a history is as good as each of its slots."""
    slots: defaultdict[int, list[Acknowledged]] = defaultdict(list)
    for write in history:
        slots[write.slot_id].append(write)
    stale = [sentence for _, writes in sorted(slots.items()) for sentence in _stale(writes)]
    doubled = [sentence for _, writes in sorted(slots.items()) for sentence in _doubled(writes)]
    return Verdict(len(history), len(slots), tuple(stale), tuple(doubled))


def _stale(writes: Sequence[Acknowledged]) -> Iterator[str]:
    ended: list[tuple[float, Acknowledged]] = []
    greatest: Acknowledged | None = None
    for write in sorted(writes, key=lambda write: write.sent_s):
        while ended and ended[0][0] < write.sent_s:
            _, before = heapq.heappop(ended)
            if greatest is None or _order(before) > _order(greatest):
                greatest = before
        if greatest is not None and _order(write) <= _order(greatest):
            yield (
                f"slot {write.slot_id}: {write.node_id} accepted {_order(write)}, sent {write.sent_s:.3f} s, after "
                f"{greatest.node_id} had acknowledged {_order(greatest)} at {greatest.answered_s:.3f} s"
            )
        heapq.heappush(ended, (write.answered_s, write))


def _doubled(writes: Sequence[Acknowledged]) -> Iterator[str]:
    owners: dict[int, str] = {}
    numbers: set[tuple[int, int]] = set()
    for write in writes:
        owner = owners.setdefault(write.leader_epoch, write.node_id)
        if owner != write.node_id:
            yield f"slot {write.slot_id}: {owner} and {write.node_id} both accepted under {write.leader_epoch}"
        if _order(write) in numbers:
            yield f"slot {write.slot_id}: two writes are {_order(write)}"
        numbers.add(_order(write))


def _order(write: Acknowledged) -> tuple[int, int]:
    return write.leader_epoch, write.counter
