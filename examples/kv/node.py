"""A node of the key-value service: serves GET and PUT for the slots that it leads, and follows others.

python -m examples.kv.node --cluster demo --node-id n1 --bootstrap-servers localhost:9092
"""

import argparse
import logging
import os
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import structlog

from controlplane import node_agent
from controlplane.node import Access, Epoch, NodeCallbacks, NodeLoad, SessionState, SlotChanged, SlotGained, SlotLost
from controlplane.routing import RoutingTable
from examples.kv.load import LoadMeter, Work, resident_memory
from examples.kv.moving import ADDRESS_NAME, Mover, place_of
from examples.kv.protocol import Connections, Message, Server, Unreachable
from examples.kv.security import security_in
from examples.kv.store import Refused, Row, SlotStore, Token, Value, Version

_COPY_TIMEOUT_S: Final = 1.0
_TELL_OWNERS_S: Final = 1.0
_DRAIN_MS: Final = 20_000
_LINGER_S: Final = 2.0


class KvNode(NodeCallbacks):
    """The service of one process. The agent determines what the node owns."""

    def __init__(
        self,
        cluster: str,
        bootstrap_servers: str,
        node_id: str,
        host: str,
        port: int,
        load_s: float,
        *,
        security: Mapping[str, str] | None = None,
        copy_s: float = 0.0,
    ) -> None:
        self.node_id = node_id
        self._copy_s = copy_s
        self.store = SlotStore()
        self._meter = LoadMeter()
        self._connections = Connections()
        self._held: frozenset[int] = frozenset()
        self._adopted: RoutingTable | None = None
        self._adopting = threading.Lock()
        self._mover = Mover(node_id, self.store, self._connections, self._follow, self._complete)
        self._server = Server((host, port), self.answer)
        self.agent = node_agent(
            cluster,
            bootstrap_servers,
            node_id,
            addresses={ADDRESS_NAME: self._server.place},
            callbacks=self,
            load_source=self._load,
            load_interval_ms=round(load_s * 1_000),
            version="kv-1",
            security=security,
        )
        self._logger = structlog.get_logger().bind(cluster=cluster, node=node_id)

    def run(self) -> SessionState:
        """Serve until SIGTERM or SIGINT, then hand everything over and leave. Also ends if another process replaces it.

        Returns:
            ``LEFT`` or ``SUPERSEDED``.
        """
        self._mover.start()
        threading.Thread(target=self._tell_owners, name="kv-load", daemon=True).start()
        self.agent.start()
        self._logger.info("key-value node serves", place=self._server.place)
        ended_as = self.agent.run_until_signal(timeout_ms=_DRAIN_MS)
        # Other nodes own everything by now, and may still be fetching it.
        time.sleep(_LINGER_S)
        self._server.close()
        return ended_as

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

    def _complete(self, slot_id: int, gained_epoch: int) -> None:
        if not self._copy_s:
            self.agent.slot_ready(slot_id, Epoch(gained_epoch))
            return
        ready = threading.Timer(self._copy_s, self.agent.slot_ready, (slot_id, Epoch(gained_epoch)))
        ready.daemon = True
        ready.start()

    # -- requests -----------------------------------------------------------------------------------------------------

    def answer(self, request: Message) -> Message:
        """One request of a client or of another node."""
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
                case "load":
                    self._meter.add_owned({bundle_id: Work(*work) for bundle_id, work in request["bundles"].items()})
                    return {"status": "ok"}
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
                failure = self._copy_to(follower, slot_id, row, key, value)
                if failure is not None:
                    return {"status": "error", "message": f"follower {follower} has no copy: {failure}"}
            self._count(slot_id, key, len(key) + len(text), 0)
        return {"status": "ok", "slot": slot_id, "node": self.node_id, "version": value.version}

    def _get(self, key: str) -> Message:
        with self._serve(key) as slot_id:
            text = self.store.get(slot_id, key)
            self._count(slot_id, key, 0, len(text or ""))
        return {"status": "ok", "value": text}

    @contextmanager
    def _serve(self, key: str) -> Iterator[int]:
        """The key's slot, which this node may serve now. Its release waits for the end of the context.

        Raises:
            Refused: it may not, or the right to serve has ended meanwhile: another node may have written since.
        """
        with self.agent.serve_slot_of(key) as call:
            if call.access is not Access.ACCEPT or call.slot_id is None:
                raise Refused("migrating" if call.access is Access.MIGRATING else "moved", call.epoch)
            yield call.slot_id
        if not call.held:
            raise Refused("moved", call.epoch)

    def _copy_to(self, follower: str, slot_id: int, row: Row, key: str, value: Value) -> str | None:
        """Send a copy to a follower. Returns the error, or None."""
        place = place_of(self.agent.table, follower)
        if place is None:
            return "its address is not known"
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
            status = str(self._connections.ask(place, request, _COPY_TIMEOUT_S)["status"])
        except Unreachable as error:
            return str(error)
        return None if status == "ok" else status

    def _copy(self, request: Message) -> Message:
        token = Token(request["term"], request["leader_epoch"])
        value = Value(request["value"], Version(*request["version"]))
        self.store.copy(request["slot"], token, request["epoch"], request["key"], value)
        return {"status": "ok"}

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

    def _count(self, slot_id: int, key: str, bytes_in: int, bytes_out: int) -> None:
        table = self.agent.table
        namespace, separator, _ = key.partition(":")
        bundle_id = None
        if table is not None and separator and namespace in table.namespaces:
            bundle_id = table.bundle_for(namespace, key).bundle_id
        self._meter.count(slot_id, bundle_id, key, bytes_in, bytes_out)

    def _tell_owners(self) -> None:
        while True:
            time.sleep(_TELL_OWNERS_S)
            table = self.agent.table
            by_owner: dict[str, dict[str, Work]] = {}
            for bundle_id, work in self._meter.take_served().items():
                bundle = table.bundles.get(bundle_id) if table else None
                if bundle is not None and bundle.owner is not None:
                    by_owner.setdefault(bundle.owner, {})[bundle_id] = work
            self._meter.add_owned(by_owner.pop(self.node_id, {}))
            for owner, bundles in by_owner.items():
                place = place_of(table, owner)
                try:
                    if place is not None:
                        self._connections.ask(place, {"op": "load", "bundles": bundles}, _COPY_TIMEOUT_S)
                except Unreachable as error:
                    self._logger.info("load not told", owner=owner, error=str(error))

    def _load(self) -> NodeLoad:
        table = self.agent.table
        bundles = table.bundles.items() if table else ()
        owned = sorted(bundle_id for bundle_id, bundle in bundles if bundle.owner == self.node_id)
        bundle_loads, slot_loads, cpu = self._meter.report(owned, self.store.stored_bytes())
        return NodeLoad(cpu=cpu, memory=resident_memory(), bundles=bundle_loads, slots=slot_loads)


