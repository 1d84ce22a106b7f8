"""The waiting of a thread that has to look again at known moments, or when another thread wakes it."""

import queue
from typing import Final

from controlplane.ports import Mailbox, Threads

_IDLE_MS: Final = 500
"""The longest time between two looks, for a thread that also looks whether the agent is to stop."""


class Wakes:
    """What wakes one thread. Any thread may wake it; several wakes before it looks are one."""

    def __init__(self, threads: Threads) -> None:
        """Begin without wakes."""
        self._mailbox: Mailbox[None] = threads.mailbox()

    def wake(self) -> None:
        """Let the thread look again."""
        self._mailbox.put(None)

    def wait(self, now_ms: int, *moments_ms: int | None) -> None:
        """Wait until the first of these moments of the monotonic clock, a wake, or a while; None is no moment."""
        first_ms = min((each for each in moments_ms if each is not None), default=now_ms + _IDLE_MS)
        try:
            self._mailbox.get(timeout=max(min(first_ms - now_ms, _IDLE_MS), 1) / 1_000)
        except queue.Empty:
            return
        while not self._mailbox.empty():
            self._mailbox.get()
