"""The bounds that the page about fencing derives, computed from settings."""

from typing import Final, NamedTuple

from controlplane.config import DEFAULT_TICK_INTERVAL_MS, MAX_TICK_GAP_MS, LeaseConfig
from controlplane.core.cluster.image import ClusterImage
from controlplane.core.cluster.policy import ClusterPolicy
from controlplane.core.election.leading import UNANSWERED_LIMIT_MS
from controlplane.core.session.node_session import TABLE_GOOD_FOR_AT_LEAST_MS, SessionSettings
from controlplane.core.session.silence import valid_for_ms
from controlplane.kafka_rules.broker_sessions import (
    BROKER_SESSION,
    RECOMMENDED_MS,
    USUAL_SESSION_MS,
    transaction_timeout_ms,
)

SLOWEST_CLOCK: Final = 0.9
COMMIT_MS: Final = 500
"""Allowed for deciding, committing and reading; no setting bounds it."""
RECOVERY_MS: Final = 3_000
"""Allowed from the moment at which Kafka gives a broker up until nodes serve again."""


class Deployment(NamedTuple):
    """Settings of Kafka: how many brokers, and after how many ms a dead one is given up; 0 with one broker."""

    brokers: int
    session_ms: int

    @property
    def name(self) -> str:
        """As the page calls it."""
        if self.brokers == 1:
            return "one broker"
        return f"{_WORDS[self.brokers]} brokers, session {self.session_ms / 1_000:g} s"


_WORDS: Final = {3: "three"}
DEPLOYMENTS: Final = (
    Deployment(1, 0),
    Deployment(3, RECOMMENDED_MS[BROKER_SESSION]),
    Deployment(3, USUAL_SESSION_MS),
)


def bounds(deployment: Deployment) -> dict[str, int]:
    """Each bound in ms by its name on the page, for the default settings."""
    cluster, session = ClusterImage(ClusterPolicy()), SessionSettings()
    lease, tick_ms = LeaseConfig(), DEFAULT_TICK_INTERVAL_MS
    limit_ms, interval_ms = cluster.silence_limit_ms, cluster.heartbeat_interval_ms
    good_for_ms = valid_for_ms(limit_ms, session.self_fencing_margin_ms)
    reading_ms = max(good_for_ms, TABLE_GOOD_FOR_AT_LEAST_MS)
    failover_ms = lease.duration_ms + lease.renew_interval_ms + COMMIT_MS
    unanswered_ms = min(transaction_timeout_ms(*deployment), UNANSWERED_LIMIT_MS) + failover_ms
    return {
        "self-fencing": round(good_for_ms / SLOWEST_CLOCK),
        "overlap after silence": max(0, round(good_for_ms / SLOWEST_CLOCK) - limit_ms),
        "overlap after a move": round(reading_ms / SLOWEST_CLOCK),
        "detection of a death": limit_ms + tick_ms + COMMIT_MS,
        "detection of further deaths": limit_ms + interval_ms + tick_ms + COMMIT_MS,
        "overcounted at a step of a clock": MAX_TICK_GAP_MS,
        "failover": deployment.session_ms + failover_ms,
        "failover from an unanswered commit": unanswered_ms,
        "time without decisions at a broker's death": deployment.session_ms + 2_000 if deployment.session_ms else 0,
        "refusal of nodes at a broker's death": (
            max(deployment.session_ms - limit_ms, 0) + RECOVERY_MS if deployment.session_ms else 0
        ),
    }
