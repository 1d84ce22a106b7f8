"""The agent: a process's view of its membership, and the threads that maintain it.

One thread sends heartbeats and receives acknowledgements (``session_thread``), one follows the table and runs the
callbacks (``table_thread``), and an optional one measures the load (``load_thread``). An error in any of them ends all:
a node that cannot follow the table must not continue to claim that it is alive.
"""

import signal
from functools import partial
from secrets import token_hex
from typing import Final, Self

from prometheus_client import REGISTRY, CollectorRegistry

from controlplane.core.routing.replica import RoutingTable
from controlplane.core.session.messages import DrainAsked, LeaveAsked
from controlplane.core.session.node_session import HEARD_STATES, SessionSettings, SessionState
from controlplane.core.values.identifiers import Epoch, ProcessId, SlotId
from controlplane.errors import SupersededError
from controlplane.node.callbacks import Access, NodeCallbacks, Ownership
from controlplane.node.description import NodeDescription
from controlplane.node.load_thread import LoadReports, LoadThread
from controlplane.node.metrics import NodeMetrics
from controlplane.node.session_thread import SessionThread
from controlplane.node.shared import Shared
from controlplane.node.table_thread import TableThread
from controlplane.ports import Clock, EventWriter, LogReader, Threads

_FLUSH_MS: Final = 2_000
_JOIN_S: Final = 15.0
_SIGNAL_POLL_S: Final = 0.2


