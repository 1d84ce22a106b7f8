"""What the agent and its threads share: who this is, what it holds by which table, and how it ends."""

from collections.abc import Callable

import structlog

from controlplane.core.routing.replica import RoutingTable
from controlplane.errors import ControlPlaneError, InvariantViolationError
from controlplane.node.description import NodeDescription
from controlplane.node.holdings import HoldingBook
from controlplane.node.metrics import NodeMetrics
from controlplane.ports import Clock, Threads


class Shared:
    """Anybody may read it at any time; what changes is changed by those who are named.

    Attributes:
        node: who this is.
        clock: monotonic and wall time.
        metrics: where to count.
        logger: knows the cluster and the node.
        book: what the node holds; the table's thread brings it tables.
        table: the table that the node works with; None before the first. The table's thread sets it.
        failure: what ended the agent; :meth:`fail` sets it.
        changed: notified after everything that somebody may wait for.
        stopping: set when the threads are to end.
        started_at_wall_ms: when the process began to be a node.
    """

    def __init__(
        self, node: NodeDescription, cluster: str, clock: Clock, threads: Threads, metrics: NodeMetrics
    ) -> None:
        """Of an agent that was not started yet."""
        self.node = node
        self.clock = clock
        self.metrics = metrics
        self.logger = structlog.get_logger().bind(cluster=cluster, node=node.node_id)
        self.book = HoldingBook(node.node_id)
        self.table: RoutingTable | None = None
        self.failure: BaseException | None = None
        self.changed = threads.condition()
        self.stopping = threads.signal()
        self.started_at_wall_ms = clock.wall_ms()

    def guarded(self, run: Callable[[], None]) -> None:
        """Run a thread; its error ends all of them."""
        try:
            run()
        except BaseException as failure:
            epoch = self.book.epoch
            if isinstance(failure, ControlPlaneError) and not isinstance(failure, InvariantViolationError):
                # Its message says what was wrong and what to do: a stack would bury it.
                self.logger.error("node agent ended", error=str(failure), epoch=epoch)  # noqa: TRY400
            else:
                self.logger.exception("node agent failed", epoch=epoch)
            self.fail(failure)

    def fail(self, failure: BaseException) -> None:
        """End the agent; the first failure is the one that it tells."""
        self.metrics.failed.set(1)
        with self.changed:
            self.failure = self.failure or failure
            self.stopping.set()
            self.changed.notify_all()
