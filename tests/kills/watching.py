"""Watches a cluster while something dies: when decisions arrive, who makes them, and for how long nodes refuse."""

import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
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
from controlplane.inspection.readers import DecisionFollower
from controlplane.ports import Delivery, OutgoingRecord
from examples.kv.moving import place_of
from examples.serving.protocol import Connections, Unreachable
from tests.kills.cluster import KvCluster
from tests.kills.disk import Disk
from tests.kills.repeating import Repeating

_PROBE: Final = "probe"
_PROBE_S: Final = 0.3
_PROBE_TIMEOUT_MS: Final = 2_500
_SAMPLE_S: Final = 0.05
_DISK_S: Final = 0.1
_POLL_MS: Final = 50
_ANSWER_S: Final = 0.5


class Arrival(NamedTuple):
    """A decision and the monotonic time at which a reader had it."""

    at_s: float
    decision: Decision


class Samples:
    """What one node answered, each time that it was asked whether it serves.

    Attributes:
        longest_s: the longest time for which no answer shows that it served.
        late_s: how much later than asked for the thread that asks was woken at worst.
    """

    def __init__(self) -> None:
        self.longest_s = 0.0
        self.late_s = 0.0
        self._served_s: float | None = None

    def add(self, asked_s: float, answered_s: float, *, serves: bool) -> None:
        """Take an answer, or the end of the wait for one. A node that serves did so at some time between the two."""
        if self._served_s is None:
            self._served_s = asked_s
        self.longest_s = max(self.longest_s, answered_s - self._served_s)
        if serves:
            self._served_s = asked_s

    def woken(self, late_s: float) -> None:
        """Take how late the thread was woken."""
        self.late_s = max(self.late_s, late_s)


class Watch:
    """Threads: decisions are read, a probe joins and leaves, the disk is used, and each node is asked for its state.

    The probe holds no slots. It joins and leaves every 0.3 s, so that there is always something to decide, and a gap
    between decisions means that none could be made. As agents do, it sends again what is not acknowledged: a leave
    whose join was lost is refused, and decisions wait for the letter. A context manager: it watches within the block,
    and raises the failure of a thread at the end of a block that had none.

    Args:
        cluster: the cluster, which runs.

    Attributes:
        arrivals: the decisions that have come.
        disk: of the folder in which the cluster's servers keep their data.
    """

    def __init__(self, cluster: KvCluster) -> None:
        self._cluster = cluster
        self._ended_s: float | None = None
        self.disk = Disk(cluster.real.folder)
        self.arrivals: list[Arrival] = []
        self._connections = Connections()
        self._source = open_source(cluster.real.cluster, cluster.real.kafka)
        self._writer = KafkaEventWriter(cluster.real.cluster, cluster.real.kafka, _PROBE_TIMEOUT_MS)
        self._samples = {node_id: Samples() for node_id in cluster.nodes}
        self._threads = Repeating(self._steps())
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        """Begin."""
        with ExitStack() as stack:
            stack.enter_context(self.disk)
            stack.callback(self._end)
            self._threads.start()
            self.wait_for(lambda _: True, "a decision on the probe")
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """End."""
        self._stack.close()
        if error is None:
            self._threads.raise_failure()

    @property
    def late_s(self) -> float:
        """How much later than asked for a thread was woken at worst: what of other figures may be the machine's."""
        return max((samples.late_s for samples in self._samples.values()), default=0.0)

    def wait_for(self, wanted: Callable[[Decision], bool], what: str, since: int = 0) -> Arrival:
        """The first arrival from the index ``since`` on that is wanted.

        Raises:
            AssertionError: it did not come within the time for which a cluster is waited for.
            RuntimeError: a thread of the watch has failed.
        """

        def has_come() -> bool:
            self._threads.raise_failure()
            return any(wanted(each.decision) for each in self.arrivals[since:])

        self._cluster.wait_until(has_come, what)
        return next(each for each in self.arrivals[since:] if wanted(each.decision))

    def longest_gap_s(self, since_s: float) -> float:
        """The longest time without a decision from ``since_s`` (monotonic) on, up to now or to the end of the watch."""
        end_s = time.monotonic() if self._ended_s is None else self._ended_s
        times = [since_s, *(each.at_s for each in self.arrivals if each.at_s > since_s), end_s]
        return max(after - before for before, after in pairwise(times))

    def longest_refusal_s(self) -> float:
        """The longest time for which no answer shows that one node served: an upper bound of any refusal.

        A node that serves is asked again 50 ms after its answer, so the bound is at most so much, the times of two
        answers, and what the machine is late, above the refusal itself.
        """
        return max((samples.longest_s for samples in self._samples.values()), default=0.0)

    def _end(self) -> None:
        self._ended_s = time.monotonic()
        self._threads.end()
        self._connections.close()
        self._writer.close()
        self._source.close()

    def _steps(self) -> list[Callable[[], None]]:
        decisions = DecisionFollower(self._source)
        incarnation = int(time.time() * 1_000)

        def follow() -> None:
            now = [Arrival(time.monotonic(), each.decision) for each in decisions.poll(_POLL_MS)]
            self.arrivals.extend(now)

        def sample(node_id: str) -> None:
            waits_since_s = time.monotonic()
            self._threads.ending.wait(_SAMPLE_S)
            asked_s = time.monotonic()
            serves = self._serves(node_id)
            self._samples[node_id].add(asked_s, time.monotonic(), serves=serves)
            self._samples[node_id].woken(asked_s - waits_since_s - _SAMPLE_S)

        def probe() -> None:
            nonlocal incarnation
            incarnation += 1
            joined = NodeJoined(_PROBE, incarnation, NodeRole.SESSION, (), "", 1, 0, "1", 0)
            for record in (joined, NodeLeft(_PROBE, incarnation, "test")):
                self._append(OutgoingRecord(MEMBERSHIP, _PROBE.encode(), encode_input(record)))
                self._threads.ending.wait(_PROBE_S)

        def keep() -> None:
            self._threads.ending.wait(_DISK_S)
            self.disk.keep()

        return [follow, probe, keep, *(partial(sample, node_id) for node_id in sorted(self._samples))]

    def _append(self, record: OutgoingRecord) -> None:
        errors: list[str | None] = []

        def note(delivery: Delivery) -> None:
            errors.append(delivery.error)

        while None not in errors and not self._threads.ending.is_set():
            self._writer.send(record, note)
            self._writer.flush(2 * _PROBE_TIMEOUT_MS)

    def _serves(self, node_id: str) -> bool:
        place = place_of(self._cluster.table, node_id)
        try:
            status = self._connections.ask(place, {"op": "status"}, _ANSWER_S) if place else {}
        except Unreachable:
            return False
        return status.get("state") == SessionState.ACTIVE.value