class NodeAgent:
    """A member of the cluster. Thread-safe. ``controlplane.node_agent`` makes one on Kafka.

    A context manager: entering joins, leaving drains and leaves.

    Args:
        writer: appends heartbeats and membership records; has to give records up after a while. It belongs to the
            agent.
        reader: reads the routing table; it belongs to the agent.
        clock: monotonic and wall time.
        threads: makes the agent's threads.
        node: the node's name, role and properties.
        cluster: the cluster's name, for logs and metrics.
        callbacks: notified of gains and losses.
        load_reports: how the load is measured and reported; None sends no load reports.
        settings: timing, and what to do when the log is lost.
        registry: holds the agent's metrics until it stops.
        process_id: tells this process apart from every other of the node; empty for a random one.
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
        load_reports: LoadReports | None = None,
        settings: SessionSettings | None = None,
        registry: CollectorRegistry = REGISTRY,
        process_id: ProcessId = "",
    ) -> None:
        self._shared = Shared(
            node, process_id or token_hex(8), cluster, clock, threads, NodeMetrics(cluster, node.node_id, registry)
        )
        self._threads = threads
        self._started = False
        self._session = SessionThread(self._shared, writer, settings or SessionSettings(), threads)
        self._table = TableThread(self._shared, reader, callbacks or NodeCallbacks(), self._session)
        runs = {"node-session": self._session.run, "node-table": self._table.run}
        self._writer = writer
        self._load_reports = load_reports
        if load_reports is not None:
            runs["node-load"] = LoadThread(self._shared, self._session, load_reports).run
        self._running = [threads.thread(partial(self._shared.guarded, run), name) for name, run in runs.items()]

    def start(self) -> Self:
        """Start the threads, which read the table and then join; returns at once."""
        self._started = True
        for thread in self._running:
            thread.start()
        return self

    def stop(self, *, drain: bool = True, timeout_ms: int = 10_000) -> None:
        """Leave the cluster and end the threads.

        Args:
            drain: first ask to be relieved of everything and wait for it, unless no other node could take it over.
            timeout_ms: the longest wait for that; then the node leaves with what it holds.
        """
        shared = self._shared
        if shared.failure is None and any(thread.is_alive() for thread in self._running):
            if drain:
                self._hand_over(timeout_ms)
            self._session.tell(LeaveAsked("stop"))
        else:
            shared.stopping.set()
        for thread in self._running if self._started else ():
            thread.join(_JOIN_S)
        self._writer.flush(_FLUSH_MS)
        self._writer.close()
        if self._load_reports is not None:
            self._load_reports.writer.close()
        self._table.close()
        shared.metrics.close()

    def run_until_signal(self) -> SessionState:
        """Block until SIGTERM or SIGINT, then drain and leave; for a process's main thread.

        Returns:
            ``LEFT`` after a signal; ``SUPERSEDED`` if another process has joined under this node's name.

        Raises:
            BaseException: any other error that ended the agent.
        """
        asked: list[int] = []  # no lock: the handler runs in the main thread, which might hold it
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda number, _: asked.append(number))
        pause = self._threads.signal()
        while not asked:
            try:
                self.check()
            except SupersededError:
                break
            pause.wait(_SIGNAL_POLL_S)
        self.stop()
        return self.state

    def _hand_over(self, timeout_ms: int) -> None:
        """Ask that other nodes take over what this one holds, wait for it, and log the result."""
        shared, logger = self._shared, self._shared.logger
        if self._session.state not in HEARD_STATES:
            logger.warning("nothing to hand over: the node is not a member now", state=self._session.state.value)
            return
        held = sum(shared.book.count())
        logger.info("handing over before leaving", slots_and_bundles=held, timeout_ms=timeout_ms)
        self._session.tell(DrainAsked("stop"))
        with shared.changed:
            shared.changed.wait_for(
                lambda: shared.book.holds_nothing or shared.book.is_the_last_one or shared.failure,
                timeout_ms / 1_000,
            )
        left = sum(shared.book.count())
        if shared.book.holds_nothing:
            logger.info("everything was handed over", slots_and_bundles=held)
        elif shared.book.is_the_last_one:
            logger.warning("nothing was handed over: no other node can take it", slots_and_bundles=left)
        elif shared.failure is None:
            what = "nothing was" if left == held else "not everything was"
            text = f"{what} handed over within {timeout_ms} ms: is there a leader? The node leaves with what it holds"
            logger.warning(text, slots_and_bundles=left)

    def __enter__(self) -> Self:
        """Start the agent, unless it was started already."""
        return self if self._started else self.start()

    def __exit__(self, *_: object) -> None:
        """Drain and leave."""
        self.stop()

    def check(self) -> None:
        """Raise the error that ended the agent, if any.

        Raises:
            SupersededError: a greater incarnation of this node has joined.
            BaseException: a callback's error, or a log that cannot be followed.
        """
        if self._shared.failure is not None:
            raise self._shared.failure

    @property
    def state(self) -> SessionState:
        """The state of the node session."""
        return self._session.state

    @property
    def table(self) -> RoutingTable | None:
        """The table that the node works with; None before the first."""
        return self._shared.table

    def ownership(self, slot_id: SlotId) -> Ownership:
        """Whether the node may serve a slot now, with the fencing token to pass on."""
        ownership = self._shared.book.ownership(slot_id)
        now_ms = self._shared.clock.monotonic_ms()
        may_serve = self._shared.failure is None and now_ms < self._session.serve_until_ms
        return ownership if may_serve else ownership._replace(access=Access.MOVED)

    def slot_ready(self, slot_id: SlotId, gained_epoch: Epoch | None = None, synced_at_ms: int | None = None) -> bool:
        """Report that the node has the slot's data: it serves the slot if it leads it, and its heartbeats say so.

        Args:
            slot_id: the slot.
            gained_epoch: ``SlotGained.epoch`` of the gain for which the data was fetched. Give it if fetching takes
                time: if the slot was lost and gained again meanwhile, the call has no effect.
            synced_at_ms: wall clock of the last complete copy, for a follower that copies from time to time: call again
                after each copy. Without it, heartbeats report a follower as in sync for as long as it holds the slot.

        Returns:
            False if the node does not hold the slot (any more).
        """
        return self._shared.book.mark_ready(slot_id, gained_epoch, synced_at_ms)
