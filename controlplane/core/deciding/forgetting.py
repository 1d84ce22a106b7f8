"""Forgets nodes that left or were fenced long ago, so that the state does not grow with every name that ever existed.

Nodes are forgotten by decisions that are made anyway. A quiet cluster makes one each ``positions_interval_ms``.
"""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

from controlplane.core.cluster.events import NodesForgotten
from controlplane.core.log.decision import CauseKind
from controlplane.core.log.draft import Draft
from controlplane.core.log.state import State
from controlplane.core.membership.events import NodeAdmitted
from controlplane.core.membership.node import Node
from controlplane.core.values.identifiers import NodeId

FORGOTTEN_AT_ONCE: Final = 256
"""The number of nodes that one decision forgets, or as many as it admits if that is more.

No decision becomes long, and names do not become known faster than they may be forgotten.
"""

_GREATEST_FORGOTTEN: Final = 1 << 52
"""The greatest incarnation that is forgotten: inputs may name up to 2^53 - 1, and the floor needs room above it."""


def forget_nodes_gone_for_long(draft: Draft, now_ms: int) -> None:
    """Forget nodes that have been gone for longer than the policy says, and that nothing in the state names.

    The cost is that of the known nodes, and only if some of them are due, that of the slots and bundles.
    """
    state = draft.state
    if not state.cluster.has_several_brokers_rules:
        return
    since_ms = now_ms - state.cluster.policy.forget_nodes_after_ms
    gone = [
        node
        for node_id, node in state.membership.nodes.items()
        if not node.lives
        and node.changed_at_ms <= since_ms
        and node.incarnation <= _GREATEST_FORGOTTEN
        and node_id not in state.membership.orders
    ]
    if not gone:
        return
    named = frozenset(_named_by_slots_and_bundles(state))
    admitted = sum(isinstance(event, NodeAdmitted) for event in draft.events)
    at_once = max(FORGOTTEN_AT_ONCE, admitted)
    forgotten = tuple(islice((node for node in gone if node.node_id not in named), at_once))
    if forgotten:
        _forget(draft, forgotten)


def _named_by_slots_and_bundles(state: State) -> Iterator[NodeId]:
    """The nodes that a slot, a plan, an order for slots, or a bundle names."""
    for rows in (state.slots.table, state.slots.planned_rows):
        for slot in rows:
            yield from slot.replicas
    for named in (state.slots.pins, state.slots.exclusions):
        yield from (each.node_id for each in named)
    for bundle in state.bundles.by_id.values():
        yield from (name for name in (bundle.owner, bundle.next_owner) if name is not None)


def _forget(draft: Draft, nodes: Iterable[Node]) -> None:
    after_ms = draft.state.cluster.policy.forget_nodes_after_ms
    incarnations = {node.node_id: node.incarnation for node in nodes}
    floor = max(draft.state.cluster.incarnation_floor, *incarnations.values())
    evidence = f"{len(incarnations)} gone for {after_ms} ms of log time; unknown nodes join above incarnation {floor}"
    draft.because(CauseKind.NODES_FORGOTTEN, draft.state.log_id, evidence)
    draft.add(NodesForgotten(tuple(incarnations), floor))
