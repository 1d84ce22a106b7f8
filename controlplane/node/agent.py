"""The agent: a process's view of its membership, and the threads that maintain it.

One thread sends heartbeats and receives acknowledgements (``session_thread``), one follows the table
(``table_thread``), some make the calls for slots (``slot_calls``) and for bundles (``bundle_calls``), and an optional
one measures the load (``load_thread``). An error in any of them ends all: a node that cannot follow the table must not
continue to claim that it is alive.
"""

import signal
from functools import partial
from secrets import token_hex
from typing import Final, Self

from prometheus_client import REGISTRY, CollectorRegistry

from controlplane.core.bundles.ranges import bundle_hash
from controlplane.core.routing.replica import RoutingTable
from controlplane.core.session.messages import LeaveAsked
from controlplane.core.session.node_session import SessionSettings, SessionState
from controlplane.core.slots.sofa.slot_access import LocalSlot
from controlplane.core.values.identifiers import Epoch, NamespaceName, ProcessId, SlotId
from controlplane.errors import SupersededError
from controlplane.node.bundle_calls import BundleCalls
from controlplane.node.callbacks import BundleOwnership, NodeCallbacks, Ownership
from controlplane.node.caller_view import AnswerT, RoutedBy, compared, withheld
from controlplane.node.description import NodeDescription
from controlplane.node.draining import Drained, DrainOutcome, hand_over
from controlplane.node.handoff_settings import HandoffSettings
from controlplane.node.held_bundle import AcceptedBundleRequest
from controlplane.node.load_thread import LoadReports, LoadThread
from controlplane.node.metrics import NodeMetrics
from controlplane.node.served_request import ServedBundleRequest, ServedSlotRequest
from controlplane.node.session_thread import SessionThread
from controlplane.node.shared import Shared
from controlplane.node.slot_calls import SlotCalls
from controlplane.node.slot_releases import AcceptedSlotRequest
from controlplane.node.table_thread import TableThread
from controlplane.ports import Clock, EventWriter, LogReader, Threads

