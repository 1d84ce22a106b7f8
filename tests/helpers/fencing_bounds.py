"""The bounds of the page about fencing, computed from settings: for its test, the simulation and the kills."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from controlplane.adapters.kafka_reader import LEADERS_ASKED_EVERY_MS
from controlplane.adapters.kafka_transactions import COMMIT_TIMEOUT_MS
from controlplane.config import DEFAULT_TICK_INTERVAL_MS, MAX_TICK_GAP_MS, LeaseConfig
from controlplane.core.cluster.image import ClusterImage
from controlplane.core.deciding.consent import release_bound_ms
from controlplane.core.election.leading import (
    ANSWERED_WITHIN_MS,
    ASKED_APART_MS,
    CLEARLY_LATER_MS,
    DEAF_AFTER_MS,
    UNANSWERED_LIMIT_MS,
)
from controlplane.core.session.node_session import TABLE_GOOD_FOR_AT_LEAST_MS, SessionSettings
from controlplane.core.session.silence import valid_for_ms
from controlplane.kafka_rules.broker_sessions import (
    BROKER_SESSION,
    RECOMMENDED_MS,
    USUAL_SESSION_MS,
    transaction_timeout_ms,
)
from controlplane.service.lease_notes import NOTED_EVERY_MS
from controlplane.service.topic_ends import ASKED_EVERY_MS

SLOWEST_CLOCK: Final = 0.9
COMMIT_MS: Final = 500
"""Allowed for deciding, committing and reading; no setting bounds it."""
RECOVERY_MS: Final = 3_000
"""Allowed from the moment at which Kafka gives a broker up until nodes serve again."""
DECIDED_AGAIN_MS: Final = 2_000
"""Allowed from the moment at which Kafka gives a broker up until the same leader commits again."""
TAKEN_OVER_MS: Final = 5_000
"""Allowed from the moment at which Kafka gives a broker up until the successor of a leader that died too commits."""
KAFKA_LOOKS_EVERY_MS: Final = 10_000
"""Kafka's default of `transaction.abort.timed.out.transaction.cleanup.interval.ms`."""


