"""The scheduler: every thread of every simulated process is a greenlet, and virtual time passes when all wait.

The simulated code is the real code. All its blocking calls go through ports: a call that would block switches to the
scheduler, which continues with the next thread that is due. Ties are broken by the seed.
"""

import heapq
import random
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Final

from greenlet import getcurrent, greenlet

TIME_KEEPERS: Final = frozenset({"ticker"})
"""Threads whose turns are no events of a run: they would make any idle run look busy."""


class ProcessDied(BaseException):
    """Unwinds the threads of a process that was killed; nothing that they do while it flies reaches the world."""


@dataclass(eq=False)
class Process:
    """A simulated process: its threads stand still together and die together.

    Attributes:
        name: for reports.
        paused_until_ms: virtual time until which none of its threads runs.
        dead: it was killed; every blocking call of its threads raises :class:`ProcessDied`.
        threads: those that have begun and not ended.
    """

    name: str
    paused_until_ms: int = 0
    dead: bool = False
    threads: list["SimulatedThread"] = field(default_factory=list)


class SimulatedThread:
    """One thread of a process; implements :class:`controlplane.ports.Thread`.

    Attributes:
        process: whose it is.
        name: for reports.
        woken: whether its present waiting was ended.
        wake_number: distinguishes a valid due time from an outdated one.
        counts: its turns are events of the run; those of threads that only mark time are not.
    """

    def __init__(self, scheduler: "Scheduler", process: Process, run: Callable[[], None], name: str) -> None:
        """It begins with :meth:`start`."""
        self.process = process
        self.name = name
        self.woken = False
        self.wake_number = 0
        self.counts = name not in TIME_KEEPERS
        self._scheduler = scheduler
        self._run = run
        self._ended = False
        self._joiners: list[SimulatedThread] = []
        self.greenlet = greenlet(self._main, scheduler.hub)

    def start(self) -> None:
        """See :meth:`controlplane.ports.Thread.start`."""
        self._scheduler.require_alive()
        self.process.threads.append(self)
        self._scheduler.unfinished.add(self)
        self._scheduler.make_due(self, 0)

    def join(self, timeout: float | None = None) -> None:
        """See :meth:`controlplane.ports.Thread.join`."""
        if not self._ended:
            self._joiners.append(self._scheduler.current)
            self._scheduler.park(timeout)

    def is_alive(self) -> bool:
        """See :meth:`controlplane.ports.Thread.is_alive`."""
        return self in self.process.threads

    def _main(self) -> None:
        try:
            self._scheduler.require_alive()
            self._run()
        except ProcessDied:
            pass
        except BaseException as failure:  # noqa: BLE001 - the world judges what ended a thread
            self._scheduler.on_failure(self, failure)
        self._ended = True
        self.process.threads.remove(self)
        self._scheduler.unfinished.remove(self)
        for joiner in self._joiners:
            self._scheduler.wake(joiner)


