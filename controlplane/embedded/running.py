"""What runs between a start and a stop, for example in a ``with`` statement."""

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self


class Running(ABC):
    """Starts on entering a ``with`` statement, and stops on leaving it, whatever happened in it."""

    @abstractmethod
    def start(self) -> None:
        """Start it."""

    @abstractmethod
    def stop(self) -> None:
        """Stop it; the data stays. Idempotent."""

    def __enter__(self) -> Self:
        """Start it."""
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Stop it."""
        self.stop()
