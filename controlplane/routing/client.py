"""A client that routes by the newest whole routing table, and keeps it while Kafka is unreachable."""

from collections.abc import Callable
from typing import Final, Self, TypeAlias

import structlog
from prometheus_client import REGISTRY, CollectorRegistry

from controlplane.core.routing.replica import RoutingTable
from controlplane.core.values.identifiers import NamespaceName
from controlplane.errors import LogUnavailableError, NoRouteError
from controlplane.ports import LogReader, Thread, Threads
from controlplane.routing.metrics import RoutingMetrics
from controlplane.routing.ring_route import TableRing
from controlplane.routing.route import BundleRoute, Route, bundle_route_in, route_in
from controlplane.topic_reading.table_follower import TableFollower

ChangeCallback: TypeAlias = Callable[[RoutingTable | None, RoutingTable], None]
"""Called with the table before (None at first) and the new table in use."""

_POLL_MS: Final = 200
_RETRY_S: Final = 0.2
_CLOSE_TIMEOUT_S: Final = 15.0


class RoutingClient:
    """Routes keys by the routing table. Thread-safe, except :meth:`step`. ``controlplane.routing_client`` makes one.

    The topic is read from its start to its end before the first table is shown, and followed from there. Tables are
    replaced whole, at an epoch marker whose digest fits. While Kafka is unreachable, or foreign records keep the topic
    from showing a whole table, the last table stays in use. An error that requires an operator (a recreated log, a
    callback that failed) ends the following, and every later call raises it: a client must not route by a table that
    will never be renewed.

    Args:
        reader: a reader of the cluster's topics; it belongs to the client from here on.
        threads: makes the client's thread.
        cluster: the cluster's name, for logs and metrics.
        registry: holds the client's metrics until it is closed.
    """

    def __init__(
        self, reader: LogReader, threads: Threads, *, cluster: str, registry: CollectorRegistry = REGISTRY
    ) -> None:
        self._follower = TableFollower(reader)
        self._metrics = RoutingMetrics(cluster, registry)
        self._logger = structlog.get_logger().bind(cluster=cluster)
        self._table: RoutingTable | None = None
        self._ring: TableRing | None = None
        self._caught_up = False
        self._failure: Exception | None = None
        self._callbacks: tuple[ChangeCallback, ...] = ()
        self._threads = threads
        self._swapped = threads.condition()
        self._stopping = threads.signal()
        self._thread: Thread | None = None

    def start(self) -> Self:
        """Follow the table in a thread of its own; returns at once (see :meth:`wait_for`)."""
        self._thread = self._threads.thread(self._follow, "routing-client")
        self._thread.start()
        return self

    def close(self) -> None:
        """Stop following and close the reader; the last table stays usable."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(_CLOSE_TIMEOUT_S)
        self._follower.close()
        self._metrics.close()

    def __enter__(self) -> Self:
        """Start the client, unless it was started already."""
        return self if self._thread else self.start()

    def __exit__(self, *_: object) -> None:
        """Close."""
        self.close()

    @property
    def table(self) -> RoutingTable | None:
        """The table in use; None until the first one was read.

        Raises:
            ControlPlaneError: the error that ended the following (or a callback's own exception).
        """
        if self._failure is not None:
            raise self._failure.with_traceback(None)
        return self._table

    def route(self, key: bytes | str) -> Route:
        """The node that serves a key now.

        Raises:
            NoRouteError: there is no table yet, or the key's slot has no leader at the moment; try again.
            UnroutableError: a newer version wrote a row that the answer needs; upgrade this process.
        """
        return route_in(self._present_table(), key)

    def route_bundle(self, namespace: NamespaceName, key: bytes | str) -> BundleRoute:
        """The node that owns the bundle of a namespace's key now or, while it is handed off, the next owner.

        Only if ``is_served`` of the route is true, the node may serve the key at the moment.

        Raises:
            NoRouteError: there is no table yet, no such namespace, or neither owner nor next one now; try again.
            UnroutableError: a newer version wrote a row that the answer needs; upgrade this process.
        """
        return bundle_route_in(self._present_table(), namespace, key)

    @property
    def ring(self) -> TableRing:
        """Routes by ring in the present table, for callers who do not use slots.

        Raises:
            NoRouteError: there is no table yet; try again.
            UnroutableError: a newer version wrote the row of a node; upgrade this process.
        """
        table, ring = self._present_table(), self._ring
        if ring is None or ring.table is not table:
            ring = self._ring = TableRing(table) if ring is None else ring.in_table(table)
        return ring

    def on_change(self, callback: ChangeCallback) -> None:
        """Call ``callback`` for every new table from now on, in the following thread; its exceptions end the client."""
        self._callbacks = (*self._callbacks, callback)

    def wait_for(
        self, condition: Callable[[RoutingTable], bool] | None = None, *, timeout_ms: int = 10_000
    ) -> RoutingTable:
        """Wait for a table that fulfils the condition, and return it; None accepts any, also the present one.

        Raises:
            NoRouteError: there was none in time.
        """

        def wanted() -> RoutingTable | None:
            table = self.table
            return table if table is not None and (condition is None or condition(table)) else None

        with self._swapped:
            found = self._swapped.wait_for(wanted, timeout_ms / 1_000)
        if found is None:
            present = (
                f"the present one has epoch {self._table.epoch}"
                if self._table
                else "none was read at all; is Kafka's address right, and has a controller led this cluster?"
            )
            raise NoRouteError(f"no routing table as wanted within {timeout_ms} ms: {present}")
        return found

    def step(self, timeout_ms: int) -> None:
        """Do one round of following. For programs without threads: call it in a loop instead of :meth:`start`.

        Raises:
            LogUnavailableError: Kafka did not say where the topic begins; call again.
            StopError: see :meth:`controlplane.topic_reading.table_follower.TableFollower.step`.
        """
        progress = self._follower.step(timeout_ms)
        self._metrics.rebuilds.set(self._follower.rebuilds)
        self._metrics.foreign_records.set(self._follower.foreign.total)
        if self._caught_up:
            for table in progress.tables:
                self._swap(table)
        elif progress.ended or (self._follower.awaits_repair and self._follower.table is not None):
            self._caught_up = True
            if self._follower.table is not None:
                self._swap(self._follower.table)

    def _follow(self) -> None:
        while not self._stopping.is_set():
            try:
                self.step(_POLL_MS)
            except LogUnavailableError as error:
                self._metrics.unavailable.inc()
                self._logger.warning("routing table unavailable", error=str(error), epoch=self._epoch)
                self._stopping.wait(_RETRY_S)
            except Exception as error:
                self._logger.exception("routing client failed", epoch=self._epoch)
                self._metrics.failed.set(1)
                with self._swapped:
                    self._failure = error
                    self._swapped.notify_all()
                return

    def _swap(self, table: RoutingTable) -> None:
        before = self._table
        if before is not None and table.epoch == before.epoch:
            return
        with self._swapped:
            self._table = table
            self._swapped.notify_all()
        self._metrics.tables.inc()
        self._metrics.term.set(table.term)
        self._metrics.epoch.set(table.epoch)
        self._logger.debug("routing table swapped", term=table.term, epoch=table.epoch)
        for callback in self._callbacks:
            callback(before, table)

    def _present_table(self) -> RoutingTable:
        table = self.table
        if table is None:
            raise NoRouteError("no routing table was read yet: wait for it, or start a controller")
        return table

    @property
    def _epoch(self) -> int | None:
        return self._table.epoch if self._table else None
