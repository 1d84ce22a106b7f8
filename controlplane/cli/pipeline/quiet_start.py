"""Starting a child process that prints warnings: its first output is held back, and shown only if the start fails."""

import os
import selectors
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_STANDARD_ERROR = 2
_PIECE_BYTES = 65_536


@contextmanager
def quiet_start() -> Iterator[None]:
    """Hold back what this process's children write to standard error in the block. Show it only if the block fails.

    Later output of children that were started in the block is passed on through this process.
    """
    reading, writing = os.pipe()
    terminal = os.dup(_STANDARD_ERROR)
    relay = _Relay(reading, terminal)
    os.dup2(writing, _STANDARD_ERROR)
    os.close(writing)
    relay.start()
    try:
        yield
    except BaseException:
        relay.show()
        raise
    finally:
        relay.pass_on()
        os.dup2(terminal, _STANDARD_ERROR)


class _Relay(threading.Thread):
    """Reads one end of a pipe, and keeps the output or passes it on."""

    def __init__(self, reading: int, terminal: int) -> None:
        super().__init__(name="quiet-start", daemon=True)
        os.set_blocking(reading, False)
        self._reading = reading
        self._terminal = terminal
        self._lock = threading.Lock()
        self._kept: list[bytes] | None = []

    def show(self) -> None:
        """Write the kept output, and pass on what follows."""
        with self._lock:
            for piece in self._kept or ():
                os.write(self._terminal, piece)
            self._kept = None

    def pass_on(self) -> None:
        """Drop the kept output and pass on what follows. What is in the pipe already counts as kept."""
        with self._lock:
            self._take()
            self._kept = None

    def run(self) -> None:
        """Run until no child has the other end open."""
        is_held = True
        with selectors.DefaultSelector() as selector:
            selector.register(self._reading, selectors.EVENT_READ)
            while is_held:
                selector.select()
                with self._lock:
                    is_held = self._take()
        os.close(self._reading)
        os.close(self._terminal)

    def _take(self) -> bool:
        """Read one chunk from the pipe at most. Returns whether another process still has the other end open."""
        try:
            piece = os.read(self._reading, _PIECE_BYTES)
        except BlockingIOError:
            return True
        if self._kept is None:
            os.write(self._terminal, piece)
        else:
            self._kept.append(piece)
        return bool(piece)
