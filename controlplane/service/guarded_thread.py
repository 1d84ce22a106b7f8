"""A thread of a controller that ends the controller when it fails."""

from collections.abc import Callable
from typing import Final

from controlplane.ports import Signal, Threads

_JOIN_S: Final = 5


class GuardedThread:
    """Runs a function until it is asked to stop. Its failure is handed to the controller's own thread, which raises it.

    Attributes:
        stopping: set when the function has to return.
    """

    def __init__(self, threads: Threads, name: str, run: Callable[[], None]) -> None:
        """Set up the thread."""
        self.stopping: Signal = threads.signal()
        self._run = run
        self._failure: BaseException | None = None
        self._thread = threads.thread(self._guarded, name)

    def start(self) -> None:
        """Begin to run."""
        self._thread.start()

    def stop(self) -> None:
        """Ask the function to return, and wait for it for some seconds."""
        self.stopping.set()
        if self._thread.is_alive():
            self._thread.join(timeout=_JOIN_S)

    def require_alive(self) -> None:
        """Check that the function has not failed.

        Raises:
            BaseException: the exception that ended it.
        """
        if self._failure is not None:
            raise self._failure

    def _guarded(self) -> None:
        try:
            self._run()
        except BaseException as failure:  # noqa: BLE001 - handed to the controller's thread, which raises it
            self._failure = failure
