"""The agent: drives the session machine against the log, follows the table, and tells the user's code what it owns.

Its threads: one sends heartbeats and takes acknowledgements, one follows the table and calls back, one measures the
load if it is asked to. An error in any of them ends all, loudly: a node that cannot follow the table must not go on
claiming to be alive.
"""

import queue
import signal
from collections.abc import Callable
from typing import Final, Self, assert_never

import structlog

from controlplane.codec.inputs import encode_input
from controlplane.config import HEARTBEATS, LOAD_REPORTS, MEMBERSHIP
from controlplane.core.identifiers import Epoch, Incarnation, SlotId
from controlplane.core.machines.machine import Woke
from controlplane.core.machines.node_session import FINAL_STATES, NodeSession, SessionSettings, SessionState
from controlplane.core.machines.session_messages import (
    ConfirmTable,
    DrainAsked,
    HeartbeatAcknowledged,
    LeaveAsked,
    SendHeartbeat,
    SendJoin,
    SendLeaving,
    SendLeft,
    SessionAction,
    SessionEvent,
    TableChanged,
    TableConfirmed,
    TableRead,
)
from controlplane.core.records import Heartbeat, InputPayload, NodeLeaving, NodeLeft, SlotSettings
from controlplane.core.routing_table.table_replica import RoutingTable
from controlplane.errors import ConfigurationError, FencedError, LogUnavailableError
from controlplane.node.callbacks import Access, NodeCallbacks, Ownership, tell
from controlplane.node.description import NodeDescription, NodeLoad, join_record, load_record
from controlplane.node.former_lives import last_incarnation
from controlplane.node.holdings import HoldingBook
from controlplane.node.metrics import NodeMetrics
from controlplane.ports import Clock, Delivery, EventWriter, LogReader, Mailbox, OutgoingRecord, Threads
from controlplane.table_follower import TableFollower

_STEP_MS: Final = 50
"""How often the session asks whether a record was delivered, while one is under way."""
_IDLE_MS: Final = 500
"""How often it looks at all."""
_TABLE_POLL_MS: Final = 100
_RETRY_S: Final = 0.2
_FLUSH_MS: Final = 2_000
_JOIN_S: Final = 15.0
_JOINS_A_WARNING: Final = 10


