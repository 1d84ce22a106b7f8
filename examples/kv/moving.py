"""Fetching what a node has gained, one round after the other until every slot that it holds is complete.

A follower fetches from its slot leader, and from nobody else: only the leader can promise to copy what comes later.
A slot leader asks everybody who may have held the slot, until one gives it all; what an incomplete holder has is
merged. When all have answered and nobody had it all, the slot starts with what was found, and the log says so.
"""

import threading
from collections.abc import Callable, Sequence
from typing import Final

import structlog

from controlplane.core.membership import NodeStatus
from controlplane.core.table_replica import RoutingTable
from controlplane.node import SlotGained
from examples.kv.protocol import Connections, Message, Place, Unreachable
from examples.kv.store import Row, SlotStore, Ticket, Value, Version

ADDRESS_NAME: Final = "kv"
_FETCH_TIMEOUT_S: Final = 5.0
_ROUND_S: Final = 0.03
_LIVING: Final = (NodeStatus.ACTIVE, NodeStatus.DRAINING)


def place_of(table: RoutingTable | None, node_id: str) -> Place | None:
    """Where a node serves; None if the table does not say."""
    row = table.nodes.get(node_id) if table else None
    for address in row.addresses if row else ():
        if address.name == ADDRESS_NAME:
            return address.host, address.port
    return None


class Mover:
    """Fetches gained slots in a thread of its own.

    Args:
        node_id: this node.
        store: where the data goes.
        connections: for asking the others.
        table: gives the present routing table.
        on_complete: called with each slot that has become complete.
    """

    def __init__(
        self,
        node_id: str,
        store: SlotStore,
        connections: Connections,
        table: Callable[[], RoutingTable | None],
        on_complete: Callable[[int], None],
    ) -> None:
        self._node_id = node_id
        self._store = store
        self._connections = connections
        self._table = table
        self._on_complete = on_complete
        self._logger = structlog.get_logger().bind(node=node_id)
        self._sources: dict[int, list[str]] = {}
        self._spent: dict[Ticket, set[str]] = {}
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._thread = threading.Thread(target=self._run, name="kv-mover", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def expect(self, slots: Sequence[SlotGained]) -> None:
        """Remember who may have the data of slots that were gained."""
        with self._lock:
            for slot in slots:
                known = self._sources.get(slot.slot_id, [])
                self._sources[slot.slot_id] = list(dict.fromkeys([*slot.sources, *known]))
        self._wake.set()

    def sources(self, slot_id: int) -> list[str]:
        """Who may have the data of a slot that is still being fetched."""
        with self._lock:
            return list(self._sources.get(slot_id, ()))

    def _run(self) -> None:
        while True:
            self._wake.wait(_ROUND_S if self._store.incomplete() else None)
            self._wake.clear()
            unreachable: set[str] = set()
            for slot_id in self._store.incomplete():
                if self._fetch(slot_id, unreachable):
                    with self._lock:
                        self._sources.pop(slot_id, None)
                    self._on_complete(slot_id)

    def _fetch(self, slot_id: int, unreachable: set[str]) -> bool:
        """One round for one slot; True if it is complete now."""
        job = self._store.ticket(slot_id)
        if job is None:
            return False
        ticket, row = job
        if not row.leads:
            answer = self._ask(row.leader, ticket, row, unreachable) if row.leader else None
            return bool(answer and answer["status"] == "ok") and self._take(ticket, answer)
        spent = self._spent.setdefault(ticket, set())
        for source in self._candidates(slot_id, row):
            if source in spent:
                continue
            answer = self._ask(source, ticket, row, unreachable)
            if answer is None:
                if self._is_gone(source):
                    spent.add(source)
                continue
            if self._take(ticket, answer) and answer["status"] == "ok":
                return True
            spent.add(source)
            with self._lock:
                known = self._sources.setdefault(slot_id, [])
                known += [node_id for node_id in answer["sources"] if node_id not in known]
        if not spent.issuperset(self._candidates(slot_id, row)):
            return False
        del self._spent[ticket]
        self._logger.warning("slot_starts_without_a_complete_source", slot=slot_id, asked=sorted(spent))
        return self._store.fetched(ticket, {}, complete=True)

    def _candidates(self, slot_id: int, row: Row) -> list[str]:
        """Former holders first, then the present followers: this process may be the successor of one that died."""
        known = dict.fromkeys([*self.sources(slot_id), *row.followers])
        return [node_id for node_id in known if node_id != self._node_id]

    def _ask(self, source: str | None, ticket: Ticket, row: Row, unreachable: set[str]) -> Message | None:
        """Ask one holder; None if it could not be reached or says "later"."""
        place = place_of(self._table(), source) if source else None
        if source is None or place is None or source in unreachable:
            return None
        request = {
            "op": "fetch",
            "slot": ticket.slot_id,
            "term": row.token.term,
            "leader_epoch": ticket.leader_epoch,
            "epoch": self._store.epoch,
            "node": self._node_id,
            "leads": row.leads,
        }
        try:
            answer = self._connections.ask(place, request, _FETCH_TIMEOUT_S)
        except Unreachable:
            unreachable.add(source)
            return None
        return answer if answer["status"] in ("ok", "incomplete") else None

    def _take(self, ticket: Ticket, answer: Message | None) -> bool:
        if answer is None:
            return False
        values = {key: Value(text, Version(*version)) for key, (text, version) in answer["values"].items()}
        return self._store.fetched(ticket, values, complete=answer["status"] == "ok")

    def _is_gone(self, node_id: str) -> bool:
        """Whether the table says that a node which cannot be reached does not live any more."""
        table = self._table()
        row = table.nodes.get(node_id) if table else None
        return row is None or row.status not in _LIVING
