"""The system's threads."""

import queue
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


class SystemThreads:
    """Implements :class:`controlplane.ports.Threads` with the standard library."""

    def thread(self, run: Callable[[], None], name: str) -> threading.Thread:
        """See :meth:`controlplane.ports.Threads.thread`."""
        return threading.Thread(target=run, name=name, daemon=True)

    def signal(self) -> threading.Event:
        """See :meth:`controlplane.ports.Threads.signal`."""
        return threading.Event()

    def condition(self) -> threading.Condition:
        """See :meth:`controlplane.ports.Threads.condition`."""
        return threading.Condition()

    def mailbox(self) -> queue.SimpleQueue[T]:
        """See :meth:`controlplane.ports.Threads.mailbox`."""
        return queue.SimpleQueue()
