"""Watches a cluster while something dies: when decisions arrive, who makes them, and for how long nodes refuse."""

import contextlib
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from itertools import pairwise
from types import TracebackType
from typing import Final, NamedTuple, Self

from controlplane.adapters.kafka_log import KafkaEventWriter
from controlplane.bootstrap.connections import open_source
from controlplane.codec.inputs import encode_input
from controlplane.config import MEMBERSHIP
from controlplane.core.log.decision import Decision
from controlplane.core.membership.inputs import NodeJoined, NodeLeft
from controlplane.core.membership.node import NodeRole
from controlplane.core.session.node_session import SessionState
from controlplane.errors import LogUnavailableError
from controlplane.inspection.readers import DecisionFollower
from controlplane.ports import Delivery, OutgoingRecord
from examples.kv.moving import place_of
from examples.kv.protocol import Connections, Unreachable
from tests.kills.cluster import KvCluster

_PROBE: Final = "probe"
_PROBE_S: Final = 0.3
_PROBE_TIMEOUT_MS: Final = 2_500
_SAMPLE_S: Final = 0.05
_POLL_MS: Final = 50
_ANSWER_S: Final = 0.5


class Arrival(NamedTuple):
    """A decision and the monotonic time at which a reader had it."""

    at_s: float
    decision: Decision


class Watch:
    """Three threads: one reads decisions, one asks nodes for their state, one lets a probe join and leave.

    The probe holds no slots. It joins and leaves every 0.3 s, so that there is always something to decide, and a gap
    between decisions means that none could be made. As agents do, it sends again what is not acknowledged: a leave
    whose join was lost is refused, and decisions wait for the letter. A context manager: it watches within the block.

    Args:
        cluster: the cluster, which runs.

    Attributes:
        arrivals: the decisions that have come.
        late_s: how much later than asked for a thread of the watch was woken at worst: what of the other figures may be
            the machine's.
    """

    def __init__(self, cluster: KvCluster) -> None:
        self._cluster = cluster
        self._stopping = threading.Event()
        self._ended_s = 0.0
        self.late_s = 0.0
        self.arrivals: list[Arrival] = []
        self._connections = Connections()
        self._source = open_source(cluster.real.cluster, cluster.real.kafka)
        self._writer = KafkaEventWriter(cluster.real.cluster, cluster.real.kafka, _PROBE_TIMEOUT_MS)
        self._refusing_s: defaultdict[str, float] = defaultdict(float)
        self._threads = [threading.Thread(target=self._repeat, args=(step,)) for step in self._steps()]

    def __enter__(self) -> Self:
        """Begin."""
        for thread in self._threads:
            thread.start()
        self.wait_for(lambda _: True, "a decision on the probe")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """End."""
        self._ended_s = time.monotonic()
        self._stopping.set()
        for thread in self._threads:
            thread.join()
        self._connections.close()
        self._writer.close()
        self._source.close()

    def wait_for(self, wanted: Callable[[Decision], bool], what: str, since: int = 0) -> Arrival:
        """The first arrival from the index ``since`` on that is wanted.

        Raises:
            AssertionError: it did not come within the time for which a cluster is waited for.
        """
        self._cluster.wait_until(lambda: any(wanted(each.decision) for each in self.arrivals[since:]), what)
        return next(each for each in self.arrivals[since:] if wanted(each.decision))

    def longest_gap_s(self, since_s: float) -> float:
        """The longest time without a decision from ``since_s`` (monotonic) on, up to now or to the end of the watch."""
        end_s = self._ended_s if self._stopping.is_set() else time.monotonic()
        times = [since_s, *(each.at_s for each in self.arrivals if each.at_s > since_s), end_s]
        return max(after - before for before, after in pairwise(times))

    def longest_refusal_s(self) -> float:
        """The longest time for which one node did not serve, to a sample of 50 ms."""
        return max(self._refusing_s.values(), default=0.0)

    def _repeat(self, step: Callable[[], None]) -> None:
        while not self._stopping.is_set():
            with contextlib.suppress(LogUnavailableError):
                step()

    def _steps(self) -> list[Callable[[], None]]:
        decisions = DecisionFollower(self._source)
        since_s: dict[str, float] = {}
        incarnation = int(time.time() * 1_000)

        def follow() -> None:
            now = [Arrival(time.monotonic(), each.decision) for each in decisions.poll(_POLL_MS)]
            self.arrivals.extend(now)

        def sample() -> None:
            asked_s = time.monotonic()
            self._stopping.wait(_SAMPLE_S)
            self.late_s = max(self.late_s, time.monotonic() - asked_s - _SAMPLE_S)
            for node_id in sorted(self._cluster.nodes):
                if self._serves(node_id):
                    since_s.pop(node_id, None)
                    continue
                refused_s = time.monotonic() - since_s.setdefault(node_id, time.monotonic())
                self._refusing_s[node_id] = max(self._refusing_s[node_id], refused_s)

        def probe() -> None:
            nonlocal incarnation
            incarnation += 1
            joined = NodeJoined(_PROBE, incarnation, NodeRole.SESSION, (), "", 1, 0, "1", 0)
            for record in (joined, NodeLeft(_PROBE, incarnation, "test")):
                self._append(OutgoingRecord(MEMBERSHIP, _PROBE.encode(), encode_input(record)))
                self._stopping.wait(_PROBE_S)

        return [follow, sample, probe]

    def _append(self, record: OutgoingRecord) -> None:
        errors: list[str | None] = []

        def note(delivery: Delivery) -> None:
            errors.append(delivery.error)

        while None not in errors and not self._stopping.is_set():
            self._writer.send(record, note)
            self._writer.flush(2 * _PROBE_TIMEOUT_MS)

    def _serves(self, node_id: str) -> bool:
        place = place_of(self._cluster.table, node_id)
        try:
            status = self._connections.ask(place, {"op": "status"}, _ANSWER_S) if place else {}
        except Unreachable:
            return False
        return status.get("state") == SessionState.ACTIVE.value
