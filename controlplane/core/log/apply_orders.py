"""What operators' standing orders do to a state: the part of ``apply`` about nodes' names, pins and exclusions."""

from collections.abc import Iterable
from dataclasses import replace
from typing import TypeVar

from controlplane.core.log.events import NodeOrdered, SlotsExcluded, SlotsIncluded, SlotsPinned, SlotsUnpinned
from controlplane.core.log.state import State, entry_share, pair_share
from controlplane.core.membership.standing_orders import NO_ORDER
from controlplane.core.routing.rows import add_hashes
from controlplane.core.slots.pins import Exclusion, Pin
from controlplane.errors import InvariantViolationError

_Pair = TypeVar("_Pair", Pin, Exclusion)


def apply_order(
    state: State, event: NodeOrdered | SlotsPinned | SlotsUnpinned | SlotsExcluded | SlotsIncluded
) -> State:
    """The state after an operator's order.

    Raises:
        InvariantViolationError: a slot that is not there, or something taken back that never stood.
    """
    match event:
        case NodeOrdered():
            return _order(state, event)
        case SlotsPinned(pins=pins):
            digest, changed = _put(state, "pin", state.pins, pins)
            return replace(state, pins=changed, entries_digest=digest)
        case SlotsUnpinned(pins=pins):
            digest, changed = _take(state, "pin", state.pins, pins)
            return replace(state, pins=changed, entries_digest=digest)
        case SlotsExcluded(exclusions=exclusions):
            digest, kept = _put(state, "exclusion", state.exclusions, exclusions)
            return replace(state, exclusions=kept, entries_digest=digest)
        case SlotsIncluded(exclusions=exclusions):
            digest, kept = _take(state, "exclusion", state.exclusions, exclusions)
            return replace(state, exclusions=kept, entries_digest=digest)


def _order(state: State, event: NodeOrdered) -> State:
    orders = dict(state.orders)
    known = orders.pop(event.node_id, NO_ORDER)
    key = f"order/{event.node_id}"
    digest = state.entries_digest
    if known != NO_ORDER:
        digest = add_hashes(digest, 0, entry_share(key, known))
    if event.order != NO_ORDER:
        orders[event.node_id] = event.order
        digest = add_hashes(digest, entry_share(key, event.order))
    return replace(state, orders=orders, entries_digest=digest)


def _put(state: State, kind: str, known: tuple[_Pair, ...], added: Iterable[_Pair]) -> tuple[int, tuple[_Pair, ...]]:
    pairs = {(each.slot_id, each.node_id): each for each in known}
    digest = state.entries_digest
    for each in added:
        if not 0 <= each.slot_id < len(state.slots):
            message = f"{kind} of slot {each.slot_id}, which is not between 0 and {len(state.slots) - 1}"
            raise InvariantViolationError(message)
        former = pairs.get((each.slot_id, each.node_id))
        digest = add_hashes(digest, pair_share(kind, each), pair_share(kind, former) if former else 0)
        pairs[each.slot_id, each.node_id] = each
    return digest, tuple(sorted(pairs.values()))


def _take(state: State, kind: str, known: tuple[_Pair, ...], taken: Iterable[_Pair]) -> tuple[int, tuple[_Pair, ...]]:
    pairs = dict.fromkeys(known)
    digest = state.entries_digest
    for each in taken:
        if each not in pairs:
            message = f"{kind} of slot {each.slot_id} and node {each.node_id!r} is taken back and never stood"
            raise InvariantViolationError(message)
        del pairs[each]
        digest = add_hashes(digest, 0, pair_share(kind, each))
    return digest, tuple(pairs)
