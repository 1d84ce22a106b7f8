"""Structured logs: one JSON object per line, or coloured text on a terminal, also for the standard library's logs.

A command that ends by itself writes plain sentences instead.

Each line has the cluster. ``term`` and ``epoch`` are in lines of threads that know them, bound by
:func:`structlog.contextvars.bind_contextvars`.
"""

import logging
import sys
import time
from collections.abc import Callable
from enum import Enum
from typing import TextIO

import structlog


class LogFormat(Enum):
    """The format of log lines."""

    AUTO = "auto"
    """A command: plain sentences. A service: ``console`` if standard error is a terminal, else ``json``."""
    JSON = "json"
    CONSOLE = "console"


LOG_LEVELS = ("debug", "info", "warning", "error")


CHATTY_EVENTS = {"kafka_client_log": "kafka_client"}
"""Log events of libraries that may repeat many times per second, with the field that names their source."""
_NOT_IN_SENTENCES = frozenset({"cluster", "event", "level", "logger", "timestamp"})
CHATTY_LINES = 3
CHATTY_WINDOW_S = 5.0


class ChatterLimit:
    """A processor that passes only the first few lines of a frequent source on in each window of time.

    The first line of the next window has the number of dropped lines in ``left_out``.
    """

    def __init__(self, monotonic_s: Callable[[], float] = time.monotonic, *, silent: bool = False) -> None:
        """``silent`` drops every line of these sources."""
        self._monotonic_s = monotonic_s
        self._silent = silent
        self._windows: dict[tuple[str, str], tuple[float, int]] = {}

    def __call__(self, _logger: object, _method: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
        """Pass the line on or drop it."""
        name = str(event.get("event"))
        if name not in CHATTY_EVENTS:
            return event
        if self._silent:
            raise structlog.DropEvent
        source = (name, str(event.get(CHATTY_EVENTS[name])))
        now_s = self._monotonic_s()
        began_s, lines = self._windows.get(source, (now_s, 0))
        if now_s - began_s >= CHATTY_WINDOW_S:
            if lines > CHATTY_LINES:
                event["left_out"] = lines - CHATTY_LINES
            began_s, lines = now_s, 0
        self._windows[source] = (began_s, lines + 1)
        if lines >= CHATTY_LINES:
            raise structlog.DropEvent
        return event


def plain_line(_logger: object, _method: str, event: structlog.typing.EventDict) -> str:
    """A log line as a plain sentence: the event with its fields, without time and origin."""
    exception = event.pop("exception", None)
    fields = ", ".join(f"{name}: {value}" for name, value in event.items() if name not in _NOT_IN_SENTENCES)
    sentence = f"{event.get('level')}: {event.get('event')}" + (f" ({fields})" if fields else "")
    return f"{sentence}\n{exception}" if exception else sentence


def configure_logging(
    cluster: str, level: str, log_format: LogFormat, stream: TextIO | None = None, *, of_service: bool = True
) -> None:
    """Send structlog's and the standard library's lines to one stream in one format.

    Args:
        cluster: bound to every line.
        level: one of :data:`LOG_LEVELS`.
        log_format: see :class:`LogFormat`.
        stream: standard error if not given, so that standard output has results only.
        of_service: whether the process runs until it is stopped. Otherwise lines of frequent sources are dropped
            unless the level is ``debug``, because the messages of errors contain what matters of them.
    """
    target = sys.stderr if stream is None else stream

    def add_cluster(_logger: object, _method: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
        # Not a context variable: those are per thread, and the lines of every thread have the cluster.
        event.setdefault("cluster", cluster)
        return event

    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        add_cluster,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.StackInfoRenderer(),
    ]
    silent_libraries = not of_service and level != "debug"
    on_terminal = log_format is LogFormat.CONSOLE or (log_format is LogFormat.AUTO and target.isatty())
    rendering: list[structlog.typing.Processor]
    if log_format is LogFormat.AUTO and not of_service:
        rendering = [structlog.processors.format_exc_info, plain_line]
    elif on_terminal:
        rendering = [structlog.dev.ConsoleRenderer(colors=target.isatty())]
    else:
        rendering = [structlog.processors.dict_tracebacks, structlog.processors.JSONRenderer()]
    handler = logging.StreamHandler(target)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *rendering],
        )
    )
    root_logger = logging.getLogger()
    root_logger.handlers[:] = [handler]
    root_logger.setLevel(level.upper())
    # Spark's bridge logs every call from the JVM.
    logging.getLogger("py4j").setLevel(logging.WARNING)
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            ChatterLimit(silent=silent_libraries),
            *shared,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )
