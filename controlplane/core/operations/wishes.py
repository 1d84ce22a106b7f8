"""What an intent wants of what, so that intents that contradict each other are found without carrying them out."""

from collections.abc import Hashable, Mapping
from typing import Final

from controlplane.core.intents.intent import REASON, Intent, IntentKind
from controlplane.core.operations.slot_numbers import parse_slots
from controlplane.core.values.identifiers import NodeId, SlotId
from controlplane.errors import ConfigurationError

_OF_NODES: Final[Mapping[str, tuple[str, bool]]] = {
    IntentKind.DRAIN_NODE.value: ("drained", True),
    IntentKind.UNDRAIN_NODE.value: ("drained", False),
    IntentKind.EXCLUDE_NODE.value: ("excluded", True),
    IntentKind.INCLUDE_NODE.value: ("excluded", False),
}
_OF_PAIRS: Final[Mapping[str, tuple[str, bool]]] = {
    IntentKind.PIN_SLOTS.value: ("pinned", True),
    IntentKind.UNPIN_SLOTS.value: ("pinned", False),
    IntentKind.EXCLUDE_SLOTS.value: ("barred", True),
    IntentKind.INCLUDE_SLOTS.value: ("barred", False),
}
_DENIED: Final[Mapping[str, str]] = {
    IntentKind.PIN_SLOTS.value: "barred",
    IntentKind.EXCLUDE_SLOTS.value: "pinned",
}
"""What of a pair cannot be where these are carried out."""
_OF_THE_CLUSTER: Final[Mapping[str, bool]] = {
    IntentKind.PAUSE_RECONCILIATION.value: True,
    IntentKind.RESUME_RECONCILIATION.value: False,
}


def wishes_of(intent: Intent, slot_count: int) -> dict[Hashable, Hashable]:
    """The subjects of an intent with what it wants of each; none for one that can contradict no other."""
    node = intent.arguments.get("node", "")
    if intent.kind in _OF_NODES:
        what, wish = _OF_NODES[intent.kind]
        return {(what, node): wish}
    if intent.kind in _OF_THE_CLUSTER:
        return {"paused": _OF_THE_CLUSTER[intent.kind]}
    if intent.kind in (IntentKind.SET_NODE.value, IntentKind.RESET_NODE.value):
        reset = intent.kind == IntentKind.RESET_NODE.value
        return {
            (what, node): intent.arguments.get(what) for what in ("weight", "zone") if reset or what in intent.arguments
        }
    if intent.kind in _OF_PAIRS:
        return _of_pairs(intent, slot_count)
    if intent.kind == IntentKind.CHANGE_POLICY.value:
        return {("policy", name): text for name, text in intent.arguments.items() if name != REASON}
    return {}


def denials_of(intent: Intent, slot_count: int) -> frozenset[Hashable]:
    """The subjects of which an intent rules out whatever others want of them."""
    what = _DENIED.get(intent.kind)
    pairs = _pairs(intent, slot_count) if what is not None else []
    return frozenset((what, slot_id, node) for slot_id, node in pairs)


def _of_pairs(intent: Intent, slot_count: int) -> dict[Hashable, Hashable]:
    what, wish = _OF_PAIRS[intent.kind]
    leads = intent.arguments.get("leads", "")
    return {(what, slot_id, node): (wish, leads) for slot_id, node in _pairs(intent, slot_count)}


def _pairs(intent: Intent, slot_count: int) -> list[tuple[SlotId, NodeId]]:
    try:
        slots = parse_slots(intent.arguments.get("slots", ""), slot_count)
    except ConfigurationError:
        return []
    return [(slot_id, intent.arguments.get("node", "")) for slot_id in slots]
