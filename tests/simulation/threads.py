"""Threads, signals, conditions and mailboxes of a simulated process."""

import queue
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import Generic, TypeVar

from tests.simulation.scheduler import Process, Scheduler, SimulatedThread, Waiters

T = TypeVar("T")


class SimulatedThreads:
    """Implements :class:`controlplane.ports.Threads` for one process."""

    def __init__(self, scheduler: Scheduler, process: Process) -> None:
        """All that is made here belongs to the process."""
        self._scheduler = scheduler
        self._process = process

    def thread(self, run: Callable[[], None], name: str) -> SimulatedThread:
        """See :meth:`controlplane.ports.Threads.thread`."""
        return SimulatedThread(self._scheduler, self._process, run, name)

    def signal(self) -> "SimulatedSignal":
        """See :meth:`controlplane.ports.Threads.signal`."""
        return SimulatedSignal(self._scheduler)

    def condition(self) -> "SimulatedCondition":
        """See :meth:`controlplane.ports.Threads.condition`."""
        return SimulatedCondition(self._scheduler)

    def mailbox(self) -> "SimulatedMailbox[T]":
        """See :meth:`controlplane.ports.Threads.mailbox`."""
        return SimulatedMailbox(self._scheduler)


class SimulatedSignal:
    """Implements :class:`controlplane.ports.Signal`."""

    def __init__(self, scheduler: Scheduler) -> None:
        """Not set."""
        self._waiters = Waiters(scheduler)
        self._is_set = False

    def set(self) -> None:
        """See :meth:`controlplane.ports.Signal.set`."""
        self._is_set = True
        self._waiters.wake_all()

    def is_set(self) -> bool:
        """See :meth:`controlplane.ports.Signal.is_set`."""
        return self._is_set

    def wait(self, timeout: float | None = None) -> bool:
        """See :meth:`controlplane.ports.Signal.wait`."""
        if not self._is_set:
            self._waiters.wait(timeout)
        return self._is_set


class SimulatedCondition:
    """Implements :class:`controlplane.ports.Condition`."""

    def __init__(self, scheduler: Scheduler) -> None:
        """Create it, without a holder."""
        self._scheduler = scheduler
        self._waiters = Waiters(scheduler)
        self._contenders = Waiters(scheduler)
        self._holder: SimulatedThread | None = None
        self._depth = 0

    def __enter__(self) -> bool:
        """See :class:`controlplane.ports.Condition`."""
        self._take(1)
        return True

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None, /
    ) -> None:
        """See :class:`controlplane.ports.Condition`."""
        self._depth -= 1
        if not self._depth:
            self._give_back()

    def wait(self, timeout: float | None = None) -> bool:
        """See :meth:`controlplane.ports.Condition.wait`."""
        depth = self._depth
        self._give_back()
        woken = self._waiters.wait(timeout)
        self._take(depth)
        return woken

    def wait_for(self, predicate: Callable[[], T], timeout: float | None = None) -> T:
        """See :meth:`controlplane.ports.Condition.wait_for`."""
        deadline_ms = None if timeout is None else self._scheduler.now_ms + timeout * 1_000
        found = predicate()
        while not found:
            remaining_s = None if deadline_ms is None else (deadline_ms - self._scheduler.now_ms) / 1_000
            if remaining_s is not None and remaining_s <= 0:
                break
            self.wait(remaining_s)
            found = predicate()
        return found

    def notify_all(self) -> None:
        """See :meth:`controlplane.ports.Condition.notify_all`."""
        self._waiters.wake_all()

    def _take(self, depth: int) -> None:
        thread = self._scheduler.current
        while self._holder not in (None, thread):
            self._contenders.wait(None)
        self._holder = thread
        self._depth += depth

    def _give_back(self) -> None:
        self._holder, self._depth = None, 0
        self._contenders.wake_all()


class SimulatedMailbox(Generic[T]):
    """Implements :class:`controlplane.ports.Mailbox`."""

    def __init__(self, scheduler: Scheduler) -> None:
        """Empty."""
        self._waiters = Waiters(scheduler)
        self._items: deque[T] = deque()

    def put(self, item: T) -> None:
        """See :meth:`controlplane.ports.Mailbox.put`."""
        self._items.append(item)
        self._waiters.wake_all()

    def get(self, block: bool = True, timeout: float | None = None) -> T:
        """See :meth:`controlplane.ports.Mailbox.get`."""
        if not self._items and block:
            self._waiters.wait(timeout)
        if not self._items:
            raise queue.Empty
        return self._items.popleft()

    def empty(self) -> bool:
        """See :meth:`controlplane.ports.Mailbox.empty`."""
        return not self._items
