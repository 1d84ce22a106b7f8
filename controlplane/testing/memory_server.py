"""What the fakes of the lease and of the lock share: a server with a time of its own that can fail its clients."""

import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

from controlplane.errors import ConfigurationError, LeaseStoreUnavailableError
from controlplane.ports import Clock


class MemoryServer(ABC):
    """What is shared by the stores that the controllers of one cluster hold.

    Attributes:
        available: False makes every request of every store fail, as a dead Redis does; the data stays.
        refusal: where it says something, every request is refused with it, as by a Redis whose users were changed.
        clock: the server's own time.
        lock: held while a request is answered.
    """

    def __init__(self, clock: Clock) -> None:
        """Begin empty; ``clock`` is the server's own time."""
        self.available = True
        self.refusal = ""
        self.clock = clock
        self.lock = threading.Lock()
        self._forget()

    def lose_data(self) -> None:
        """Forget everything, as a Redis that was restarted without persistence."""
        with self.lock:
            self._forget()

    @abstractmethod
    def _forget(self) -> None:
        """Be as a server that was never asked for anything."""


ServerT = TypeVar("ServerT", bound=MemoryServer)


class MemoryClient(Generic[ServerT]):
    """A store's connection to its server.

    Attributes:
        connected: False cuts this client off, and no other one.
    """

    def __init__(self, server: ServerT) -> None:
        """Connect to the shared server."""
        self.connected = True
        self._server = server

    def close(self) -> None:
        """Give the connection back."""
        self.connected = False

    @contextmanager
    def _request(self) -> Iterator[int]:
        """Meanwhile nobody else's request is answered; begins with the server's time in ms.

        Raises:
            LeaseStoreUnavailableError: the server, or the way to it, was made unavailable.
            ConfigurationError: the server refuses every request.
        """
        if not (self.connected and self._server.available):
            raise LeaseStoreUnavailableError("the in-memory store was made unavailable: make it available again")
        if self._server.refusal:
            raise ConfigurationError(self._server.refusal)
        with self._server.lock:
            yield self._server.clock.wall_ms()
