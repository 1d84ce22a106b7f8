"""What a Kafka client reports is logged at once, and a repeated line only every few seconds."""

import logging

from confluent_kafka import KafkaError
from structlog.testing import capture_logs

from controlplane.adapters.kafka_log_listener import LogListener

REFUSED = "localhost:9092/1: Connect to ipv4#127.0.0.1:9092 failed: Connection refused (after %dms in state CONNECT)"


class Client:
    """A client that logs to a listener, whose clock the test moves."""

    def __init__(self) -> None:
        self.now_s = 1_000.0
        self.listener = LogListener("test", "demo", lambda: self.now_s)

    def say(self, text: str, level: int = logging.ERROR) -> None:
        """Log a line as librdkafka does."""
        self.listener.log(level, "%s [%s] %s", "FAIL", "test#producer-1", text)


def test_a_repeated_line_is_logged_at_once_and_then_every_five_seconds_with_its_count() -> None:
    """A broker that is down for half a minute must not flood the log."""
    client = Client()
    with capture_logs() as lines:
        for attempt in range(300):
            client.say(REFUSED % attempt)
            client.now_s += 0.1
    assert len(lines) == 6
    assert [line.get("suppressed") for line in lines] == [None, 49, 49, 49, 49, 49]
    assert "Connection refused" in lines[0]["text"]
    assert {line["log_level"] for line in lines} == {"warning"}
    assert {(line["cluster"], line["kafka_client"]) for line in lines} == {("demo", "test")}


def test_other_lines_are_logged_among_repeated_ones() -> None:
    """The operator has to see a refused login among a hundred refused connections."""
    client = Client()
    with capture_logs() as lines:
        for _ in range(10):
            client.say(REFUSED % 0)
        client.say("localhost:9092/1: SASL authentication error: wrong password")
        client.say("other:9092/2: Connect to ipv4#127.0.0.2:9092 failed: Connection refused (after 0ms)")
    assert len(lines) == 3


def test_a_line_that_returns_after_a_while_is_logged_at_once() -> None:
    """A second outage is news again."""
    client = Client()
    with capture_logs() as lines:
        client.say(REFUSED % 0)
        client.now_s += 60
        client.say(REFUSED % 0)
    assert len(lines) == 2
    assert "suppressed" not in lines[1]


def test_a_refused_login_is_remembered_until_another_error_than_its_consequence() -> None:
    """After it librdkafka reports that all brokers are down, which would hide the cause."""
    listener = Client().listener
    for code, refused in (
        (KafkaError._AUTHENTICATION, True),  # noqa: SLF001 - librdkafka's own codes begin with an underscore
        (KafkaError._ALL_BROKERS_DOWN, True),  # noqa: SLF001 - as above
        (KafkaError._TRANSPORT, False),  # noqa: SLF001 - as above
        (KafkaError._ALL_BROKERS_DOWN, False),  # noqa: SLF001 - as above
    ):
        listener.on_error(KafkaError(code))
        assert listener.login_refused is refused
        assert ("_AUTHENTICATION" in listener.last_error) is refused


def test_the_cause_is_kept_when_all_brokers_are_down() -> None:
    """Which host name is wrong tells the user what to correct; that no broker is reached, is known already."""
    listener = Client().listener
    all_down = KafkaError(KafkaError._ALL_BROKERS_DOWN, "1/1 brokers are down")  # noqa: SLF001 - librdkafka's own
    listener.on_error(all_down)
    assert listener.last_error == "1/1 brokers are down (_ALL_BROKERS_DOWN)"
    unresolved = "Failed to resolve 'nosuch.host:9092': Name or service not known"
    listener.on_error(KafkaError(KafkaError._RESOLVE, unresolved))  # noqa: SLF001 - as above
    listener.on_error(all_down)
    assert listener.last_error == f"{unresolved} (_RESOLVE)"