DRAIN_TIMEOUT_MS: Final = 10_000
"""How long a node that leaves waits for the others to take over what it holds, if nothing else is said."""
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
        handoff: how long callbacks, and requests that were accepted, are waited for.
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
        self._slot_calls = SlotCalls(self._shared, callbacks, handoff, self._session, threads)
        self._table = TableThread(self._shared, reader, self._session, self._slot_calls, self._bundle_calls)
        runs = {
            "node-session": self._session.run,
            "node-table": self._table.run,
            "node-slots": self._slot_calls.run,
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

    def stop(self, *, drain: bool = True, timeout_ms: int = DRAIN_TIMEOUT_MS) -> Drained:
        """Leave the cluster and end the threads.

        Args:
            drain: first ask to be relieved of everything and wait for it, unless no other node could take it over.
            timeout_ms: the longest wait for that; then the node leaves with what it holds. The next holders copy their
                data first: give it as long as that takes.

        Returns:
            what came of the wish to hand everything over.

        Bundles that it holds even so are closed before it leaves, within the limit of ``HandoffSettings``.
        """
        shared = self._shared
        held = shared.holding_count()
        drained = Drained(DrainOutcome.NOT_ASKED if shared.failure is None else DrainOutcome.FAILED, held, held)
        if shared.failure is None and any(thread.is_alive() for thread in self._running):
            if drain:
                drained = hand_over(shared, self._session, timeout_ms)
            self._bundle_calls.end()
            self._session.tell(LeaveAsked("stop"))
        else:
            shared.end()
        for thread in self._running if self._started else ():
            thread.join(_JOIN_S)
        self._writer.flush(_FLUSH_MS)
        self._writer.close()
        if self._load_reports is not None:
            self._load_reports.writer.close()
        self._table.close()
        shared.metrics.close()
        return drained

    def run_until_signal(self, *, timeout_ms: int = DRAIN_TIMEOUT_MS) -> SessionState:
        """Block until SIGTERM or SIGINT, then drain and leave; for a process's main thread.

        Args:
            timeout_ms: as for :meth:`stop`. What stops the process has to wait for longer than that before it kills it.

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
        self.stop(timeout_ms=timeout_ms)
        return self.state

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
        """The table of the newest calls for slots, so that each of them sees its own; None before the first.

        Calls that hang hold it up for as long as they hold up other calls. Answers to requests go by the newest table.
        """
        return self._shared.table

    def wait_for_epoch(self, epoch: Epoch, *, timeout_ms: int) -> bool:
        """Wait until :attr:`table` is the one of this epoch or a later one; return whether it is.

        For a request by a newer table than the node's: once the node goes by that table it can judge the request, where
        a refusal would only send the caller back. The wait ends with the time-out or with the agent. Calls for slots
        that hang hold :attr:`table` up, and so this wait.
        """
        shared = self._shared
        with shared.changed:
            shared.changed.wait_for(lambda: self._has_epoch(epoch) or shared.stopping.is_set(), timeout_ms / 1_000)
        return self._has_epoch(epoch)

    def _has_epoch(self, epoch: Epoch) -> bool:
        table = self._shared.table
        return table is not None and table.epoch >= epoch

    def ownership(self, slot_id: SlotId, routed_by: RoutedBy | None = None) -> Ownership:
        """Whether the node may serve a slot now, with the fencing token to pass on, and the node to ask otherwise.

        Serve requests within :meth:`serve_slot`, so that a release of the slot waits for their ends. ``routed_by`` is
        the row by which the caller has chosen this node, if it says so.
        """
        return self._checked(self._shared.book.ownership(slot_id), routed_by)

    def slot_of(self, key: bytes | str, routed_by: RoutedBy | None = None) -> Ownership:
        """Whether the node may serve the slot of a key now; see :meth:`ownership`."""
        return self._checked(self._shared.book.ownership(key), routed_by)

    def bundle_of(
        self, namespace: NamespaceName, key: bytes | str, routed_by: RoutedBy | None = None
    ) -> BundleOwnership:
        """Whether the node may serve the bundle of a key now, with the fencing token, and the node to ask otherwise.

        Serve requests within :meth:`serve`, so that a release of the bundle waits for their ends. Bytes are decoded as
        UTF-8. ``routed_by`` is as in :meth:`ownership`.
        """
        return self._checked(self._shared.bundles.ownership(namespace, _hash_of(key)), routed_by)

    def local_slot(self, slot_id: SlotId) -> tuple[Epoch, LocalSlot | None]:
        """The epoch of the table in use, and what this process knows of a slot of which it is a replica.

        For :class:`controlplane.node.SofaSlotAccess`; None if it is no replica, or may not serve now.
        """
        epoch, local = self._shared.book.local_slot(slot_id)
        return epoch, local if self._may_serve() else None

    def serve(
        self, namespace: NamespaceName, key: bytes | str, routed_by: RoutedBy | None = None
    ) -> ServedBundleRequest:
        """A context in which one request for a key of a bundle is served, or refused.

        with agent.serve("orders", key) as request:
            if request.access is not Access.ACCEPT:
                return refusal(request.access, request.addresses)
            answer = work(request.token)
        return answer if request.held else refusal(Access.MOVED, ())
        """
        accept = partial(self._accept, namespace, _hash_of(key), routed_by)
        return ServedBundleRequest(accept, self._end_request, self._may_serve)

    def serve_slot(self, slot_id: SlotId, routed_by: RoutedBy | None = None) -> ServedSlotRequest:
        """A context in which one request for a slot is served, or refused; see :meth:`serve`."""
        return ServedSlotRequest(
            partial(self._accept_slot, slot_id, routed_by), self._end_slot_request, self._may_serve
        )

    def serve_slot_of(self, key: bytes | str, routed_by: RoutedBy | None = None) -> ServedSlotRequest:
        """A context in which one request for a key is served by the slot that it has now; see :meth:`serve`."""
        return ServedSlotRequest(partial(self._accept_slot, key, routed_by), self._end_slot_request, self._may_serve)

    def _accept_slot(
        self, slot: SlotId | bytes | str, routed_by: RoutedBy | None
    ) -> tuple[Ownership, AcceptedSlotRequest | None]:
        answer, accepted = self._shared.book.accept(slot)
        checked = self._checked(answer, routed_by)
        if accepted is not None and checked is not answer:
            self._end_slot_request(accepted)
            accepted = None
        return checked, accepted

    def _end_slot_request(self, accepted: AcceptedSlotRequest) -> None:
        if accepted.is_void:
            self._shared.metrics.slot_requests_voided.inc()
        self._shared.book.leave(accepted)
        if self._shared.book.has_due_releases:
            self._slot_calls.wake()

    def _accept(
        self, namespace: NamespaceName, hashed: int, routed_by: RoutedBy | None
    ) -> tuple[BundleOwnership, AcceptedBundleRequest | None]:
        answer, accepted = self._shared.bundles.accept(namespace, hashed)
        checked = self._checked(answer, routed_by)
        if accepted is not None and checked is not answer:
            self._end_request(accepted)
            accepted = None
        return checked, accepted

    def _end_request(self, accepted: AcceptedBundleRequest) -> None:
        if accepted.is_void:
            self._shared.metrics.bundle_requests_voided.inc()
        if self._shared.bundles.leave(accepted, self._shared.clock.monotonic_ms()):
            self._bundle_calls.wake()

    def _checked(self, answer: AnswerT, routed_by: RoutedBy | None) -> AnswerT:
        """The answer of a book to this caller, or a refusal if the session may not serve."""
        return compared(answer, routed_by) if self._may_serve() else withheld(answer)

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