class NodeAgent:
    """A member of the cluster; thread-safe. A context manager: entering joins, leaving drains and leaves.

    Args:
        writer: appends the node's events; give records up after a while. It belongs to the agent.
        reader: reads the routing table; it belongs to the agent.
        clock: monotonic and wall time.
        threads: where its threads come from.
        node: who this is.
        callbacks: hears of gains and losses.
        load_source: measures the load; None sends no load reports.
        load_interval_ms: how often a load report is sent.
        settings: timing, and what to do when the log is lost.
        metrics: where to count.
        cluster: the cluster's name, for logs.
    """

    def __init__(  # noqa: PLR0913 - all by name, most with defaults
        self,
        *,
        writer: EventWriter,
        reader: LogReader,
        clock: Clock,
        threads: Threads,
        node: NodeDescription,
        cluster: str,
        callbacks: NodeCallbacks | None = None,
        load_source: Callable[[], NodeLoad] | None = None,
        load_interval_ms: int = 5_000,
        settings: SessionSettings | None = None,
        metrics: NodeMetrics | None = None,
    ) -> None:
        self._writer = writer
        self._clock = clock
        self._node = node
        self._callbacks = callbacks or NodeCallbacks()
        self._load_interval_ms = load_interval_ms
        self._metrics = metrics or NodeMetrics()
        self._logger = structlog.get_logger().bind(cluster=cluster, node=node.node_id)
        self._session = NodeSession(settings or SessionSettings())
        self._reader = reader
        self._follower = TableFollower(reader)
        self._book = HoldingBook(node.node_id)
        self._lock = threads.condition()
        self._inbox: Mailbox[SessionEvent] = threads.mailbox()
        self._confirmations: Mailbox[int] = threads.mailbox()
        self._incarnation_known = threads.signal()
        self._stopping = threads.signal()
        self._started_at_wall_ms = clock.wall_ms()
        self._joins_sent = 0
        self._lacked_table = False
        self._table: RoutingTable | None = None
        self._serve_until_ms = 0
        self._failure: BaseException | None = None
        self._threads = threads
        self._started = False
        self._running = [
            threads.thread(lambda: self._guarded(self._run_session), "node-session"),
            threads.thread(lambda: self._guarded(self._run_table), "node-table"),
        ]
        if load_source is not None:
            # Apart from the session: a measurement that takes its time must not hold heartbeats up.
            self._running.append(
                threads.thread(lambda: self._guarded(lambda: self._run_load(load_source)), "node-load")
            )

    def start(self) -> Self:
        """Read the table, join, and go on from there in threads; returns at once."""
        self._started = True
        for thread in self._running:
            thread.start()
        return self

    def stop(self, *, drain: bool = True, timeout_ms: int = 10_000) -> None:
        """Leave the cluster and end the threads.

        Args:
            drain: ask first to be relieved of everything, and wait for it, unless no other node could take it over.
            timeout_ms: how long to wait for that at most; then the node leaves with what it holds.
        """
        if self._failure is None and any(thread.is_alive() for thread in self._running):
            if drain and self._session.state in (SessionState.ACTIVE, SessionState.DRAINING):
                self._inbox.put(DrainAsked("stop"))
                with self._lock:
                    self._lock.wait_for(
                        lambda: self._book.holds_nothing or self._book.is_the_last_one or self._failure,
                        timeout_ms / 1_000,
                    )
            self._inbox.put(LeaveAsked("stop"))
        else:
            self._stopping.set()
        for thread in self._running if self._started else ():
            thread.join(_JOIN_S)
        self._writer.flush(_FLUSH_MS)
        self._writer.close()
        self._follower.close()

    def run_until_signal(self) -> None:
        """Block until SIGTERM or SIGINT, then leave in good order; for a process's main thread.

        Raises:
            BaseException: what ended the agent, if anything did before.
        """
        asked = self._threads.signal()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: asked.set())
        while not asked.wait(0.2):
            self.check()
        self.stop()

    def __enter__(self) -> Self:
        """Start, unless it was started already."""
        return self if self._started else self.start()

    def __exit__(self, *_: object) -> None:
        """Drain and leave."""
        self.stop()

    def check(self) -> None:
        """Raise what ended the agent, if anything did.

        Raises:
            FencedError: a greater incarnation of this node has joined.
            BaseException: a callback's error, or a log that cannot be followed.
        """
        if self._failure is not None:
            raise self._failure

    @property
    def state(self) -> SessionState:
        """Where the membership stands."""
        return self._session.state

    @property
    def table(self) -> RoutingTable | None:
        """The table that the node works with; None before the first."""
        return self._table

    def ownership(self, slot_id: SlotId) -> Ownership:
        """Whether the node may serve a slot now, with the fencing token to pass on."""
        ownership = self._book.ownership(slot_id)
        may_serve = self._failure is None and self._clock.monotonic_ms() < self._serve_until_ms
        return ownership if may_serve else ownership._replace(access=Access.MOVED)

    def slot_ready(self, slot_id: SlotId, gained_epoch: Epoch | None = None, synced_at_ms: int | None = None) -> bool:
        """The node has the slot's data: it serves it if it leads, and says so in its heartbeats.

        Args:
            slot_id: which slot.
            gained_epoch: ``SlotGained.epoch`` of the gain that the data was fetched for. Name it where fetching takes
                time: the slot may have been lost and gained again meanwhile, and then nothing happens.
            synced_at_ms: wall clock of the last complete copy, from a follower that copies from time to time: call
                again after each. Without it heartbeats call a follower in sync for as long as it holds the slot.

        Returns:
            False if the node does not hold the slot (any more).
        """
        return self._book.mark_ready(slot_id, gained_epoch, synced_at_ms)

    def _guarded(self, run: Callable[[], None]) -> None:
        try:
            run()
        except BaseException as failure:
            self._logger.exception("node agent failed", epoch=self._book.epoch)
            self._fail(failure)

    def _fail(self, failure: BaseException) -> None:
        self._metrics.failed.set(1)
        with self._lock:
            self._failure = self._failure or failure
            self._stopping.set()
            self._lock.notify_all()

    # -- the session's thread ----------------------------------------------------------------------------------------

    def _run_session(self) -> None:
        wake_at_ms: int | None = 0
        while not self._stopping.is_set():
            output = self._session.on_event(self._clock.monotonic_ms(), self._next_event(wake_at_ms))
            self._serve_until_ms = self._session.serve_until_ms
            wake_at_ms = output.next_wake_at_ms
            for action in output.actions:
                self._perform(action)
            self._writer.poll(0)
            self._show()
            if self._session.incarnation:
                self._incarnation_known.set()
            if self._session.state in FINAL_STATES:
                self._stopping.set()
        if self._session.state is SessionState.SUPERSEDED:
            message = f"node {self._node.node_id!r}: a greater incarnation has joined, this process must stop"
            raise FencedError(message)

    def _next_event(self, wake_at_ms: int | None) -> SessionEvent:
        wait_ms = _STEP_MS if self._writer.awaits_delivery else _IDLE_MS
        if wake_at_ms is not None:
            wait_ms = min(wait_ms, wake_at_ms - self._clock.monotonic_ms())
        try:
            return self._inbox.get(timeout=max(wait_ms, 1) / 1_000)
        except queue.Empty:
            return Woke()

    def _perform(self, action: SessionAction) -> None:
        node = self._node
        match action:
            case SendJoin(incarnation=incarnation):
                self._count_join(incarnation)
                self._send(MEMBERSHIP, join_record(node, incarnation, self._started_at_wall_ms))
            case SendHeartbeat(sent_at_ms=sent_at_ms):
                self._joins_sent = 0
                self._send(HEARTBEATS, self._heartbeat(), lambda delivery: self._on_heartbeat(delivery, sent_at_ms))
            case SendLeaving(incarnation=incarnation, reason=reason):
                self._send(MEMBERSHIP, NodeLeaving(node.node_id, incarnation, reason))
            case SendLeft(incarnation=incarnation, reason=reason):
                self._send(MEMBERSHIP, NodeLeft(node.node_id, incarnation, reason))
            case ConfirmTable(asked_at_ms=asked_at_ms):
                self._confirmations.put(asked_at_ms)
            case _:
                assert_never(action)

    def _count_join(self, incarnation: Incarnation) -> None:
        """Whoever waits for this node has to see what it waits for."""
        self._joins_sent += 1
        if self._joins_sent % _JOINS_A_WARNING == 0:
            text = "not admitted yet: is there a leader, and does topic dead-letters say why the join is refused?"
            self._logger.warning(text, joins=self._joins_sent, incarnation=incarnation)

    def _heartbeat(self) -> Heartbeat:
        node, sent_at_ms = self._node, self._clock.wall_ms()
        settings = self._table.settings if self._table else None
        started_with = None
        if settings is not None:
            started_with = SlotSettings(settings.slot_count, settings.replica_count, settings.hash_function.value)
        statuses = self._book.statuses(sent_at_ms)
        return Heartbeat(
            node.node_id, self._session.incarnation, sent_at_ms, self._book.epoch, node.role, started_with, *statuses
        )

    def _on_heartbeat(self, delivery: Delivery, sent_at_ms: int) -> None:
        self._metrics.heartbeats.labels("given_up" if delivery.error else "acknowledged").inc()
        if delivery.error is None:
            self._inbox.put(HeartbeatAcknowledged(sent_at_ms))
        self._on_delivery(delivery)

    def _on_delivery(self, delivery: Delivery) -> None:
        """A right that was never there is a mistake of the set-up; one that was taken away may be given back."""
        if delivery.denied:
            self._logger.warning("event not allowed", error=delivery.error)
            if self._session.last_acknowledged_ms is None:
                self._fail(ConfigurationError(delivery.error))

    def _send(self, topic: str, payload: InputPayload, on_delivery: Callable[[Delivery], None] | None = None) -> None:
        try:
            record = OutgoingRecord(topic, self._node.node_id.encode(), encode_input(payload))
            self._writer.send(record, on_delivery or self._on_delivery)
        except LogUnavailableError as error:
            self._logger.warning("event not sent", kind=type(payload).__name__, error=str(error))

    def _show(self) -> None:
        now_ms = self._clock.monotonic_ms()
        self._metrics.serves.set(1 if now_ms < self._serve_until_ms else 0)
        if self._session.last_acknowledged_ms is not None:
            self._metrics.heartbeat_age_ms.set(now_ms - self._session.last_acknowledged_ms)
        if self._session.table_known_at_ms is not None:
            self._metrics.table_age_ms.set(now_ms - self._session.table_known_at_ms)
        lacks_table = self._session.lacks_table(now_ms)
        if lacks_table and not self._lacked_table:
            # The cluster sees a member that lives: nobody else could tell why it serves nothing.
            text = "routing table not read to its end for too long: requests are refused until it is"
            self._logger.warning(text, epoch=self._book.epoch)
        self._lacked_table = lacks_table
        with self._lock:
            self._lock.notify_all()

    # -- the table's thread ------------------------------------------------------------------------------------------

    def _run_table(self) -> None:
        read_once = False
        asked_at_ms: int | None = None
        while not self._stopping.is_set():
            asked_at_ms = self._confirmation_wanted(asked_at_ms)
            try:
                progress = self._follower.step(_TABLE_POLL_MS)
            except LogUnavailableError as error:
                self._logger.warning("routing table unavailable", error=str(error), epoch=self._book.epoch)
                self._stopping.wait(_RETRY_S)
                continue
            if not read_once:
                if not progress.ended:
                    continue
                read_once = True
                self._first_table(self._follower.table)
            else:
                for table in progress.tables:
                    self._take(table)
            if progress.ended and asked_at_ms is not None:
                self._inbox.put(TableConfirmed(asked_at_ms))
                asked_at_ms = None

    def _confirmation_wanted(self, asked_at_ms: int | None) -> int | None:
        """The reading to its end that is under way, or the next one: many questions must not keep it from its end."""
        if asked_at_ms is None and not self._confirmations.empty():
            while not self._confirmations.empty():
                asked_at_ms = self._confirmations.get()
            self._follower.fetch_anew()
        return asked_at_ms

    def _first_table(self, table: RoutingTable | None) -> None:
        row = table.nodes.get(self._node.node_id) if table else None
        if row is None:
            known = last_incarnation(self._reader, self._node.node_id, self._stopping)
            self._follower.fetch_anew()
        else:
            known = row.incarnation
        self._inbox.put(TableRead(known, self._clock.wall_ms()))
        while not self._incarnation_known.wait(_RETRY_S):
            if self._stopping.is_set():
                return
        if table is not None:
            self._take(table)

    def _take(self, table: RoutingTable) -> None:
        changes = self._book.follow(table, self._session.incarnation)
        with self._lock:
            self._table = table
            self._lock.notify_all()
        leads, follows, bundles = self._book.count()
        self._inbox.put(TableChanged(table.nodes.get(self._node.node_id), table.settings.silence_limit_ms))
        self._metrics.epoch.set(table.epoch)
        self._metrics.slots.labels("leader").set(leads)
        self._metrics.slots.labels("follower").set(follows)
        self._metrics.bundles.set(bundles)
        tell(self._callbacks, changes)

    # -- the load's thread --------------------------------------------------------------------------------------------

    def _run_load(self, load_source: Callable[[], NodeLoad]) -> None:
        while not self._stopping.wait(self._load_interval_ms / 1_000):
            if self._session.state is SessionState.ACTIVE:
                load, sent_at_ms, started_at_ms = load_source(), self._clock.wall_ms(), self._started_at_wall_ms
                incarnation = self._session.incarnation
                report = load_record(self._node, load, incarnation, sent_at_ms=sent_at_ms, started_at_ms=started_at_ms)
                self._send(LOAD_REPORTS, report)
                self._metrics.load_reports.inc()
