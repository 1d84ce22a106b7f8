"""The state that the agent and its threads share: the node, its holdings and table, and the end of the agent."""

from collections.abc import Callable

import structlog

from controlplane.core.routing.replica import RoutingTable
from controlplane.core.values.identifiers import ProcessId
from controlplane.errors import ControlPlaneError, InvariantViolationError
from controlplane.node.description import NodeDescription
from controlplane.node.handoff_settings import HandoffSettings
from controlplane.node.held_bundles import BundleBook
from controlplane.node.holdings import HoldingBook
from controlplane.node.metrics import NodeMetrics
from controlplane.ports import Clock, Threads


class Shared:
    """Readable by every thread at any time; each attribute that changes has one writer, named here.

    Attributes:
        node: the node's description.
        process_id: tells this process apart from every other of the node.
        clock: monotonic and wall time.
        metrics: of the agent.
        logger: bound to the cluster and the node.
        book: the node's slots; the table thread passes tables to it.
        bundles: the node's bundles; likewise.
        table: the table of the newest calls for slots, which may not be the newest one; None before the first. The
            threads that make these calls set it.
        feature_level: of the log, as the newest table says it: 0 before the first, and below level 3. The table thread
            sets it before the node joins.
        failure: the error that ended the agent; :meth:`fail` sets it.
        changed: notified after every change for which a thread may wait.
        stopping: set when the threads are to end.
        started_at_wall_ms: wall clock at the creation of the agent.
    """

    def __init__(
        self,
        node: NodeDescription,
        process_id: ProcessId,
        cluster: str,
        clock: Clock,
        threads: Threads,
        metrics: NodeMetrics,
        *,
        handoff: HandoffSettings | None = None,
    ) -> None:
        """Set up the state of an agent that was not started yet."""
        self.node = node
        self.process_id = process_id
        self.clock = clock
        self.metrics = metrics
        self.logger = structlog.get_logger().bind(cluster=cluster, node=node.node_id)
        self.book = HoldingBook(node.node_id, process_id, handoff)
        self.bundles = BundleBook(node.node_id, process_id, handoff)
        self.table: RoutingTable | None = None
        self.feature_level = 0
        self.failure: BaseException | None = None
        self.changed = threads.condition()
        self.stopping = threads.signal()
        self.started_at_wall_ms = clock.wall_ms()

    def holding_count(self) -> int:
        """The number of slots and bundles that the node holds: 0 if nothing is left to hand over."""
        return sum(self.book.count()) + self.bundles.count()

    def guarded(self, run: Callable[[], None]) -> None:
        """Run the function of a thread; an error in it ends all threads."""
        try:
            run()
        except BaseException as failure:
            epoch = self.book.epoch
            if isinstance(failure, ControlPlaneError) and not isinstance(failure, InvariantViolationError):
                # Its message says what was wrong and what to do; a stack trace would hide it.
                self.logger.error("node agent ended", error=str(failure), epoch=epoch)  # noqa: TRY400
            else:
                self.logger.exception("node agent failed", epoch=epoch)
            self.fail(failure)

    def fail(self, failure: BaseException) -> None:
        """End the agent; the first failure is the one that is raised."""
        self.metrics.failed.set(1)
        with self.changed:
            self.failure = self.failure or failure
        self.end()

    def end(self) -> None:
        """Let every thread of the agent end, and whatever waits for a change go on."""
        with self.changed:
            self.stopping.set()
            self.changed.notify_all()