@dataclass(frozen=True)
class Bounds:
    """What is promised with these settings, in ms; None where a bound needs another broker.

    Attributes:
        brokers: their number.
        session_ms: the broker session.
        cluster: it has the silence limit and the heartbeat interval.
        lease: of the controllers.
        tick_ms: interval of the controllers' ticks.
    """

    brokers: int = 1
    session_ms: int = RECOMMENDED_MS[BROKER_SESSION]
    cluster: ClusterImage = field(default_factory=ClusterImage)
    lease: LeaseConfig = field(default_factory=LeaseConfig)
    tick_ms: int = DEFAULT_TICK_INTERVAL_MS

    @property
    def name(self) -> str:
        """As the page calls these brokers."""
        brokers = {1: "one broker", 3: "three brokers"}[self.brokers]
        return brokers if self.brokers == 1 else f"{brokers}, session {self.session_ms / 1_000:g} s"

    @property
    def self_fencing_ms(self) -> int:
        """A node that is cut off serves for no longer, by a clock that is a tenth slow."""
        return round(self._valid_for_ms / SLOWEST_CLOCK)

    @property
    def overlap_after_silence_ms(self) -> int:
        """Two nodes serve a slot for no longer after one was fenced for silence."""
        return max(0, self.self_fencing_ms - self.cluster.silence_limit_ms)

    @property
    def overlap_after_move_ms(self) -> int:
        """Two nodes serve a slot for no longer after it was moved."""
        return round(max(self._valid_for_ms, TABLE_GOOD_FOR_AT_LEAST_MS) / SLOWEST_CLOCK)

    @property
    def overlap_by_former_leader_ms(self) -> int | None:
        """The same, if the broker that a node reads the table from leads it no longer and does not know it."""
        return self._with_several(self.overlap_after_move_ms + LEADERS_ASKED_EVERY_MS)

    @property
    def unsaid_release_ms(self) -> int:
        """A bundle whose owner lives and does not say that it has released it goes to its next owner within this."""
        return release_bound_ms(self.cluster.silence_limit_ms) + self.tick_ms + COMMIT_MS

    @property
    def detection_ms(self) -> int:
        """A dead node is a member for no longer."""
        return self.cluster.silence_limit_ms + self.tick_ms + COMMIT_MS

    @property
    def further_detection_ms(self) -> int:
        """Nor are nodes that died with it."""
        return self.detection_ms + self.cluster.heartbeat_interval_ms

    @property
    def overcounted_ms(self) -> int:
        """A step of a broker's clock adds no more to a silence."""
        return MAX_TICK_GAP_MS

    @property
    def failover_ms(self) -> int:
        """A leader that dies or stands still has a successor within this, if the lease store and Kafka answer."""
        return self.lease.duration_ms + self.lease.renew_interval_ms + COMMIT_MS

    @property
    def failover_from_unanswered_ms(self) -> int:
        """So has one whose commit Kafka does not answer, while it answers others."""
        return COMMIT_TIMEOUT_MS + UNANSWERED_LIMIT_MS + self.failover_ms

    @property
    def failover_from_unacknowledged_ms(self) -> int:
        """So has one whose ticks Kafka does not acknowledge, while it acknowledges those of others."""
        return self.lease.duration_ms + CLEARLY_LATER_MS + NOTED_EVERY_MS + self.failover_ms

    @property
    def failover_from_deaf_ms(self) -> int:
        """So has one that does not read an input partition on."""
        return ASKED_EVERY_MS + DEAF_AFTER_MS + self.lease.renew_interval_ms + self.failover_ms

    @property
    def failover_from_cut_off_ms(self) -> int | None:
        """So has one that cannot reach the broker of an input partition, while others can."""
        return self._with_several(self.cut_off_noticed_ms + self.failover_ms)

    @property
    def cut_off_noticed_ms(self) -> int:
        """Such a leader steps down within this."""
        told_apart_ms = ASKED_APART_MS + ASKED_EVERY_MS + NOTED_EVERY_MS + 2 * self.lease.renew_interval_ms
        return max(ANSWERED_WITHIN_MS, told_apart_ms) + DEAF_AFTER_MS

    @property
    def held_back_ms(self) -> int:
        """An open transaction of a leader that died holds readers back for no longer, although it has no successor."""
        return transaction_timeout_ms(self.brokers, self.session_ms) + KAFKA_LOOKS_EVERY_MS

    @property
    def failover_with_broker_ms(self) -> int | None:
        """So has one that dies in the same second as a broker."""
        return self._with_several(self.session_ms + TAKEN_OVER_MS)

    @property
    def without_decisions_ms(self) -> int | None:
        """Nothing is decided for no longer when a broker dies."""
        return self._with_several(self.session_ms + DECIDED_AGAIN_MS)

    @property
    def refusal_ms(self) -> int | None:
        """Nodes refuse for no longer when a broker dies."""
        return self._with_several(max(self.session_ms - self.cluster.silence_limit_ms, 0) + RECOVERY_MS)

    @property
    def _valid_for_ms(self) -> int:
        return valid_for_ms(self.cluster.silence_limit_ms, SessionSettings().self_fencing_margin_ms)

    def _with_several(self, bound_ms: int) -> int | None:
        return bound_ms if self.brokers > 1 else None


COLUMNS: Final = (Bounds(1), Bounds(3), Bounds(3, USUAL_SESSION_MS))
"""Those of the page's table."""
ROWS: Final[Mapping[str, str]] = {
    "self-fencing": "self_fencing_ms",
    "overlap after silence": "overlap_after_silence_ms",
    "overlap after a move": "overlap_after_move_ms",
    "overlap after a move, where the table is read from a former leader": "overlap_by_former_leader_ms",
    "release that is not said": "unsaid_release_ms",
    "detection of a death": "detection_ms",
    "detection of further deaths": "further_detection_ms",
    "overcounted at a step of a clock": "overcounted_ms",
    "failover": "failover_ms",
    "failover from an unanswered commit": "failover_from_unanswered_ms",
    "failover from a leader without acknowledgements": "failover_from_unacknowledged_ms",
    "failover from a deaf leader": "failover_from_deaf_ms",
    "failover from a leader that is cut off from one broker": "failover_from_cut_off_ms",
    "readers held back by a dead leader's transaction, without a successor": "held_back_ms",
    "failover when a broker dies with the leader": "failover_with_broker_ms",
    "time without decisions at a broker's death": "without_decisions_ms",
    "refusal of nodes at a broker's death": "refusal_ms",
}
"""The rows of the page's table, with the attribute of :class:`Bounds` that each shows."""
