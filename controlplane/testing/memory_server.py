"""The common part of the in-memory lease and lock: a server with its own time that can fail its clients."""

import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

from controlplane.errors import ConfigurationError, LeaseStoreUnavailableError
from controlplane.ports import Clock


class MemoryServer(ABC):
    """A server that the stores of a cluster's controllers share.

    Attributes:
        available: False makes every request of every store fail, as a Redis that is down does; the data is kept.
        refusal: if not empty, every request is refused with this message, as by a Redis with changed users.
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
        """Delete all data, like a Redis that was restarted without persistence."""
        with self.lock:
            self._forget()

    @abstractmethod
    def _forget(self) -> None:
        """Set all data to that of a new server."""


ServerT = TypeVar("ServerT", bound=MemoryServer)


class MemoryClient(Generic[ServerT]):
    """The connection of one store to its server.

    Attributes:
        connected: False cuts this client off, and no other one.
    """

    def __init__(self, server: ServerT) -> None:
        """Connect to the shared server."""
        self.connected = True
        self._server = server

    def close(self) -> None:
        """Close the connection."""
        self.connected = False

    @contextmanager
    def _request(self) -> Iterator[int]:
        """Hold the server's lock for one request; yields the server's time in ms.

        Raises:
            LeaseStoreUnavailableError: the server was made unavailable, or this client was cut off.
            ConfigurationError: the server refuses every request.
        """
        if not (self.connected and self._server.available):
            raise LeaseStoreUnavailableError("the in-memory store was made unavailable: make it available again")
        if self._server.refusal:
            raise ConfigurationError(self._server.refusal)
        with self._server.lock:
            yield self._server.clock.wall_ms()