class Scheduler:
    """Virtual time and the queue of waiting threads.

    Attributes:
        now_ms: virtual time.
        events: deliveries and wake-ups, those of ticks left out.
        on_failure: told of every exception that ends a thread.
        unfinished: threads that have begun and not ended, of whatever process.
    """

    def __init__(self, random_source: random.Random) -> None:
        """Time begins at zero."""
        self.now_ms = 0
        self.events = 0
        self.on_failure: Callable[[SimulatedThread, BaseException], None] = _raise
        self.unfinished: set[SimulatedThread] = set()
        self.hub = getcurrent()
        self._random = random_source
        self._queue: list[tuple[int, float, int, SimulatedThread | Callable[[], object], int]] = []
        self._counter = 0
        self._running: SimulatedThread | None = None

    @property
    def current(self) -> SimulatedThread:
        """The thread that runs."""
        assert self._running is not None, "only a simulated thread may block"
        return self._running

    @property
    def running_name(self) -> str:
        """The name of the process that runs; empty while the world acts."""
        return self._running.process.name if self._running is not None else ""

    def require_alive(self) -> None:
        """Raise if the process of the running thread was killed.

        Raises:
            ProcessDied: it was.
        """
        if self._running is not None and self._running.process.dead:
            raise ProcessDied

    # -- for threads -------------------------------------------------------------------------------------------------

    def sleep(self, milliseconds: float) -> None:
        """Let the running thread wait."""
        self.park(milliseconds / 1_000)

    def park(self, timeout_s: float | None) -> bool:
        """Let the running thread wait until it is woken or the time is over. Returns whether it was woken."""
        self.require_alive()
        thread = self.current
        thread.woken = False
        thread.wake_number += 1
        if timeout_s is not None:
            self._push(self.now_ms + max(round(timeout_s * 1_000), 0), thread)
        self._running = None
        self.hub.switch()
        self._running = thread
        self.require_alive()
        return thread.woken

    def wake(self, thread: SimulatedThread, after_ms: int = 0) -> None:
        """End a thread's waiting, at once or after a message's delay."""
        if not thread.woken and thread is not self._running:
            thread.woken = True
            thread.wake_number += 1
            self._push(self.now_ms + after_ms, thread)

    def make_due(self, thread: SimulatedThread, milliseconds: int) -> None:
        """Give a waiting thread its turn after a delay."""
        self._push(self.now_ms + milliseconds, thread)

    # -- for the world -----------------------------------------------------------------------------------------------

    def at(self, time_ms: int, happens: Callable[[], object]) -> None:
        """Let something happen to the world at a time."""
        self._push(max(time_ms, self.now_ms), happens)

    def kill(self, process: Process) -> None:
        """End a process between two of its steps: its threads unwind without reaching the world."""
        process.dead = True
        for thread in list(process.threads):
            self._resume(thread)

    def end(self) -> None:
        """Unwind every thread: one that waits for ever keeps its whole world in memory, and is never garbage."""
        for thread in list(self.unfinished):
            thread.process.dead = True
            self._resume(thread)

    def run_until(self, end_ms: int, after_step: Callable[[Process | None], None]) -> None:
        """Give turns until virtual time ``end_ms``; ``after_step`` gets the process of each, None for the world's."""
        while self._queue and self._queue[0][0] <= end_ms:
            due_ms, _, _, what, number = heapq.heappop(self._queue)
            self.now_ms = max(self.now_ms, due_ms)
            process = None
            if not isinstance(what, SimulatedThread):
                what()
            elif what.wake_number != number or not what.is_alive():
                continue
            elif what.process.paused_until_ms > self.now_ms:
                self._push(what.process.paused_until_ms, what)
                continue
            else:
                process = what.process
                self._resume(what)
            after_step(process)
        self.now_ms = max(self.now_ms, end_ms)

    def _resume(self, thread: SimulatedThread) -> None:
        self.events += thread.counts
        self._running = thread
        thread.greenlet.switch()
        self._running = None

    def _push(self, due_ms: int, what: SimulatedThread | Callable[[], object]) -> None:
        self._counter += 1
        number = what.wake_number if isinstance(what, SimulatedThread) else 0
        heapq.heappush(self._queue, (due_ms, self._random.random(), self._counter, what, number))


def _raise(_: SimulatedThread, failure: BaseException) -> None:
    raise failure


class Waiters:
    """Threads that wait for the same thing."""

    def __init__(self, scheduler: Scheduler) -> None:
        """Nobody waits."""
        self._scheduler = scheduler
        self._threads: list[SimulatedThread] = []

    def wait(self, timeout_s: float | None) -> bool:
        """Let the running thread wait; whether it was woken."""
        thread = self._scheduler.current
        self._threads.append(thread)
        woken = self._scheduler.park(timeout_s)
        if not woken:
            self._threads.remove(thread)  # or it would be woken from what it waits for next
        return woken

    def wake_all(self) -> None:
        """Give all of them a turn."""
        threads, self._threads = self._threads, []
        for thread in threads:
            self._scheduler.wake(thread)


class News:
    """Readers that wait for records in one of their topics."""

    def __init__(self, scheduler: Scheduler) -> None:
        """Nobody waits."""
        self._scheduler = scheduler
        self._waiting: dict[SimulatedThread, tuple[Collection[str], int]] = {}

    def wait(self, topics: Collection[str], travel_ms: int, timeout_ms: float) -> bool:
        """Let the running thread wait for records in these topics, with a delay. Returns whether there are any."""
        thread = self._scheduler.current
        self._waiting[thread] = topics, travel_ms
        woken = self._scheduler.park(timeout_ms / 1_000)
        if not woken:
            self._waiting.pop(thread, None)
        return woken

    def tell(self, topic: str) -> None:
        """There may be something in a topic."""
        told = [(thread, travel_ms) for thread, (topics, travel_ms) in self._waiting.items() if topic in topics]
        for thread, travel_ms in told:
            del self._waiting[thread]
            self._scheduler.wake(thread, travel_ms)
