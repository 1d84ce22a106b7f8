"""Time, threads, and the means by which threads wait for each other."""

from collections.abc import Callable
from types import TracebackType
from typing import Protocol, TypeVar

T = TypeVar("T")


class Clock(Protocol):
    """Time for drivers; the core receives it as an argument."""

    def monotonic_ms(self) -> int:
        """Milliseconds since an arbitrary start; never decreases."""
        ...

    def wall_ms(self) -> int:
        """Milliseconds since 1970; for display, never for decisions that depend on its being right."""
        ...


class Signal(Protocol):
    """A flag that is set once and stays set; :class:`threading.Event` is one."""

    def set(self) -> None:
        """Set the flag."""
        ...

    def is_set(self) -> bool:
        """Whether the flag is set."""
        ...

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the flag is set, for at most ``timeout`` seconds; return whether it is set."""
        ...


class Condition(Protocol):
    """A lock whose holders can wait for one another; :class:`threading.Condition` is one."""

    def __enter__(self) -> bool:
        """Acquire the lock."""
        ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None, /
    ) -> None:
        """Release the lock."""
        ...

    def wait(self, timeout: float | None = None) -> bool:
        """Release the lock until notified, for at most ``timeout`` seconds; return whether it was."""
        ...

    def wait_for(self, predicate: Callable[[], T], timeout: float | None = None) -> T:
        """Wait until the predicate holds, for at most ``timeout`` seconds; return its last value."""
        ...

    def notify_all(self) -> None:
        """Wake every thread that waits."""
        ...


class Mailbox(Protocol[T]):
    """A queue of items for one thread, in order; :class:`queue.SimpleQueue` is one."""

    def put(self, item: T) -> None:
        """Append an item."""
        ...

    def get(self, block: bool = True, timeout: float | None = None) -> T:  # noqa: FBT001, FBT002 - as the library has it
        """Remove and return the next item.

        Raises:
            queue.Empty: none came within ``timeout`` seconds.
        """
        ...

    def empty(self) -> bool:
        """Whether the queue has no item."""
        ...


class Thread(Protocol):
    """A thread of control; :class:`threading.Thread` is one."""

    def start(self) -> None:
        """Begin to run."""
        ...

    def join(self, timeout: float | None = None) -> None:
        """Wait for the end of the thread, for at most ``timeout`` seconds."""
        ...

    def is_alive(self) -> bool:
        """Whether the thread has begun and not ended."""
        ...


class Threads(Protocol):
    """Concurrency for drivers: the system's threads, or those of a simulation, which schedules them itself."""

    def thread(self, run: Callable[[], None], name: str) -> Thread:
        """A thread that does not keep its process alive."""
        ...

    def signal(self) -> Signal:
        """A signal that is not set."""
        ...

    def condition(self) -> Condition:
        """A condition that is not locked."""
        ...

    def mailbox(self) -> Mailbox[T]:
        """An empty mailbox."""
        ...
