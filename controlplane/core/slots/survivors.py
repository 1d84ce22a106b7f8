"""The slot table without the dead, if nothing is planned, and the slots that cannot be planned at all.

Nothing is planned while reconciliation is paused, and after a refused answer. A slot that no node may be given stays
with its living holders, even if they are to be relieved of it, because they have its last copies.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator
from collections.abc import Set as AbstractSet
from typing import Final

from controlplane.core.slots.pins import Exclusion
from controlplane.core.slots.table import Slot
from controlplane.core.values.identifiers import Epoch, NodeId, SlotId

_SLOTS_NAMED: Final = 8


def rows_of_survivors(
    slots: tuple[Slot, ...],
    living: frozenset[NodeId],
    ready: AbstractSet[tuple[SlotId, NodeId]],
    epoch: Epoch,
    *,
    spread: bool,
) -> tuple[Slot, ...]:
    """The rows that change when all dead nodes are removed, ascending by slot.

    A surviving holder leads each slot whose leader is gone. A holder that has all the data is preferred, then, if heirs
    are to be spread, the one that leads the fewest slots, then the first by name. A slot without survivors is left
    empty.

    Args:
        slots: the table.
        living: the nodes that may stay; no node is added.
        ready: replicas that report to have all the data.
        epoch: the epoch of the table with these rows.
        spread: whether the number of slots that heirs lead matters, as in a pause, which may last and see many deaths.
    """
    leads = Counter(slot.leader for slot in slots)
    changed = []
    for slot in slots:
        if stands(slot, living):
            continue
        survivors = [node_id for node_id in slot.replicas if node_id in living]
        leader = slot.leader
        if leader not in living:
            heirs = [((slot.slot_id, name) not in ready, leads[name] if spread else 0, name) for name in survivors]
            leader = min(heirs)[2] if heirs else None
            leads[leader] += 1
        changed.append(slot.assigned(leader, survivors, epoch))
    return tuple(changed)


def stands(slot: Slot, living: frozenset[NodeId]) -> bool:
    """Whether a row can stay: living nodes lead and hold it, or it is empty."""
    return (slot.leader in living and living.issuperset(slot.followers)) or slot.replicas == ()


def stranded_slots(
    slots: Iterable[Slot], living: AbstractSet[NodeId], owners: Collection[NodeId], exclusions: Iterable[Exclusion]
) -> tuple[Slot, ...]:
    """The rows, in their order, with living holders but no possible owner: all owners are excluded from the slot.

    Args:
        slots: the table.
        living: the nodes that may stay.
        owners: the nodes that are to hold slots, each once.
        exclusions: the exclusions of slots.
    """
    barred: dict[SlotId, int] = defaultdict(int)
    names = frozenset(owners)
    for slot_id, name in {(each.slot_id, each.node_id) for each in exclusions}:
        barred[slot_id] += name in names
    if names and len(names) not in barred.values():
        return ()
    return tuple(
        slot for slot in slots if barred.get(slot.slot_id, 0) == len(names) and not living.isdisjoint(slot.replicas)
    )


def stranded_texts(stranded: Iterable[Slot], living: AbstractSet[NodeId]) -> Iterator[str]:
    """Sentences that say where stranded slots stay and why, one for all slots of the same nodes."""
    of_nodes: dict[tuple[NodeId, ...], list[SlotId]] = defaultdict(list)
    for slot in stranded:
        of_nodes[tuple(sorted(living & {*slot.replicas}))].append(slot.slot_id)
    for names, slot_ids in sorted(of_nodes.items()):
        nodes = " and ".join(map(repr, names)) + (", which is" if len(names) == 1 else ", which are")
        verb, them = ("stays", "it") if len(slot_ids) == 1 else ("stay", "them")
        yield f"{slots_text(slot_ids)} {verb} on {nodes} to be relieved of {them}: no other node may hold {them}"


def slots_text(slot_ids: Collection[SlotId]) -> str:
    """Slot numbers as part of a sentence: the first ones, and how many more there are."""
    shown = ", ".join(map(str, sorted(slot_ids)[:_SLOTS_NAMED]))
    more = f" and {len(slot_ids) - _SLOTS_NAMED} more" if len(slot_ids) > _SLOTS_NAMED else ""
    return f"{'slot' if len(slot_ids) == 1 else 'slots'} {shown}{more}"
