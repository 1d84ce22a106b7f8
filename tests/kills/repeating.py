"""Threads that repeat a step each, and whose failure is told where their work is used."""

import threading
from collections.abc import Callable, Sequence

from controlplane.errors import LogUnavailableError


class Repeating:
    """Threads of which each repeats one step until all are told to end.

    A step is repeated although the log was unavailable in it. Any other error ends its thread, and is kept.

    Args:
        steps: a step returns soon once :attr:`ending` is set.

    Attributes:
        ending: set once the threads are told to end.
    """

    def __init__(self, steps: Sequence[Callable[[], None]]) -> None:
        """Nothing runs yet."""
        self.ending = threading.Event()
        self._failures: list[Exception] = []
        self._threads = [threading.Thread(target=self._repeat, args=(step,)) for step in steps]

    def start(self) -> None:
        """Begin."""
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        """Tell all threads to end, and wait until they have."""
        self.ending.set()
        for thread in self._threads:
            thread.join()

    def raise_failure(self) -> None:
        """Raise an error with the first failure of a thread as its cause, if a thread has failed.

        Raises:
            RuntimeError: a thread has failed.
        """
        if self._failures:
            raise RuntimeError(f"a repeated step failed: {self._failures[0]!r}") from self._failures[0]

    def _repeat(self, step: Callable[[], None]) -> None:
        while not self.ending.is_set():
            try:
                step()
            except LogUnavailableError:
                continue
            except Exception as error:  # noqa: BLE001 - kept for the thread that asks
                self._failures.append(error)
                return
