"""When a client asks for new leaders: while a broker is out of reach, a few times a second, and without waiting."""

from itertools import pairwise

from confluent_kafka import KafkaError, KafkaException

from controlplane.adapters.kafka_log_listener import LogListener
from controlplane.adapters.kafka_new_leaders import ASKED_EVERY_S, ASKED_FOR_S, NewLeaders

LOST = KafkaError(KafkaError._TRANSPORT)  # noqa: SLF001 - librdkafka's own codes begin with an underscore
TOPICS = ("demo.heartbeats", "demo.membership")


class Asked:
    """A client that notes when it asked, and whose questions time out at once."""

    def __init__(self) -> None:
        """Nothing was asked, and no connection was lost."""
        self.now_s = 1_000.0
        self.times_s: list[tuple[str, float]] = []
        self.leaders = NewLeaders(lambda: self.now_s)

    def list_topics(self, topic: str, *, timeout: float) -> object:
        """The answer comes later, and not here."""
        assert timeout == 0
        self.times_s.append((topic, self.now_s))
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT))  # noqa: SLF001 - as above

    def go_on(self, seconds: float) -> None:
        """Look every 50 ms whether to ask."""
        for _ in range(round(seconds / 0.05)):
            self.now_s += 0.05
            self.leaders.ask(self, TOPICS)


def test_nothing_is_asked_while_every_broker_is_reached() -> None:
    """Thousands of clients would ask a few times a second."""
    asked = Asked()
    asked.go_on(60)
    assert asked.times_s == []


def test_a_lost_connection_lets_a_client_ask_for_a_while() -> None:
    """For longer than Kafka takes to give a broker up; each topic at the interval."""
    asked = Asked()
    asked.leaders.connection_lost()
    asked.go_on(60)
    times_s = [at_s for topic, at_s in asked.times_s if topic == TOPICS[0]]
    assert len(asked.times_s) == 2 * len(times_s)
    assert times_s[0] <= 1_000.0 + ASKED_EVERY_S + 0.05
    assert all(ASKED_EVERY_S <= after - before + 0.001 <= ASKED_EVERY_S + 0.051 for before, after in pairwise(times_s))
    assert ASKED_FOR_S - 2 * ASKED_EVERY_S <= times_s[-1] - 1_000.0 <= ASKED_FOR_S + 0.001


def test_a_client_asks_at_once_when_it_is_told_to() -> None:
    """A writer that was idle has not noticed that a broker is gone."""
    asked = Asked()
    asked.leaders.ask_now(asked, TOPICS)
    assert [topic for topic, _ in asked.times_s] == list(TOPICS)


def test_a_listener_tells_of_lost_connections_alone() -> None:
    """A refused login is no reason to ask."""
    now_s = 1_000.0
    listener = LogListener("test", "demo", lambda: now_s)
    asked = Asked()
    listener.on_error(KafkaError(KafkaError._AUTHENTICATION))  # noqa: SLF001 - as above
    listener.new_leaders.ask(asked, TOPICS)
    assert asked.times_s == []
    listener.on_error(LOST)
    listener.new_leaders.ask(asked, TOPICS)
    assert len(asked.times_s) == len(TOPICS)
