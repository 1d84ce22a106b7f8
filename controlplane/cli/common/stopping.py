"""Ending long-running commands cleanly on Ctrl-C and SIGTERM."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def stop_on_signals() -> Iterator[threading.Event]:
    """An event that SIGINT or SIGTERM sets. A second signal has its default effect. Main thread only."""
    stop = threading.Event()
    former = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def restore() -> None:
        for number, handler in former.items():
            signal.signal(number, handler)

    def on_signal(_number: int, _frame: FrameType | None) -> None:
        restore()
        # The main thread may hold the event's lock, so another thread sets the event.
        threading.Thread(target=stop.set, name="stop-on-signal").start()

    for number in former:
        signal.signal(number, on_signal)
    try:
        yield stop
    finally:
        restore()
