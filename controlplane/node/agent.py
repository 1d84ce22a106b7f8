"""The agent: a process's view of its membership, and the threads that maintain it.

One thread sends heartbeats and receives acknowledgements (``session_thread``), one follows the table and runs the
callbacks for slots (``table_thread``), some make the calls for bundles (``bundle_calls``), and an optional one measures
the load (``load_thread``). An error in any of them ends all: a node that cannot follow the table must not continue to
claim that it is alive.
"""

import signal
from functools import partial
from secrets import token_hex
from typing import Final, Self

from prometheus_client import REGISTRY, CollectorRegistry

from controlplane.core.bundles.ranges import bundle_hash
from controlplane.core.routing.replica import RoutingTable
from controlplane.core.session.messages import DrainAsked, LeaveAsked
from controlplane.core.session.node_session import HEARD_STATES, SessionSettings, SessionState
from controlplane.core.values.identifiers import Epoch, NamespaceName, ProcessId, SlotId
from controlplane.errors import SupersededError
from controlplane.node.bundle_calls import BundleCalls
from controlplane.node.callbacks import Access, BundleOwnership, NodeCallbacks, Ownership
from controlplane.node.description import NodeDescription
from controlplane.node.handoff_settings import HandoffSettings
from controlplane.node.held_bundle import AcceptedCall
from controlplane.node.load_thread import LoadReports, LoadThread
from controlplane.node.metrics import NodeMetrics
from controlplane.node.served_call import ServedCall, ServedSlotCall
from controlplane.node.session_thread import SessionThread
from controlplane.node.shared import Shared
from controlplane.node.slot_releases import AcceptedSlotCall
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
        callbacks: notified of gains and losses, and asked to open and to release bundles.
        load_reports: how the load is measured and reported; None sends no load reports.
        settings: timing, and what to do when the log is lost.
        handoff: how long the callbacks for bundles are waited for.
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
        handoff: HandoffSettings | None = None,
        registry: CollectorRegistry = REGISTRY,
        process_id: ProcessId = "",
    ) -> None:
        handoff, callbacks = handoff or HandoffSettings(), callbacks or NodeCallbacks()
        metrics = NodeMetrics(cluster, node.node_id, registry)
        self._shared = Shared(node, process_id or token_hex(8), cluster, clock, threads, metrics, handoff=handoff)
        self._threads = threads
        self._started = False
        self._session = SessionThread(self._shared, writer, settings or SessionSettings(), threads)
        self._bundle_calls = BundleCalls(self._shared, callbacks, handoff, self._session, threads)
        self._table = TableThread(self._shared, reader, callbacks, self._session, self._bundle_calls)
        runs = {
            "node-session": self._session.run,
            "node-table": self._table.run,
            "node-bundles": self._bundle_calls.run,
        }
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

        Bundles that it holds even so are closed before it leaves, within the limit of ``HandoffSettings``.
        """
        shared = self._shared
        if shared.failure is None and any(thread.is_alive() for thread in self._running):
            if drain:
                self._hand_over(timeout_ms)
            self._bundle_calls.end()
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
        held = shared.holding_count()
        logger.info("handing over before leaving", slots_and_bundles=held, timeout_ms=timeout_ms)
        self._session.tell(DrainAsked("stop"))
        with shared.changed:
            shared.changed.wait_for(
                lambda: not shared.holding_count() or shared.book.is_the_last_one or shared.failure,
                timeout_ms / 1_000,
            )
        left = shared.holding_count()
        if not left:
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
        return ownership if self._may_serve() else ownership._replace(access=Access.MOVED)

    def bundle_of(self, namespace: NamespaceName, key: bytes | str) -> BundleOwnership:
        """Whether the node may serve the bundle of a key now, with the fencing token, and the node to ask otherwise.

        Serve requests within :meth:`serve`, so that a release of the bundle waits for their ends. Bytes are decoded as
        UTF-8.
        """
        return self._checked(self._shared.bundles.ownership(namespace, _hash_of(key)))

    def serve(self, namespace: NamespaceName, key: bytes | str) -> ServedCall:
        """A context in which one request for a key is served, or refused.

        with agent.serve("orders", key) as call:
            if call.access is Access.ACCEPT: ...
        """
        return ServedCall(partial(self._accept, namespace, _hash_of(key)), self._end_request, self._may_serve)

    def serve_slot(self, slot_id: SlotId) -> ServedSlotCall:
        """A context in which one request for a slot is served, or refused; see :meth:`serve`."""
        return ServedSlotCall(partial(self._accept_slot, slot_id), self._end_slot_request, self._may_serve)

    def _accept_slot(self, slot_id: SlotId) -> tuple[Ownership, AcceptedSlotCall | None]:
        answer, accepted = self._shared.book.accept(slot_id)
        if accepted is not None and not self._may_serve():
            self._end_slot_request(accepted)
            return answer._replace(access=Access.MOVED), None
        return answer, accepted

    def _end_slot_request(self, accepted: AcceptedSlotCall) -> None:
        self._shared.book.leave(accepted)
        if self._shared.book.has_news:
            self._bundle_calls.wake()

    def _accept(self, namespace: NamespaceName, hashed: int) -> tuple[BundleOwnership, AcceptedCall | None]:
        answer, accepted = self._shared.bundles.accept(namespace, hashed)
        checked = self._checked(answer)
        if accepted is not None and checked is not answer:
            self._end_request(accepted)
            accepted = None
        return checked, accepted

    def _end_request(self, accepted: AcceptedCall) -> None:
        if self._shared.bundles.leave(accepted, self._shared.clock.monotonic_ms()):
            self._bundle_calls.wake()

    def _checked(self, answer: BundleOwnership) -> BundleOwnership:
        """The answer of the book, or a refusal if the session may not serve."""
        if answer.access is Access.MOVED or self._may_serve():
            return answer
        return answer._replace(access=Access.MOVED, ask=None)

    def _may_serve(self) -> bool:
        return self._shared.failure is None and self._shared.clock.monotonic_ms() < self._session.serve_until_ms

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


def _hash_of(key: bytes | str) -> int:
    return bundle_hash(key if isinstance(key, str) else key.decode("utf-8"))