def end_process(failed: threading.ExceptHookArgs) -> None:
    """End the process after an error in any thread, because the cluster replaces only a node that has ended."""
    structlog.get_logger().error("thread_failed", exc_info=(failed.exc_type, failed.exc_value, failed.exc_traceback))
    os._exit(1)


def main() -> int:
    """The command line. Returns the exit status: 1 if another process has replaced this one."""
    threading.excepthook = end_process
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.INFO))
    parser = argparse.ArgumentParser(description="A node of the key-value service.")
    parser.add_argument("--cluster", required=True)
    parser.add_argument("--node-id", required=True)
    parser.add_argument("--bootstrap-servers", required=True)
    parser.add_argument("--security", type=Path, help="a file with Kafka's settings for TLS and login, KEY=VALUE lines")
    parser.add_argument("--host", default="127.0.0.1", help="where it listens; published to the other nodes as given")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument(
        "--copy-s", type=float, default=0.0, help="a copied slot counts as complete this much later, like a large one"
    )
    parser.add_argument("--load-interval-s", type=float, default=5.0, help="interval of load reports")
    options = parser.parse_args()
    ended_as = KvNode(
        options.cluster,
        options.bootstrap_servers,
        options.node_id,
        options.host,
        options.port,
        options.load_interval_s,
        security=security_in(options.security),
        copy_s=options.copy_s,
    ).run()
    return 0 if ended_as is SessionState.LEFT else 1


if __name__ == "__main__":
    sys.exit(main())
