"""What follows from the session after which Kafka gives up a dead broker."""

import pytest

from controlplane.kafka_rules.broker_sessions import transaction_timeout_ms


@pytest.mark.parametrize(
    ("brokers", "session_ms", "timeout_ms"),
    [
        (0, 9_000, 5_000),
        (1, 9_000, 5_000),
        (2, 30_000, 35_000),
        (3, 3_000, 10_000),
        (3, 5_000, 10_000),
        (3, 5_001, 10_001),
        (3, 9_000, 14_000),
    ],
)
def test_a_transaction_stays_open_for_longer_than_a_dead_broker_is_waited_for(
    brokers: int, session_ms: int, timeout_ms: int
) -> None:
    """The session and 5 s, 10 s at least; 5 s with one broker, whose death no commit outlasts."""
    assert transaction_timeout_ms(brokers, session_ms) == timeout_ms
