"""Structured logs: what every line carries, and what keeps them short."""

import io
import json
import logging
import threading

import pytest
import structlog

from controlplane.cli.common.logging_setup import (
    CHATTY_LINES,
    CHATTY_WINDOW_S,
    ChatterLimit,
    LogFormat,
    configure_logging,
)


@pytest.fixture
def stream() -> io.StringIO:
    """Where the lines go."""
    return io.StringIO()


def lines(stream: io.StringIO) -> list[dict[str, object]]:
    """Every line as an object."""
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_lines_carry_cluster_and_bound_context(stream: io.StringIO) -> None:
    """Logs of several clusters and terms are collected in one place."""
    configure_logging("blue", "info", LogFormat.JSON, stream)
    with structlog.contextvars.bound_contextvars(term=3, epoch=9):
        structlog.get_logger("part").info("decided", moves=4)
    structlog.get_logger("part").info("later")
    first, second = lines(stream)
    assert first.items() >= {"cluster": "blue", "term": 3, "epoch": 9, "event": "decided", "moves": 4}.items()
    assert first["level"] == "info"
    assert "term" not in second


def test_cluster_stands_in_lines_of_other_threads(stream: io.StringIO) -> None:
    """Agents and tickers log from threads of their own, which have no context variables of ours."""
    configure_logging("blue", "info", LogFormat.JSON, stream)
    thread = threading.Thread(target=lambda: structlog.get_logger().info("from a thread"))
    thread.start()
    thread.join()
    assert lines(stream)[0]["cluster"] == "blue"


def test_standard_library_logs_take_the_same_way(stream: io.StringIO) -> None:
    """Libraries log through ``logging``; a second format in one file cannot be read by programs."""
    configure_logging("blue", "warning", LogFormat.JSON, stream)
    logging.getLogger("library").warning("low on %s", "memory")
    logging.getLogger("library").info("not wanted")
    (line,) = lines(stream)
    assert (line["event"], line["logger"], line["cluster"]) == ("low on memory", "library", "blue")


def test_errors_carry_their_traceback_in_one_line(stream: io.StringIO) -> None:
    """A traceback over many lines would be many records."""
    configure_logging("blue", "info", LogFormat.JSON, stream)
    try:
        int("defect")
    except ValueError:
        structlog.get_logger().exception("failed")
    (line,) = lines(stream)
    assert "defect" in json.dumps(line["exception"])


def test_console_is_for_people(stream: io.StringIO) -> None:
    """Asked for a console, lines are text."""
    configure_logging("blue", "info", LogFormat.CONSOLE, stream)
    structlog.get_logger().info("hello")
    assert "hello" in stream.getvalue()
    assert not stream.getvalue().startswith("{")


def test_people_are_spared_what_libraries_say(stream: io.StringIO) -> None:
    """What of it matters is in the sentence of an error."""
    configure_logging("blue", "info", LogFormat.JSON, stream, of_service=False)
    structlog.get_logger().warning("kafka_client_log", kafka_client="reader", text="Coordinator load in progress")
    structlog.get_logger().warning("ours")
    assert [line["event"] for line in lines(stream)] == ["ours"]


def test_a_command_says_sentences(stream: io.StringIO) -> None:
    """Among the lines of a command's own, a line of JSON looks like a part of the result that went astray."""
    configure_logging("blue", "info", LogFormat.AUTO, stream, of_service=False)
    structlog.get_logger("part").warning("snapshot skipped", snapshot="s1", reason="a part is missing")
    logging.getLogger("library").warning("low on memory")
    try:
        int("defect")
    except ValueError:
        structlog.get_logger().exception("failed")
    first, second, third, *stack = stream.getvalue().splitlines()
    assert first == "warning: snapshot skipped (snapshot: s1, reason: a part is missing)"
    assert second == "warning: low on memory"
    assert third == "error: failed"
    assert "invalid literal" in stack[-1]


def test_chatty_source_is_cut_and_counted() -> None:
    """Librdkafka repeats itself a hundred times a second while a broker is away; nothing else is held back."""
    now_s = 0.0
    limit = ChatterLimit(lambda: now_s)

    def passes(event: str, source: str) -> dict[str, object] | None:
        try:
            return dict(limit(None, "info", {"event": event, "kafka_client": source}))
        except structlog.DropEvent:
            return None

    sent = [passes("kafka_client_log", "reader") for _ in range(CHATTY_LINES + 5)]
    assert [line is not None for line in sent] == [True] * CHATTY_LINES + [False] * 5
    assert passes("kafka_client_log", "writer") is not None
    assert all(passes("decision committed", "reader") for _ in range(CHATTY_LINES + 5))
    now_s += CHATTY_WINDOW_S
    after = passes("kafka_client_log", "reader")
    assert after is not None
    assert after["left_out"] == 5
