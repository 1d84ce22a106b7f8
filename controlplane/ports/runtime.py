"""Time, threads, and what threads wait for."""

from collections.abc import Callable
from types import TracebackType
from typing import Protocol, TypeVar

T = TypeVar("T")


class Clock(Protocol):
    """Time for drivers; the core gets it as an argument."""

    def monotonic_ms(self) -> int:
        """Milliseconds that never go back."""
        ...

    def wall_ms(self) -> int:
        """Milliseconds since 1970: carried for people, never trusted."""
        ...


class Signal(Protocol):
    """Set once, for good; :class:`threading.Event` is one."""

    def set(self) -> None:
        """From now on it is set."""
        ...

    def is_set(self) -> bool:
        """Whether it is set."""
        ...

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it is set, ``timeout`` seconds at most; whether it is."""
        ...


class Condition(Protocol):
    """A lock whose holders can wait for one another; :class:`threading.Condition` is one."""

    def __enter__(self) -> bool:
        """Take the lock."""
        ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None, /
    ) -> None:
        """Give the lock back."""
        ...

    def wait(self, timeout: float | None = None) -> bool:
        """Give the lock back until somebody notifies, ``timeout`` seconds at most; whether somebody did."""
        ...

    def wait_for(self, predicate: Callable[[], T], timeout: float | None = None) -> T:
        """Wait until the predicate holds, ``timeout`` seconds at most; what it said last."""
        ...

    def notify_all(self) -> None:
        """Wake everybody who waits."""
        ...


class Mailbox(Protocol[T]):
    """What one thread is told by others, in order; :class:`queue.SimpleQueue` is one."""

    def put(self, item: T) -> None:
        """Tell it something."""
        ...

    def get(self, block: bool = True, timeout: float | None = None) -> T:  # noqa: FBT001, FBT002 - as the library has it
        """The next thing that it was told.

        Raises:
            queue.Empty: nothing came within ``timeout`` seconds.
        """
        ...

    def empty(self) -> bool:
        """Whether there is nothing."""
        ...


class Thread(Protocol):
    """Something that runs beside its caller; :class:`threading.Thread` is one."""

    def start(self) -> None:
        """Begin to run."""
        ...

    def join(self, timeout: float | None = None) -> None:
        """Wait for its end, ``timeout`` seconds at most."""
        ...

    def is_alive(self) -> bool:
        """Whether it has begun and not ended."""
        ...


class Threads(Protocol):
    """Concurrency for drivers: the system's threads, or those of a simulation, which alone decides who runs when."""

    def thread(self, run: Callable[[], None], name: str) -> Thread:
        """A thread that does not keep its process alive."""
        ...

    def signal(self) -> Signal:
        """A signal that is not set."""
        ...

    def condition(self) -> Condition:
        """A condition that nobody holds."""
        ...

    def mailbox(self) -> Mailbox[T]:
        """An empty mailbox."""
        ...
