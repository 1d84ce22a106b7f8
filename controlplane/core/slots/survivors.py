"""What is left of the slot table without the dead where nothing is planned, and which slots cannot be planned at all.

Nothing is planned while reconciliation is paused, and after a refused answer. A slot that no node may be given stays
with the living nodes that hold it, also when they are to be relieved of it: they have its last copies.
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
    """The rows that change when everybody who does not live is taken out, ascending by slot.

    A slot whose leader is gone is led by a surviving holder: by one that has all the data before one that does not,
    then, if they are to be spread, by the one that leads the fewest slots, then by the first by name. A slot without
    survivors is left empty.

    Args:
        slots: the table.
        living: who may stay; nobody else is put in.
        ready: replicas that report to have all the data.
        epoch: of the table with these rows.
        spread: whether heirs are chosen by how many slots they lead; a pause lasts, and may see many deaths.
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
    """Whether a row can stay: it is led and held by the living, or by nobody at all."""
    return (slot.leader in living and living.issuperset(slot.followers)) or slot.replicas == ()


def stranded_slots(
    slots: Iterable[Slot], living: AbstractSet[NodeId], owners: Collection[NodeId], exclusions: Iterable[Exclusion]
) -> tuple[Slot, ...]:
    """The rows, in their order, that living nodes hold and that can be given to nobody: all owners are excluded.

    Args:
        slots: the table.
        living: who may stay.
        owners: who is to hold slots, each once.
        exclusions: of slots and nodes.
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
    """Where these slots stay and why: a sentence for those of the same nodes."""
    of_nodes: dict[tuple[NodeId, ...], list[SlotId]] = defaultdict(list)
    for slot in stranded:
        of_nodes[tuple(sorted(living & {*slot.replicas}))].append(slot.slot_id)
    for names, slot_ids in sorted(of_nodes.items()):
        nodes = " and ".join(map(repr, names)) + (", which is" if len(names) == 1 else ", which are")
        verb, them = ("stays", "it") if len(slot_ids) == 1 else ("stay", "them")
        yield f"{slots_text(slot_ids)} {verb} on {nodes} to be relieved of {them}: no other node may hold {them}"


def slots_text(slot_ids: Collection[SlotId]) -> str:
    """Slots by number in a sentence: the first of them, and how many more there are."""
    shown = ", ".join(map(str, sorted(slot_ids)[:_SLOTS_NAMED]))
    more = f" and {len(slot_ids) - _SLOTS_NAMED} more" if len(slot_ids) > _SLOTS_NAMED else ""
    return f"{'slot' if len(slot_ids) == 1 else 'slots'} {shown}{more}"
