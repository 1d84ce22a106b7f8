"""Keeps a delivery callback from waiting for deliveries."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class CallbackGuard:
    """Knows which threads run a callback of one writer. Thread-safe.

    A callback runs inside ``poll`` or ``flush``. Called again from there, Kafka's client for Python ends the process,
    and a flush would wait for what it holds up itself; Kafka's client for Java refuses the latter too (KIP-1118).
    """

    def __init__(self) -> None:
        """No callback runs yet."""
        self._threads = threading.local()

    @contextmanager
    def callback(self) -> Iterator[None]:
        """Run a callback in the calling thread."""
        self._threads.runs_callback = True
        try:
            yield
        finally:
            self._threads.runs_callback = False

    def refuse_in_callback(self) -> None:
        """Refuse a call that runs callbacks.

        Raises:
            RuntimeError: the calling thread runs a callback of this writer.
        """
        if getattr(self._threads, "runs_callback", False):
            raise RuntimeError(
                "a writer cannot be polled or flushed in a delivery callback of its own: only send there"
            )
