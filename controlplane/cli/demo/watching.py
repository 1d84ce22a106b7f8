"""What the log and the table say, with the wall-clock times at which a reader here saw them.

The broker is on the same machine, so its append times and the times of kills and swaps are of one clock.
"""

import threading
import time
from dataclasses import dataclass

from controlplane.bootstrap.readers import LastHeartbeat, LoggedDecision
from controlplane.codec.decisions import DecisionAssembler
from controlplane.codec.inputs import decode_input
from controlplane.codec.outputs import decode_candidate
from controlplane.codec.table import decode_row
from controlplane.config import CANDIDATES, DECISIONS, HEARTBEATS, ROUTING_TABLE
from controlplane.core.identifiers import NodeId
from controlplane.core.outputs import Candidate
from controlplane.core.records import Heartbeat
from controlplane.core.table_replica import RoutingTable, TableReplica
from controlplane.errors import ControlPlaneError
from controlplane.ports import LogReader, RawRecord

WATCHED_TOPICS = (DECISIONS, ROUTING_TABLE, HEARTBEATS, CANDIDATES)
_BATCH = 2_000
_POLL_MS = 20


def wall_ms() -> int:
    """Milliseconds since 1970 by this machine's clock."""
    return time.time_ns() // 1_000_000


@dataclass(frozen=True, slots=True)
class SwappedTable:
    """A table and when a reader here swapped to it."""

    table: RoutingTable
    swapped_at_ms: int


class Observer:
    """Reads everything from the start of the log in a thread of its own; its lists only grow.

    Args:
        reader: belongs to the observer from here on; closed by :meth:`stop`.
    """

    def __init__(self, reader: LogReader) -> None:
        self._reader = reader
        self._lock = threading.Lock()
        self._decisions: list[LoggedDecision] = []
        self._tables: list[SwappedTable] = []
        self._candidates: list[Candidate] = []
        self._heartbeats: dict[NodeId, LastHeartbeat] = {}
        self._now_ms = 0
        self._assembler = DecisionAssembler()
        self._replica = TableReplica()
        self._error: ControlPlaneError | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="demo-observer", daemon=True)

    def start(self) -> None:
        """Begin to read."""
        self._thread.start()

    def stop(self) -> None:
        """End reading and close the reader."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()
        self._reader.close()

    def check(self) -> None:
        """Raise what ended the reading, if anything did."""
        if self._error is not None:
            raise self._error

    @property
    def decisions(self) -> list[LoggedDecision]:
        """All decisions so far, in order."""
        with self._lock:
            return list(self._decisions)

    @property
    def tables(self) -> list[SwappedTable]:
        """All tables so far, in order."""
        with self._lock:
            return list(self._tables)

    @property
    def table(self) -> RoutingTable | None:
        """The newest table."""
        with self._lock:
            return self._tables[-1].table if self._tables else None

    @property
    def candidates(self) -> list[Candidate]:
        """All split and shed candidates so far."""
        with self._lock:
            return list(self._candidates)

    @property
    def heartbeats(self) -> dict[NodeId, LastHeartbeat]:
        """The newest heartbeat of each node."""
        with self._lock:
            return dict(self._heartbeats)

    @property
    def now_ms(self) -> int:
        """The greatest append time in ``heartbeats``: log time."""
        return self._now_ms

    def _run(self) -> None:
        try:
            self._reader.assign(
                {
                    place: offset
                    for topic in WATCHED_TOPICS
                    for place, offset in self._reader.start_offsets(topic).items()
                }
            )
            while not self._stop.is_set():
                for record in self._reader.poll(_BATCH, _POLL_MS).records:
                    self._take(record)
        except ControlPlaneError as error:
            self._error = error

    def _take(self, record: RawRecord) -> None:
        if record.value is None and record.topic != ROUTING_TABLE:
            return
        match record.topic:
            case "decisions":
                self._take_decision(record)
            case "routing-table":
                self._take_row(record)
            case "candidates":
                candidate = decode_candidate(record.value or b"")
                with self._lock:
                    self._candidates.append(candidate)
            case _:
                self._take_heartbeat(record)

    def _take_decision(self, record: RawRecord) -> None:
        decision = self._assembler.add(record.value or b"")
        if decision is not None:
            with self._lock:
                self._decisions.append(LoggedDecision(decision, record.offset, record.append_time_ms))

    def _take_row(self, record: RawRecord) -> None:
        key = record.key or b""
        row = None if record.value is None else decode_row(key, record.value)
        table = self._replica.fold(key, record.value, row)
        if table is not None:
            with self._lock:
                self._tables.append(SwappedTable(table, wall_ms()))

    def _take_heartbeat(self, record: RawRecord) -> None:
        self._now_ms = max(self._now_ms, record.append_time_ms)
        payload = decode_input(HEARTBEATS, record).payload
        if isinstance(payload, Heartbeat):
            with self._lock:
                self._heartbeats[payload.node_id] = LastHeartbeat(payload, record.append_time_ms)
