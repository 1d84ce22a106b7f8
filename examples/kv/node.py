"""A node of the key-value service: serves GET and PUT for the slots that it leads, and follows others.

python -m examples.kv.node --cluster demo --node-id n1 --bootstrap-servers localhost:9092
"""

import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final

from controlplane.node import Access, Epoch, NodeLoad, SlotChanged, SlotGained, SlotLost
from controlplane.routing import RoutingTable
from examples.kv.load import LoadMeter
from examples.kv.moving import ADDRESS_NAME, Mover, place_of
from examples.kv.store import Refused, Row, SlotStore, Token, Value, Version
from examples.serving.protocol import Connections, Message, Place, Server, Unreachable
from examples.serving.service import Service, serve, service_parser

_COPY_TIMEOUT_S: Final = 1.0
_READ_ON_MS: Final = 200
"""How long a request waits here until the node knows what its sender knows."""


class KvNode(Service):
    """The service of one process. The agent determines which slots it leads and follows.

    Args:
        node_id: its name in the cluster.
        place: where it listens; port 0 takes a free one.
        copy_s: a copied slot counts as complete this much later, like a large one.
    """

    version = "kv-1"

    def __init__(self, node_id: str, place: Place = ("127.0.0.1", 0), *, copy_s: float = 0.0) -> None:
        self.node_id = node_id
        self._copy_s = copy_s
        self.store = SlotStore()
        self._meter = LoadMeter()
        self._connections = Connections()
        self._held: frozenset[int] = frozenset()
        self._adopted: RoutingTable | None = None
        self._adopting = threading.Condition()
        self._mover = Mover(node_id, self.store, self._connections, self._follow, self._complete)
        self._server = Server(place, self.answer)

    @property
    def addresses(self) -> Mapping[str, Place]:
        """Where it answers clients and the other nodes."""
        return {ADDRESS_NAME: self._server.place}

    def start(self) -> None:
        """Begin to fetch what the agent says."""
        self._mover.start()

    def close(self) -> None:
        """Answer no more requests."""
        self._server.close()

    # -- what the agent tells -----------------------------------------------------------------------------------------

    def on_slots_gained(self, gained: Sequence[SlotGained]) -> None:
        """Fetch them."""
        self._expect(gained)
        with self._adopting:
            self._held |= {slot.slot_id for slot in gained}
            self._adopt(self.agent.table)
        self._mover.wake()

    def on_slots_lost(self, lost: Sequence[SlotLost]) -> None:
        """Keep their data for the nodes that fetch it."""
        with self._adopting:
            self._held -= {slot.slot_id for slot in lost}
            self._adopt(self.agent.table)

    def on_slots_changed(self, changed: Sequence[SlotChanged]) -> None:
        """Serve under the new rows. Slots that are still being fetched may have other sources now."""
        incomplete = set(self.store.incomplete())
        self._expect([slot for slot in changed if slot.slot_id in incomplete])
        with self._adopting:
            self._adopt(self.agent.table)

    def _expect(self, slots: Sequence[SlotGained | SlotChanged]) -> None:
        if self.agent.table is not None:
            self._mover.expect(self.agent.table, {slot.slot_id: slot.sources for slot in slots})

    def _follow(self) -> RoutingTable | None:
        """Adopt the agent's present table, unless a callback has to say first what it changes.

        Called before each request, because a table that changes no slot of this node has no callback.
        """
        if self.agent.table is not self._adopted:
            with self._adopting:
                table = self.agent.table
                if table is not None and not self._awaits_callback(table):
                    self._adopt(table)
        return self._adopted

    def _awaits_callback(self, table: RoutingTable) -> bool:
        """Whether epochs were skipped and the row of a held slot was rewritten.

        Other nodes may have held the slot meanwhile, and this one may miss their writes. The agent knows. It is about
        to report the slot as lost and gained, or as changed.
        """
        before = self._adopted
        if before is None or table.epoch <= before.epoch + 1:
            return False
        return any(table.slots[slot_id] is not before.slots[slot_id] for slot_id in self._held)

    def _is_to_gain(self, slot_id: int) -> bool:
        """Whether the present table gives this node a slot of which the callback has not come yet."""
        table = self.agent.table
        if table is None or slot_id in self._held or slot_id >= len(table.slots):
            return False
        return self.node_id in table.slots[slot_id].replicas

    def _adopt(self, table: RoutingTable | None) -> None:
        if table is None:
            return
        rows = {}
        for slot_id in self._held:
            slot = table.slots[slot_id]
            if self.node_id in slot.replicas:
                token = Token(table.term, slot.leader_epoch)
                rows[slot_id] = Row(slot.leader == self.node_id, token, slot.leader, slot.followers)
        self.store.adopt(table.epoch, rows, time.monotonic())
        self._adopted = table
        self._adopting.notify_all()

    def _complete(self, slot_id: int, gained_epoch: int) -> None:
        if not self._copy_s:
            self.agent.slot_ready(slot_id, Epoch(gained_epoch))
            return
        ready = threading.Timer(self._copy_s, self.agent.slot_ready, (slot_id, Epoch(gained_epoch)))
        ready.daemon = True
        ready.start()

    # -- requests -----------------------------------------------------------------------------------------------------

    def answer(self, request: Message) -> Message:
        """One request of a client or of another node. A refusal names the epoch of the table by which it is refused."""
        if request["op"] in ("put", "get"):
            # Otherwise the client would be refused by an older table than its own, and would ask until it is read here.
            self.agent.wait_for_epoch(Epoch(request.get("epoch", 0)), timeout_ms=_READ_ON_MS)
        self._follow()
        try:
            match request["op"]:
                case "put":
                    return self._put(request["key"], request["value"])
                case "get":
                    return self._get(request["key"])
                case "copy":
                    return self._copy(request)
                case "fetch":
                    return self._mover.answer(request)
                case "status":
                    return self._status()
                case other:
                    return {"status": "error", "message": f"unknown op {other!r}"}
        except Refused as refused:
            return {"status": refused.status, "epoch": refused.epoch}

    def _put(self, key: str, text: str) -> Message:
        with self._serve(key) as slot_id:
            value, row = self.store.put(slot_id, key, text)
            for follower in row.followers:
                answer = self._copy_to(follower, slot_id, row, key, value)
                if answer["status"] != "ok":
                    failure = answer.get("message", answer["status"])
                    return {**answer, "status": "error", "message": f"follower {follower} has no copy: {failure}"}
            self._meter.count(slot_id, len(key) + len(text))
        return {"status": "ok", "slot": slot_id, "node": self.node_id, "version": value.version}

    def _get(self, key: str) -> Message:
        with self._serve(key) as slot_id:
            text = self.store.get(slot_id, key)
            self._meter.count(slot_id, len(text or ""))
        return {"status": "ok", "value": text}

    @contextmanager
    def _serve(self, key: str) -> Iterator[int]:
        """The key's slot, which this node may serve now. Its release waits for the end of the context.

        Raises:
            Refused: it may not, or the right to serve has ended meanwhile: another node may have written since.
        """
        with self.agent.serve_slot_of(key) as request:
            if request.access is not Access.ACCEPT or request.slot_id is None:
                raise Refused("migrating" if request.access is Access.MIGRATING else "moved", request.epoch)
            yield request.slot_id
        if not request.held:
            raise Refused("moved", request.epoch)

    def _copy_to(self, follower: str, slot_id: int, row: Row, key: str, value: Value) -> Message:
        """Send a copy to a follower; return its answer. A refusal names the epoch of its table."""
        place = place_of(self.agent.table, follower)
        if place is None:
            return {"status": "error", "message": "its address is not known"}
        request = {
            "op": "copy",
            "slot": slot_id,
            "term": row.token.term,
            "leader_epoch": row.token.leader_epoch,
            "epoch": self.store.epoch,
            "key": key,
            "value": value.text,
            "version": value.version,
        }
        try:
            return self._connections.ask(place, request, _COPY_TIMEOUT_S)
        except Unreachable as error:
            return {"status": "error", "message": str(error)}

    def _copy(self, request: Message) -> Message:
        try:
            self._store_copy(request)
        except Refused:
            if not self._gains(request["slot"], Epoch(request["epoch"])):
                raise
            self._store_copy(request)
        return {"status": "ok"}

    def _store_copy(self, request: Message) -> None:
        token = Token(request["term"], request["leader_epoch"])
        value = Value(request["value"], Version(*request["version"]))
        self.store.copy(request["slot"], token, request["epoch"], request["key"], value)

    def _gains(self, slot_id: int, epoch: Epoch) -> bool:
        """Wait for a moment until the node has the slot that its leader's table gives to it; return whether it has."""
        end_s = time.monotonic() + _READ_ON_MS / 1_000
        self.agent.wait_for_epoch(epoch, timeout_ms=_READ_ON_MS)
        with self._adopting:
            self._adopting.wait_for(lambda: not self._is_to_gain(slot_id), max(0.0, end_s - time.monotonic()))
            return slot_id in self._held

    def _status(self) -> Message:
        return {
            "status": "ok",
            "node": self.node_id,
            "state": self.agent.state.value,
            "epoch": self.store.epoch,
            "held": len(self._held),
            "incomplete": self.store.incomplete(),
        }

    # -- load ---------------------------------------------------------------------------------------------------------

    def load(self) -> NodeLoad:
        """What the process takes, and the requests for the slots that it leads."""
        return self._meter.report(self.store.stored_bytes())


def main() -> int:
    """The command line. Returns the exit status: 1 if another process has replaced this one."""
    parser = service_parser("A node of the key-value service.")
    parser.add_argument(
        "--copy-s", type=float, default=0.0, help="a copied slot counts as complete this much later, like a large one"
    )
    options = parser.parse_args()
    return serve(KvNode(options.node_id, (options.host, options.port), copy_s=options.copy_s), options)


if __name__ == "__main__":
    sys.exit(main())
