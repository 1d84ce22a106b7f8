"""Fetching the data of gained slots, in rounds, until every slot that the node holds is complete.

A follower fetches from its slot leader only, because only the leader copies later PUTs to it. A slot leader asks every
node that may have held the slot, until their data is complete. If all have answered and something is still missing, the
slot starts with the data that was found, and a warning is logged.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import structlog

from controlplane.routing import RoutingTable
from examples.kv.store import Holding, Range, Row, SlotStore, Ticket, Token, Value, Version
from examples.serving.protocol import Connections, Message, Place, Unreachable

ADDRESS_NAME: Final = "kv"
_FETCH_TIMEOUT_S: Final = 5.0
_ROUND_S: Final = 0.03


def place_of(table: RoutingTable | None, node_id: str) -> Place | None:
    """The address of a node's service; None if the table does not have it."""
    row = table.nodes.get(node_id) if table else None
    for address in row.addresses if row else ():
        if address.name == ADDRESS_NAME:
            return address.host, address.port
    return None


class Mover:
    """Fetches gained slots in a thread of its own.

    Args:
        node_id: this node.
        store: receives the data.
        connections: to the other nodes.
        table: makes the store use the present routing table, and returns it.
        on_complete: called with each slot that has become complete, and the epoch in which it was gained.
    """

    def __init__(
        self,
        node_id: str,
        store: SlotStore,
        connections: Connections,
        table: Callable[[], RoutingTable | None],
        on_complete: Callable[[int, int], None],
    ) -> None:
        self._node_id = node_id
        self._store = store
        self._connections = connections
        self._table = table
        self._on_complete = on_complete
        self._logger = structlog.get_logger().bind(node=node_id)
        self._sources: dict[int, tuple[int, list[str]]] = {}
        self._places: dict[str, Place] = {}
        self._spent: dict[int, tuple[Ticket, set[str]]] = {}
        self._without_source: list[int] = []
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._thread = threading.Thread(target=self._run, name="kv-mover", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def expect(self, table: RoutingTable, sources: Mapping[int, Sequence[str]]) -> None:
        """Store which nodes may have the data of slots, the likeliest first. Call it before the store adopts the gain.

        Args:
            table: the table in which the slots were gained, or their sources changed.
            sources: node ids by slot.
        """
        with self._lock:
            # A node that leaves in order stays reachable for a while after it was removed from the table.
            self._places.update({node_id: place for node_id in table.nodes if (place := place_of(table, node_id))})
            for slot_id, names in sources.items():
                _, known = self._sources.get(slot_id, (0, []))
                self._sources[slot_id] = table.epoch, list(dict.fromkeys([*names, *known]))

    def wake(self) -> None:
        """Wake the thread: there is something to fetch."""
        self._wake.set()

    def fetch_once(self) -> None:
        """Run one round over all slots that are not complete."""
        self._table()
        unreachable: set[str] = set()
        for slot_id in self._store.incomplete():
            job = self._store.ticket(slot_id)
            if job is not None and self._fetch(*job, unreachable):
                self._forget(job[0])
                self._on_complete(slot_id, job[0].gained_epoch)
        if self._without_source:
            self._logger.warning("slots start without a complete source", slots=self._without_source)
            self._without_source = []

    def answer(self, request: Message) -> Message:
        """The answer to another node that asks for a slot.

        Raises:
            Refused: see :meth:`SlotStore.fetch_as_follower`.
        """
        slot_id, token = request["slot"], Token(request["term"], request["leader_epoch"])
        if request["leads"]:
            holding = self._store.fetch_as_leader(slot_id, token)
        else:
            holding = self._store.fetch_as_follower(slot_id, token, request["epoch"], request["node"])
        return {"status": "ok", "sources": self._sources_of(slot_id), **holding._asdict()}

    def _run(self) -> None:
        while True:
            self._wake.wait(_ROUND_S if self._store.incomplete() else None)
            self._wake.clear()
            self.fetch_once()

    def _sources_of(self, slot_id: int) -> list[str]:
        with self._lock:
            return list(self._sources.get(slot_id, (0, []))[1])

    def _forget(self, ticket: Ticket) -> None:
        """Forget the sources of a gain that is complete. Those of a later gain stay."""
        self._spent.pop(ticket.slot_id, None)
        with self._lock:
            if self._sources.get(ticket.slot_id, (0, []))[0] <= ticket.table_epoch:
                self._sources.pop(ticket.slot_id, None)

    def _spent_for(self, ticket: Ticket) -> set[str]:
        """The nodes that have been asked. With another table or leader, all are asked again."""
        earlier, spent = self._spent.get(ticket.slot_id, (None, set()))
        spent = spent if earlier == ticket else set()
        self._spent[ticket.slot_id] = ticket, spent
        return spent

    def _fetch(self, ticket: Ticket, row: Row, unreachable: set[str]) -> bool:
        """Run one round for one slot. Returns whether it is complete now."""
        if not row.leads:
            answer = self._ask(row.leader, ticket, row, unreachable)
            return answer is not None and self._store.fetched(ticket, _holding_in(answer))
        spent = self._spent_for(ticket)
        for source in self._sources_to_ask(ticket.slot_id, row):
            if source in spent:
                continue
            answer = self._ask(source, ticket, row, unreachable)
            if answer is None:
                if self._is_gone(source):
                    spent.add(source)
                continue
            holding = _holding_in(answer)
            if self._store.fetched(ticket, holding):
                return True
            # A node that is cut off from the log reads no newer table, but the request has fenced it.
            if holding.table_epoch >= ticket.table_epoch or self._is_gone(source):
                spent.add(source)
            self._add_sources(ticket, answer["sources"])
        if not spent.issuperset(self._sources_to_ask(ticket.slot_id, row)):
            return False
        started = self._store.start_with_what_there_is(ticket)
        self._without_source += [ticket.slot_id] if started else []
        return started

    def _add_sources(self, ticket: Ticket, names: Sequence[str]) -> None:
        with self._lock:
            epoch, known = self._sources.get(ticket.slot_id, (ticket.table_epoch, []))
            self._sources[ticket.slot_id] = epoch, list(dict.fromkeys([*known, *names]))

    def _sources_to_ask(self, slot_id: int, row: Row) -> list[str]:
        """Former holders, then the present followers, as this process may be the successor of one that died."""
        known = dict.fromkeys([*self._sources_of(slot_id), *row.followers])
        return [node_id for node_id in known if node_id != self._node_id]

    def _ask(self, source: str | None, ticket: Ticket, row: Row, unreachable: set[str]) -> Message | None:
        """Ask one holder. Returns None if it could not be reached or has to be asked again later."""
        if source is None or source in unreachable:
            return None
        place = place_of(self._table(), source) or self._places.get(source)
        if place is None:
            return None
        request = {
            "op": "fetch",
            "slot": ticket.slot_id,
            "term": row.token.term,
            "leader_epoch": ticket.leader_epoch,
            "epoch": ticket.table_epoch,
            "node": self._node_id,
            "leads": row.leads,
        }
        try:
            answer = self._connections.ask(place, request, _FETCH_TIMEOUT_S)
        except Unreachable:
            unreachable.add(source)
            return None
        return answer if answer["status"] == "ok" else None

    def _is_gone(self, node_id: str) -> bool:
        """Whether, by the table, a node that cannot be reached no longer lives."""
        table = self._table()
        row = table.nodes.get(node_id) if table else None
        return row is None or not row.status.lives


def _holding_in(answer: Message) -> Holding:
    values = {key: Value(text, Version(*version)) for key, (text, version) in answer["values"].items()}
    return Holding(values, tuple(Range(*each) for each in answer["covered"]), answer["table_epoch"])
