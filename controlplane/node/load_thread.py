"""The agent's thread that measures the load, apart from the others so that a slow measurement delays no heartbeat."""

from collections.abc import Callable

from controlplane.config import LOAD_REPORTS
from controlplane.core.session.node_session import SessionState
from controlplane.node.description import NodeLoad, load_record
from controlplane.node.session_thread import SessionThread
from controlplane.node.shared import Shared


class LoadThread:
    """Measures and reports the load at intervals while the node is a member."""

    def __init__(
        self, shared: Shared, session: SessionThread, load_source: Callable[[], NodeLoad], interval_ms: int
    ) -> None:
        """Set up; :meth:`run` begins to measure."""
        self._shared = shared
        self._session = session
        self._load_source = load_source
        self._interval_ms = interval_ms

    def run(self) -> None:
        """Report until the agent is to stop."""
        while not self._shared.stopping.wait(self._interval_ms / 1_000):
            if self._session.state is SessionState.ACTIVE:
                load, sent_at_ms = self._load_source(), self._shared.clock.wall_ms()
                report = load_record(
                    self._shared.node,
                    load,
                    self._session.incarnation,
                    sent_at_ms=sent_at_ms,
                    started_at_ms=self._shared.started_at_wall_ms,
                )
                self._session.send(LOAD_REPORTS, report)
                self._shared.metrics.load_reports.inc()
