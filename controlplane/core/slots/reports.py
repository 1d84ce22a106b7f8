"""The reports of nodes about slots: status, settings and load."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from operator import itemgetter
from typing import Final, NamedTuple

from controlplane.core.slots.table import Slot
from controlplane.core.values.identifiers import Epoch, NodeId, SlotId
from controlplane.core.values.replica_status import ReplicaStatus

_STATUSES_THAT_FIT: Final = 8_000
"""Of statuses that are no groups: 24 bytes each at most, in a record of 256 KiB."""
_RUNS_THAT_FIT: Final = 64_000
"""Numbers of all groups: 3 bytes each at most, in such a record. It is even, because numbers come in pairs."""
GROUPS_FROM_LEVEL: Final = 3
"""The feature level from which nodes report slots in groups: every controller can read them then."""


class SlotStatus(NamedTuple):
    """One slot as its holder sees it (spec: SOFARegistry's heartbeat carries one for each of the node's slots).

    Attributes:
        slot_id: the slot.
        leader_epoch: the slot leader epoch under which the node works.
        leads: True for the slot leader, False for a follower.
        status: see :class:`ReplicaStatus`.
        last_sync_ms: wall clock of a follower's last successful sync with the leader; 0 for a leader or for "never".
    """

    slot_id: SlotId
    leader_epoch: int
    leads: bool
    status: ReplicaStatus
    last_sync_ms: int


class SlotGroup(NamedTuple):
    """Slots that their holder sees alike; a heartbeat has few groups, however many slots the node holds.

    Attributes:
        status: see :class:`ReplicaStatus`.
        last_sync_ms: as in :class:`SlotStatus`, for the slots that the node follows; for others it has no meaning.
        runs: the slots, ascending: alternately how many slots are left out and how many follow that are in the group,
            from slot 0 on. The first number is 0 or more, all others are 1 or more.
    """

    status: ReplicaStatus
    last_sync_ms: int
    runs: tuple[int, ...]

    @property
    def slot_ids(self) -> Iterator[SlotId]:
        """The slots, ascending."""
        return slot_ids_of(self.runs)


class ReleasedSlots(NamedTuple):
    """Slots that a node has released: it accepts nothing for them, and what it had accepted has ended or was voided.

    Attributes:
        release_epoch: the epoch in which it was told to release them, as their rows say.
        runs: the slots, as in :class:`SlotGroup`.
    """

    release_epoch: Epoch
    runs: tuple[int, ...]


def slot_ids_of(runs: Iterable[int]) -> Iterator[SlotId]:
    """The slots of runs, ascending."""
    ends = accumulate(runs)
    for begin, end in zip(ends, ends, strict=False):
        yield from map(SlotId, range(begin, end))


def runs_of(slot_ids: Iterable[SlotId]) -> tuple[int, ...]:
    """The runs of slots that are ascending, each once."""
    runs: list[int] = []
    end = 0
    for slot_id in slot_ids:
        if runs and end == slot_id:
            runs[-1] += 1
        else:
            runs += (slot_id - end, 1)
        end = slot_id + 1
    return tuple(runs)


def grouped(held: Iterable[tuple[SlotId, ReplicaStatus, int]]) -> tuple[SlotGroup, ...]:
    """The groups of held slots, each with status and time of its last sync, ascending by slot."""
    alike: dict[tuple[ReplicaStatus, int], list[SlotId]] = {}
    for slot_id, status, last_sync_ms in held:
        alike.setdefault((status, last_sync_ms), []).append(slot_id)
    return tuple(SlotGroup(*key, runs_of(slot_ids)) for key, slot_ids in alike.items())


def merged(groups: Iterable[SlotGroup]) -> tuple[SlotGroup, ...]:
    """Groups that fit into a record: one for each status, synced when the slot was that was synced first.

    Slots that are ready come first. Where even these are scattered too much, a slot that is left out is not ready.
    """
    oldest: dict[ReplicaStatus, int] = {}
    held = []
    for group in groups:
        oldest[group.status] = min(group.last_sync_ms, oldest.get(group.status, group.last_sync_ms))
        held += [(slot_id, group.status) for slot_id in group.slot_ids]
    whole = grouped((slot_id, status, oldest[status]) for slot_id, status in sorted(held, key=itemgetter(0)))
    left, fitting = _RUNS_THAT_FIT, []
    for group in sorted(whole, key=lambda each: each.status is not ReplicaStatus.HEALTHY):
        runs = group.runs[:left]
        left -= len(runs)
        if runs:
            fitting.append(group._replace(runs=runs))
    return tuple(fitting)


def few(statuses: Sequence[SlotStatus]) -> tuple[SlotStatus, ...]:
    """As many statuses as fit into a record: of slots that are ready first. A slot that is left out is not ready then.

    There is one at least, unless there is none, because a node without statuses counts as ready in every slot.
    """
    ready = [each for each in statuses if each.status is ReplicaStatus.HEALTHY]
    return tuple(ready or statuses)[:_STATUSES_THAT_FIT]


def statuses_in(
    groups: Iterable[SlotGroup], node_id: NodeId, table_epoch: Epoch, slots: Sequence[Slot]
) -> tuple[SlotStatus, ...]:
    """The statuses of a node's slots, ascending, by the rows of the table.

    A row's leader epoch is the epoch in which its leader, or the process of that node, changed last. A node whose table
    is as new as that works under this leader epoch. Otherwise it works under an earlier one, which nothing needs: its
    status then has the leader epoch 0, which no slot with a leader has.

    Args:
        groups: of the node's heartbeat. Slots beyond the table are left out.
        node_id: the node.
        table_epoch: the epoch of the table that the node used.
        slots: the table as it is now, by slot id.
    """
    statuses = []
    for group in groups:
        for slot_id in group.slot_ids:
            if slot_id >= len(slots):
                break
            slot = slots[slot_id]
            leader_epoch = slot.leader_epoch if slot.leader_epoch <= table_epoch else 0
            leads = leader_epoch > 0 and slot.leader == node_id
            last_sync_ms = 0 if leads else group.last_sync_ms
            statuses.append(SlotStatus(slot_id, leader_epoch, leads, group.status, last_sync_ms))
    return tuple(sorted(statuses))


class SlotReport(NamedTuple):
    """A node's last report about its slots.

    Attributes:
        statuses: one per slot that it holds.
        table_epoch: the epoch of the table that it used.
        sent_at_ms: its wall clock.
        age_ms: log time since the report.
    """

    statuses: tuple[SlotStatus, ...]
    table_epoch: Epoch
    sent_at_ms: int
    age_ms: int


class SlotSettings(NamedTuple):
    """The slot settings with which a node was started; commands show where they differ from the table's."""

    slot_count: int
    replica_count: int
    hash_function: str


class SlotLoad(NamedTuple):
    """The load of one slot since the last report."""

    slot_id: SlotId
    request_rate_per_s: float
    throughput_bytes_per_s: float
    stored_bytes: int
