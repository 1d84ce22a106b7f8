"""What a client of Kafka says: heard at once, and not a hundred times a minute."""

import logging

from structlog.testing import capture_logs

from controlplane.adapters.kafka_client import ClientEar

REFUSED = "localhost:9092/1: Connect to ipv4#127.0.0.1:9092 failed: Connection refused (after %dms in state CONNECT)"


class Listener:
    """An ear, and a clock for it."""

    def __init__(self) -> None:
        """Begin at some time."""
        self.now_s = 1_000.0
        self.ear = ClientEar("test", lambda: self.now_s)

    def say(self, text: str, level: int = logging.ERROR) -> None:
        """Log a line as librdkafka does."""
        self.ear.log(level, "%s [%s] %s", "FAIL", "test#producer-1", text)


def test_a_repeated_line_is_logged_at_once_and_then_every_five_seconds_with_its_count() -> None:
    """A broker that is away for half a minute must not bury what else is in the log."""
    listener = Listener()
    with capture_logs() as lines:
        for attempt in range(300):
            listener.say(REFUSED % attempt)
            listener.now_s += 0.1
    assert len(lines) == 6
    assert [line.get("held_back") for line in lines] == [None, 49, 49, 49, 49, 49]
    assert "Connection refused" in lines[0]["text"]
    assert {line["log_level"] for line in lines} == {"warning"}


def test_other_trouble_is_logged_although_some_repeats_itself() -> None:
    """A refused login between a hundred refused connections is what the operator has to see."""
    listener = Listener()
    with capture_logs() as lines:
        for _ in range(10):
            listener.say(REFUSED % 0)
        listener.say("localhost:9092/1: SASL authentication error: wrong password")
        listener.say("other:9092/2: Connect to ipv4#127.0.0.2:9092 failed: Connection refused (after 0ms)")
    assert len(lines) == 3


def test_a_line_that_comes_back_after_a_while_is_logged_at_once() -> None:
    """A second outage is news again."""
    listener = Listener()
    with capture_logs() as lines:
        listener.say(REFUSED % 0)
        listener.now_s += 60
        listener.say(REFUSED % 0)
    assert len(lines) == 2
    assert "held_back" not in lines[1]
