"""Handoffs of slot leaderships: which planned rows go by one, and how the table shows a slot meanwhile.

A planned row that takes the leadership from a living node is not carried out at once. The next leader first gets a
copy, as a follower beyond the number of replicas if it holds none (*prepare*). When it has all the data, the slot
leader is told to release the slot (*release*): it accepts nothing for it any more, ends or voids what it had accepted,
and says so. Then the planned row is carried out (*assign*), and the next leader serves at once, under a new token.

Until then the slot table is as it was, and a handoff lies over it: the row that nodes and clients read shows the
additional follower, and the next leader once the slot is to be released. So planner, proofs and counts see each row
only when it is carried out. A handoff whose plan is dropped ends without a trace: the leader serves on under its token.

Emergencies wait for none of this, nor do nodes that take part in no handoffs, nor policies that pace themselves.
"""

from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from controlplane.core.slots.table import Slot
from controlplane.core.values.identifiers import Epoch, NodeId, SlotId

_ANY: Final = Epoch(0)
NOT_RELEASED: Final = Epoch(0)
"""The release epoch of a handoff that is being prepared."""


@dataclass(frozen=True, slots=True)
class SlotHandoff:
    """The handoff of one slot's leadership.

    Attributes:
        slot_id: the slot.
        next_leader: the node that is to lead it.
        began_epoch: the epoch in which it began: what its next leader reports by an earlier table does not count.
        began_at_ms: log time of its beginning.
        release_epoch: the epoch in which the slot leader was told to release the slot; 0 while it is being prepared.
    """

    slot_id: SlotId
    next_leader: NodeId
    began_epoch: Epoch
    began_at_ms: int
    release_epoch: Epoch = NOT_RELEASED

    @property
    def releases(self) -> bool:
        """Whether the slot leader has been told to release the slot."""
        return self.release_epoch != NOT_RELEASED


def shown(slot: Slot, handoff: SlotHandoff | None) -> Slot:
    """The row that nodes and clients read of a slot."""
    if handoff is None:
        return slot
    followers = tuple(sorted({*slot.followers, handoff.next_leader} - {slot.leader or ""}))
    next_leader = handoff.next_leader if handoff.releases else None
    return replace(slot, followers=followers, next_leader=next_leader, release_epoch=handoff.release_epoch)


class Released(NamedTuple):
    """Why a slot leader certainly serves a slot no more.

    Attributes:
        why: the reason.
        is_said: whether it has said so itself.
    """

    why: str
    is_said: bool


class Witness(NamedTuple):
    """What is known of the nodes that hand slots off.

    Attributes:
        living: the living nodes that take part in handoffs.
        survivors: those of them that are no new process in this decision, and so serve and hold what the table says.
        is_ready: whether a node reports, by the table of this epoch or a later one, that it has all data of a slot.
        may_release: whether a node can say of itself that it has released a slot: no former process of it, whose place
            it took, may still serve.
        released: whether a slot leader certainly serves a slot no more that it was told to release in an epoch; None
            while it may serve it.
    """

    living: AbstractSet[NodeId]
    survivors: AbstractSet[NodeId]
    is_ready: Callable[[SlotId, NodeId, Epoch], bool]
    may_release: Callable[[NodeId], bool]
    released: Callable[[SlotId, NodeId, Epoch], Released | None]


NO_WITNESS: Final = Witness(
    frozenset(), frozenset(), lambda _slot, _node, _epoch: False, lambda _node: False, lambda _slot, _node, _epoch: None
)
"""Of nodes without handoffs."""


class Advance(NamedTuple):
    """What becomes of rows that are due.

    Attributes:
        rows: those that are carried out now.
        changed: the handoffs that begin, or go on to the release.
        waiting: what the others wait for, by slot.
        taken: of the rows, those whose leader has not said that it has released the slot, with the reason.
    """

    rows: tuple[Slot, ...]
    changed: tuple[SlotHandoff, ...]
    waiting: Mapping[SlotId, str]
    taken: tuple[str, ...]


def goes_by_handoff(now: Slot, planned: Slot, witness: Witness) -> bool:
    """Whether a planned row takes the leadership from a node that serves, and gives it to another one."""
    return planned.leader != now.leader and now.leader in witness.survivors and planned.leader in witness.living


def kept(
    under_way: Mapping[SlotId, SlotHandoff],
    planned: Iterable[Slot],
    slots: tuple[Slot, ...],
    witness: Witness,
) -> dict[SlotId, SlotHandoff]:
    """The handoffs that a plan goes on with: to where its row leads, from a leader and to a node that have not changed.

    A new process of the next leader has none of the data, so another handoff begins.
    """
    return {
        row.slot_id: handoff
        for row in planned
        if (handoff := under_way.get(row.slot_id)) is not None
        and row.leader == handoff.next_leader
        and row.leader in witness.survivors
        and goes_by_handoff(slots[row.slot_id], row, witness)
    }


def advance(
    due: Iterable[Slot],
    *,
    slots: tuple[Slot, ...],
    under_way: Mapping[SlotId, SlotHandoff],
    witness: Witness,
    epoch: Epoch,
    now_ms: int,
    copy_limit_ms: int,
) -> Advance:
    """Carry rows out, or take the next step of their handoffs.

    Args:
        due: the planned rows that may be carried out, by slot id.
        slots: the slot table.
        under_way: the handoffs that go on, by slot.
        witness: see :class:`Witness`.
        epoch: the epoch of this decision's rows.
        now_ms: log time.
        copy_limit_ms: log time for which a next leader may copy. After it the row is carried out without its data.
    """
    rows, changed, taken = [], [], []
    waiting: dict[SlotId, str] = {}
    for row in due:
        now, slot_id = slots[row.slot_id], row.slot_id
        if not goes_by_handoff(now, row, witness):
            rows.append(row)
            continue
        leader, next_leader = now.leader or "", row.leader or ""
        handoff = under_way.get(slot_id) or SlotHandoff(slot_id, next_leader, epoch, now_ms)
        if handoff.releases:
            released = witness.released(slot_id, leader, handoff.release_epoch)
            if released is None:
                waiting[slot_id] = f"{leader} releases it to {next_leader}"
            else:
                rows.append(row)
                taken += [] if released.is_said else [f"slot {slot_id} is taken: {released.why}"]
        elif witness.is_ready(slot_id, next_leader, _ANY if next_leader in now.replicas else handoff.began_epoch):
            if witness.may_release(leader):
                changed.append(replace(handoff, release_epoch=epoch))
                waiting[slot_id] = f"{leader} releases it to {next_leader}"
                continue
            if slot_id not in under_way:
                changed.append(handoff)
            waiting[slot_id] = f"a former process of {leader} may still serve it"
        elif now_ms - handoff.began_at_ms >= copy_limit_ms:
            rows.append(row)
            taken.append(f"slot {slot_id} moves without its data: {next_leader} had {copy_limit_ms} ms to copy it")
        else:
            if slot_id not in under_way:
                changed.append(handoff)
            waiting[slot_id] = f"{next_leader} copies it from {leader}"
    return Advance(tuple(rows), tuple(changed), waiting, tuple(taken))
