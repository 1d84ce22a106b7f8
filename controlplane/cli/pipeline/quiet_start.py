"""Starting a child that greets everybody with warnings: what it says at first is kept for the case that it fails."""

import os
import selectors
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_STANDARD_ERROR = 2
_PIECE_BYTES = 65_536


@contextmanager
def quiet_start() -> Iterator[None]:
    """Hold back what this process's children write to standard error in the block; show it only if the block fails.

    Children that were started in the block keep the way through this process: what they say later is passed on.
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
    """Reads one end of a pipe, and keeps or passes on what comes."""

    def __init__(self, reading: int, terminal: int) -> None:
        super().__init__(name="quiet-start", daemon=True)
        os.set_blocking(reading, False)
        self._reading = reading
        self._terminal = terminal
        self._lock = threading.Lock()
        self._kept: list[bytes] | None = []

    def show(self) -> None:
        """Write out what was kept, and keep nothing more."""
        with self._lock:
            for piece in self._kept or ():
                os.write(self._terminal, piece)
            self._kept = None

    def pass_on(self) -> None:
        """Keep nothing more. What lies in the pipe was said before, whether the thread had a turn to read it or not."""
        with self._lock:
            self._take()
            self._kept = None

    def run(self) -> None:
        """Until no child has the other end any more."""
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
        """Take what lies in the pipe, a piece at most; returns whether somebody holds its other end."""
        try:
            piece = os.read(self._reading, _PIECE_BYTES)
        except BlockingIOError:
            return True
        if self._kept is None:
            os.write(self._terminal, piece)
        else:
            self._kept.append(piece)
        return bool(piece)
