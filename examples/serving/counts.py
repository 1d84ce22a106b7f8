"""What a client counted, as a line of JSON each second, for programs that watch it."""

import json
import signal
import threading
import time
from collections.abc import Callable, Mapping
from typing import Final

_INTERVAL_S: Final = 1.0


def print_counts_until_stopped(counts: Callable[[], Mapping[str, object]], seconds: float) -> None:
    """Print the counts each second, until SIGTERM, SIGINT or the end of so many seconds."""
    asked = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: asked.set())
    until_s = time.monotonic() + seconds
    while not asked.wait(_INTERVAL_S) and time.monotonic() < until_s:
        print_counts(counts())


def print_counts(counts: Mapping[str, object]) -> None:
    """Print one line."""
    print(json.dumps({"at_ms": round(time.time() * 1_000), **counts}), flush=True)
