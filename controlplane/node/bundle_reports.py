"""What heartbeats say of a node's bundles: their statuses, and the steps of handoffs that it has done."""

from typing import Final, NamedTuple

from controlplane.core.bundles.reports import BundleStatus, BundleStepReport
from controlplane.core.values.replica_status import ReplicaStatus
from controlplane.node.held_bundle import HeldBundle, Standing

GATHER_MS: Final = 10
"""How long a step that was done waits for the end of a further call, and that one for the next: they are reported
together. A step that misses the heartbeat of the others costs its bundle a further heartbeat and a further decision."""
GATHER_AT_MOST_MS: Final = 30
"""How long a step waits for others however steadily calls end: about what the further decision would cost them."""
_MOST_STEPS: Final = 1_000
"""Steps in one heartbeat. The leader writes the rows of these, and the next heartbeats name the others."""


class BundleReport(NamedTuple):
    """What a heartbeat says of a node's bundles.

    Attributes:
        statuses: one for each bundle that it owns.
        steps: what it has done for bundles in flight, as long as their rows ask for it.
    """

    statuses: tuple[BundleStatus, ...] = ()
    steps: tuple[BundleStepReport, ...] = ()


class BundleSteps:
    """What heartbeats say of bundles in flight, as long as their rows ask for it. Not thread-safe."""

    def __init__(self) -> None:
        """Begin without steps."""
        self._steps: dict[str, BundleStepReport] = {}
        self._news_ms: tuple[int, int] | None = None

    @property
    def has_news(self) -> bool:
        """Whether a step was done that no heartbeat has reported."""
        return self._news_ms is not None

    @property
    def due_at_ms(self) -> int | None:
        """When to report the news though calls that are in progress may bring further ones; None without news."""
        if self._news_ms is None:
            return None
        first_ms, last_ms = self._news_ms
        return min(last_ms + GATHER_MS, first_ms + GATHER_AT_MOST_MS)

    def note(self, bundle_id: str, step: BundleStepReport | None, now_ms: int) -> None:
        """Note the step that a bundle's row asks of this node, if it is done."""
        if step is None:
            self._steps.pop(bundle_id, None)
        elif self._steps.get(bundle_id) != step:
            self._steps[bundle_id] = step
            first_ms = now_ms if self._news_ms is None else self._news_ms[0]
            self._news_ms = first_ms, now_ms

    def report(self) -> tuple[BundleStepReport, ...]:
        """The steps for a heartbeat."""
        self._news_ms = None
        return tuple(sorted(self._steps.values())[:_MOST_STEPS])


def status_of(held: HeldBundle) -> BundleStatus:
    """What a heartbeat says of a bundle that this node owns: whether the service has opened it for this holding."""
    is_open = held.standing is Standing.OPEN and held.opened == held.holding
    return BundleStatus(held.bundle_id, ReplicaStatus.HEALTHY if is_open else ReplicaStatus.MIGRATING)
