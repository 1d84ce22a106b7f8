"""The rows that the events of a decision write, known from the events alone: they carry their consequences."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from controlplane.core.bundles.bundle import Bundle
from controlplane.core.bundles.events import BundlesAssigned, BundleSplit, NamespaceCreated, NamespaceDeleted
from controlplane.core.intents.events import IntentAnswered
from controlplane.core.log.events import Event
from controlplane.core.membership.events import NodeAdmitted, NodeDraining, NodeFenced, NodeRemoved, NodeUndrained
from controlplane.core.slots.events import SlotsAssigned, SlotsSplit
from controlplane.core.slots.table import Slot
from controlplane.core.values.identifiers import Incarnation, NodeId, SlotId


class NodeChange(NamedTuple):
    """A change of a node's membership.

    Attributes:
        number: the place of its event in the decision, from 0 on.
        change: the word for it in the column ``change``.
        node_id: the node.
        incarnation: the run of its process.
        reason: why it was fenced; empty for other changes.
        silence_ms: of a fencing, its silence in log time.
    """

    number: int
    change: str
    node_id: NodeId
    incarnation: Incarnation
    reason: str = ""
    silence_ms: int | None = None


@dataclass(frozen=True, slots=True)
class WrittenRows:
    """What the events of one decision leave written.

    Attributes:
        slots: whole rows by slot.
        bundles: whole rows by bundle; None: the bundle ends.
        nodes: changes of nodes, in order.
        answers: answers to intents, in order.
    """

    slots: Mapping[SlotId, Slot] = field(default_factory=dict)
    bundles: Mapping[str, Bundle | None] = field(default_factory=dict)
    nodes: tuple[NodeChange, ...] = ()
    answers: tuple[IntentAnswered, ...] = ()


def written_by(events: Iterable[Event]) -> WrittenRows:
    """The rows that the events write; the last row of each slot and bundle.

    A cluster's creation makes slots without replicas, which have no rows here: what they lack is what a slot without a
    row lacks. Handoffs of slots change no row of the slot table.
    """
    slots: dict[SlotId, Slot] = {}
    bundles: dict[str, Bundle | None] = {}
    nodes: list[NodeChange] = []
    answers: list[IntentAnswered] = []
    for number, event in enumerate(events):
        match event:
            case SlotsAssigned(slots=rows) | SlotsSplit(slots=rows):
                slots |= {row.slot_id: row for row in rows}
            case IntentAnswered():
                answers.append(event)
            case _:
                bundles |= _bundles_written_by(event)
                change = _node_change(number, event)
                if change is not None:
                    nodes.append(change)
    return WrittenRows(slots, bundles, tuple(nodes), tuple(answers))


def _bundles_written_by(event: Event) -> Mapping[str, Bundle | None]:
    match event:
        case NamespaceCreated(bundles=rows) | BundlesAssigned(bundles=rows):
            return {row.bundle_id: row for row in rows}
        case BundleSplit(bundle_id=bundle_id, children=children):
            return {bundle_id: None, **{child.bundle_id: child for child in children}}
        case NamespaceDeleted(bundle_ids=bundle_ids):
            return dict.fromkeys(bundle_ids)
        case _:
            return {}


def _node_change(number: int, event: Event) -> NodeChange | None:
    match event:
        case NodeAdmitted(node=node):
            return NodeChange(number, "admitted", node.node_id, node.incarnation)
        case NodeDraining():
            return NodeChange(number, "draining", event.node_id, event.incarnation)
        case NodeUndrained():
            return NodeChange(number, "undrained", event.node_id, event.incarnation)
        case NodeFenced():
            return NodeChange(number, "fenced", event.node_id, event.incarnation, event.cause.value, event.silence_ms)
        case NodeRemoved():
            return NodeChange(number, "removed", event.node_id, event.incarnation)
        case _:
            return None
