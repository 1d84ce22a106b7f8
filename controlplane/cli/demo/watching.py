"""The observed decisions and tables, with the wall-clock times at which a reader of this process saw them.

The broker is on the same machine, so its append times and the times of kills and swaps are from one clock.
"""

import threading
import time
from contextlib import suppress
from dataclasses import dataclass

from controlplane.codec.inputs import decode_input
from controlplane.codec.outputs import decode_candidate
from controlplane.config import CANDIDATES, DECISIONS, HEARTBEATS
from controlplane.core.bundles.candidate import Candidate
from controlplane.core.membership.inputs import Heartbeat
from controlplane.core.routing.replica import RoutingTable
from controlplane.core.values.identifiers import NodeId
from controlplane.errors import ControlPlaneError, InvalidInputError
from controlplane.inspection.readers import HeartbeatTail, LastHeartbeat, LoggedDecision
from controlplane.ports import LogReader, RawRecord
from controlplane.routing import RoutingClient
from controlplane.topic_reading.decision_stream import DecisionStream

WATCHED_TOPICS = (DECISIONS, HEARTBEATS, CANDIDATES)
_BATCH = 2_000
_POLL_MS = 20


def wall_ms() -> int:
    """Milliseconds since 1970 by this machine's clock."""
    return time.time_ns() // 1_000_000


@dataclass(frozen=True, slots=True)
class SwappedTable:
    """A table and the time at which a reader of this process swapped to it."""

    table: RoutingTable
    swapped_at_ms: int


class Observer:
    """Reads the log from its start in a thread of its own, and follows the table with a routing client.

    Its lists only grow.

    Args:
        reader: for the log.
        client: for the table. The observer owns both; :meth:`stop` closes them.
    """

    def __init__(self, reader: LogReader, client: RoutingClient) -> None:
        self._reader = reader
        self._client = client
        self._lock = threading.Lock()
        self._decisions: list[LoggedDecision] = []
        self._tables: list[SwappedTable] = []
        self._candidates: list[Candidate] = []
        self._heartbeats: dict[NodeId, LastHeartbeat] = {}
        self._newest_ms: dict[int, int] = {}
        self._stream = DecisionStream()
        self._error: ControlPlaneError | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="demo-observer", daemon=True)

    def start(self) -> None:
        """Begin to read."""
        self._client.on_change(self._take_table)
        self._client.start()
        self._thread.start()

    def stop(self) -> None:
        """End reading and close reader and client."""
        self._client.close()
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()
        self._reader.close()

    def check(self) -> None:
        """Raise the error that ended the reading, if there was one."""
        if self._error is not None:
            raise self._error
        _ = self._client.table

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
    def heartbeats(self) -> HeartbeatTail:
        """The newest heartbeat of each node, and how old they are."""
        with self._lock:
            return HeartbeatTail(dict(self._newest_ms), dict(self._heartbeats))

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
        """Skip unreadable records: their reader writes dead letters."""
        with suppress(InvalidInputError):
            if record.topic == HEARTBEATS:
                self._take_heartbeat(record)
            elif record.topic == DECISIONS:
                self._take_decision(record)
            else:
                candidate = decode_candidate(record.value or b"")
                with self._lock:
                    self._candidates.append(candidate)

    def _take_decision(self, record: RawRecord) -> None:
        decision = self._stream.take(record)
        if decision is not None:
            with self._lock:
                self._decisions.append(LoggedDecision(decision, record.offset, record.append_time_ms))

    def _take_table(self, _before: RoutingTable | None, table: RoutingTable) -> None:
        with self._lock:
            self._tables.append(SwappedTable(table, wall_ms()))

    def _take_heartbeat(self, record: RawRecord) -> None:
        payload = decode_input(HEARTBEATS, record).payload
        with self._lock:
            newest_ms = self._newest_ms.get(record.partition, 0)
            self._newest_ms[record.partition] = max(newest_ms, record.append_time_ms)
            if isinstance(payload, Heartbeat):
                self._heartbeats[payload.node_id] = LastHeartbeat(payload, record.partition, record.append_time_ms)
