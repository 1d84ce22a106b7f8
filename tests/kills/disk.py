"""How long a disk takes to keep what is written: part of what a death costs that is the machine's."""

import os
import time
from pathlib import Path
from types import TracebackType
from typing import Self


class Disk:
    """Writes a few bytes now and then, and waits until the disk has kept them. A context manager: it closes its file.

    Kafka's controllers wait for their disks before they give a broker up, and a broker writes a file for each partition
    that changes its leader.

    Args:
        folder: where the file is.

    Attributes:
        longest_s: how long it took at worst.
    """

    def __init__(self, folder: Path) -> None:
        """Nothing is written yet."""
        self._path = folder / "kept"
        self._file = -1
        self.longest_s = 0.0

    def __enter__(self) -> Self:
        """Open the file."""
        self._file = os.open(self._path, os.O_CREAT | os.O_WRONLY)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close the file."""
        os.close(self._file)

    def keep(self) -> None:
        """Write, and wait."""
        began_s = time.monotonic()
        os.write(self._file, b"kept")
        os.fsync(self._file)
        self.longest_s = max(self.longest_s, time.monotonic() - began_s)
