"""Handoffs of slot leaderships: which planned rows go by one, and how the table shows a slot meanwhile.

A planned row that takes the leadership from a living node is not carried out at once. The next leader first gets a
copy, as a follower beyond the number of replicas if it holds none (*prepare*). When it has all the data, the slot
leader is told to release the slot (*release*): it accepts nothing for it any more, ends or voids what it had accepted,
and says so. Then the planned row is carried out (*assign*), and the next leader serves at once, under a new token.

Until then the slot table is as it was, and a handoff lies over it: the row that nodes and clients read shows the
additional follower, and the next leader once the slot is to be released. So planner, proofs and counts see each row
only when it is carried out. A handoff whose plan is dropped ends without a trace: the leader serves on under its token.

A next leader has the data when it says so by a table that certainly shows it as a holder of the slot, in this handoff.
An earlier report may be of a holding that has ended: the node was fenced, or gave the slot up, and got it again. The
state does not say since when a node holds a slot. But a node that held it by the table that was in use when the handoff
began holds it until the handoff ends, so a report by that table or a later one counts. Where nothing has changed for a
heartbeat's interval, a follower in sync has sent such a report before, and is waited for no longer.

Emergencies wait for none of this, nor do nodes that take part in no handoffs, nor policies that pace themselves.
"""

from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from controlplane.core.slots.table import Slot
from controlplane.core.values.identifiers import Epoch, NodeId, SlotId

NOT_RELEASED: Final = Epoch(0)
"""The release epoch of a handoff that is being prepared."""


@dataclass(frozen=True, slots=True)
class SlotHandoff:
    """The handoff of one slot's leadership.

    Attributes:
        slot_id: the slot.
        next_leader: the node that is to lead it.
        began_epoch: from the table of this epoch on, the next leader is shown as a holder until the handoff ends. What
            it reports by an earlier table does not count.
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


class Moment(NamedTuple):
    """When rows are carried out, and what is waited for until then.

    Attributes:
        table_epoch: the epoch of the table that nodes may already use.
        epoch: the epoch of this decision's rows.
        now_ms: log time.
        copy_limit_ms: log time for which a next leader may copy. After it the leader is told to release the slot
            although no report says that the copy is complete.
    """

    table_epoch: Epoch
    epoch: Epoch
    now_ms: int
    copy_limit_ms: int


class Step(NamedTuple):
    """What becomes of one row that is due.

    Attributes:
        waits_for: what it waits for; empty if it is carried out now.
        changed: its handoff, if that begins, or goes on to the release.
        remark: what is unusual about the step, as a sentence; empty if nothing is.
    """

    waits_for: str = ""
    changed: SlotHandoff | None = None
    remark: str = ""


class Advance(NamedTuple):
    """What becomes of rows that are due.

    Attributes:
        rows: those that are carried out now.
        changed: the handoffs that begin, or go on to the release.
        waiting: what the others wait for, by slot.
        remarks: sentences on slots that their leaders have not said to have released, or that move without their data.
    """

    rows: tuple[Slot, ...]
    changed: tuple[SlotHandoff, ...]
    waiting: Mapping[SlotId, str]
    remarks: tuple[str, ...]


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
    slots: tuple[Slot, ...],
    under_way: Mapping[SlotId, SlotHandoff],
    witness: Witness,
    moment: Moment,
) -> Advance:
    """Carry rows out, or take the next step of their handoffs.

    Args:
        due: the planned rows that may be carried out, by slot id.
        slots: the slot table.
        under_way: the handoffs that go on, by slot.
        witness: see :class:`Witness`.
        moment: see :class:`Moment`.
    """
    steps = [(row, next_step(slots[row.slot_id], row, under_way.get(row.slot_id), witness, moment)) for row in due]
    return Advance(
        rows=tuple(row for row, step in steps if not step.waits_for),
        changed=tuple(step.changed for _, step in steps if step.changed is not None),
        waiting={row.slot_id: step.waits_for for row, step in steps if step.waits_for},
        remarks=tuple(step.remark for _, step in steps if step.remark),
    )


def next_step(now: Slot, row: Slot, under_way: SlotHandoff | None, witness: Witness, moment: Moment) -> Step:
    """The next step of a planned row that is due.

    Args:
        now: the slot's row of the table.
        row: the planned row.
        under_way: the handoff that goes on; None if there is none.
        witness: see :class:`Witness`.
        moment: see :class:`Moment`.
    """
    if not goes_by_handoff(now, row, witness):
        return Step()
    leader, next_leader = now.leader or "", row.leader or ""
    handoff = under_way or _begun(now, next_leader, witness, moment)
    releasing = f"{leader} releases it to {next_leader}"
    if handoff.releases:
        released = witness.released(now.slot_id, leader, handoff.release_epoch)
        if released is None:
            return Step(releasing)
        return Step(remark="" if released.is_said else f"slot {now.slot_id} is taken: {released.why}")
    begun = handoff if under_way is None else None
    is_ready = witness.is_ready(now.slot_id, next_leader, handoff.began_epoch)
    if not is_ready and moment.now_ms - handoff.began_at_ms < moment.copy_limit_ms:
        return Step(f"{next_leader} copies it from {leader}", begun)
    if not witness.may_release(leader):
        return Step(f"a former process of {leader} may still serve it", begun)
    late = f"slot {now.slot_id} moves without its data: {next_leader} had {moment.copy_limit_ms} ms to copy it"
    return Step(releasing, replace(handoff, release_epoch=moment.epoch), "" if is_ready else late)


def _begun(now: Slot, next_leader: NodeId, witness: Witness, moment: Moment) -> SlotHandoff:
    """A handoff that begins. A new process of the next leader holds nothing of what the table says."""
    is_shown = next_leader in now.replicas and next_leader in witness.survivors
    since = moment.table_epoch if is_shown else moment.epoch
    return SlotHandoff(now.slot_id, next_leader, since, moment.now_ms)
