"""The agent's thread that measures and reports the load.

It is apart from the session's thread, so that a slow measurement delays no heartbeat, and has a writer of its own. A
broker handles the requests of one connection in order. A load report that waits for a copy on a dead broker would hold
back every heartbeat behind it, and the leader would fence a living node.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from controlplane.config import LOAD_REPORTS
from controlplane.core.session.node_session import HEARD_STATES
from controlplane.node.description import NodeLoad, load_record
from controlplane.node.sending import SizeLimitedSender
from controlplane.node.session_thread import SessionThread
from controlplane.node.shared import Shared
from controlplane.ports import Delivery, EventWriter

_POLL_MS: Final = 500
"""The longest time between two polls of the writer."""


@dataclass(frozen=True, slots=True)
class LoadReports:
    """How an agent measures and reports its load.

    Attributes:
        source: measures the load since its last call. If it raises, this report is left out, with a warning.
        writer: appends the reports, and nothing else. It belongs to the agent.
        interval_ms: interval of the reports.
    """

    source: Callable[[], NodeLoad]
    writer: EventWriter
    interval_ms: int = 5_000


class LoadThread:
    """Measures and reports the load at intervals while the node is a member, and while it is drained."""

    def __init__(self, shared: Shared, session: SessionThread, reports: LoadReports) -> None:
        """Set up; :meth:`run` begins to measure. The writer belongs to the caller."""
        self._shared = shared
        self._session = session
        self._reports = reports
        self._sender = SizeLimitedSender(shared, reports.writer, LOAD_REPORTS)

    def run(self) -> None:
        """Report until the agent is to stop."""
        clock, interval_ms = self._shared.clock, self._reports.interval_ms
        due_ms = clock.monotonic_ms() + interval_ms
        while not self._shared.stopping.wait(min(max(due_ms - clock.monotonic_ms(), 1), _POLL_MS) / 1_000):
            if clock.monotonic_ms() >= due_ms:
                due_ms = clock.monotonic_ms() + interval_ms
                if self._session.state in HEARD_STATES:
                    self._report()
            self._reports.writer.poll(0)

    def _report(self) -> None:
        try:
            load = self._reports.source()
        except Exception as error:
            self._shared.metrics.load_reports_not_measured.inc()
            text = "load not measured: the load source failed, and this report is left out"
            self._shared.logger.warning(text, error=repr(error), exc_info=True)
            return
        sent_at_ms = self._shared.clock.wall_ms()
        report = load_record(
            self._shared.node,
            load,
            self._session.incarnation,
            sent_at_ms=sent_at_ms,
            started_at_ms=self._shared.started_at_wall_ms,
        )
        without_slots = replace(report, slots=())
        self._sender.send(
            (
                (report, ""),
                (without_slots, "the load of slots"),
                (replace(without_slots, bundles=()), "the load of slots and bundles"),
            ),
            self._on_delivery,
        )

    def _on_delivery(self, delivery: Delivery) -> None:
        metrics = self._shared.metrics
        (metrics.load_reports_given_up if delivery.error else metrics.load_reports_acknowledged).inc()
        if delivery.denied:
            self._shared.logger.warning("event not allowed", error=delivery.error)
