"""Sessions of brokers: what is recommended where there are several, and what follows from them. Pure functions.

A *broker session* is the time after which Kafka gives up a broker of which it hears nothing. Until then no write is
acknowledged that the broker has a copy of.
"""

from collections.abc import Mapping
from typing import Final

BROKER_SESSION: Final = "broker.session.timeout.ms"
BROKER_HEARTBEAT: Final = "broker.heartbeat.interval.ms"
REPLICA_LAG: Final = "replica.lag.time.max.ms"
FETCH_BACKOFF: Final = "replica.fetch.backoff.ms"
FETCH_WAIT: Final = "replica.fetch.wait.max.ms"
USUAL_SESSION_MS: Final = 9_000
"""Kafka's default of the session."""
RECOMMENDED_MS: Final[Mapping[str, int]] = {
    BROKER_SESSION: 3_000,
    BROKER_HEARTBEAT: 500,
    REPLICA_LAG: 3_000,
    FETCH_BACKOFF: 100,
    FETCH_WAIT: 100,
}
"""The greatest values that are recommended where there are several brokers.

The last two let the followers of a new leader fetch from it soon: until they do, it acknowledges nothing.
"""

_WITH_ONE_BROKER_MS: Final = 5_000
_LEAST_WITH_SEVERAL_MS: Final = 10_000
_BEYOND_SESSION_MS: Final = 5_000


def transaction_timeout_ms(brokers: int, session_ms: int) -> int:
    """The time after which Kafka should abort a leader's open transaction.

    It is the longest time for which a crashed leader holds readers back if no other one follows. With several brokers
    it has to be longer than Kafka takes to give up a dead one: until then no write is acknowledged that the dead broker
    has a copy of, and a shorter time would fence a healthy leader.

    Args:
        brokers: their number.
        session_ms: the broker session; it has no effect with one broker.
    """
    if brokers <= 1:
        return _WITH_ONE_BROKER_MS
    return max(_LEAST_WITH_SEVERAL_MS, session_ms + _BEYOND_SESSION_MS)
