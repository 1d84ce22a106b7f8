"""The counts of the traffic's clients, read from the JSON objects that they append to their logs."""

import json
import os
from dataclasses import dataclass
from pathlib import Path

_TAIL_BYTES = 8_192


@dataclass(frozen=True, slots=True)
class Counts:
    """Requests since the client's start.

    Attributes:
        answered: requests that were answered, after any number of attempts.
        refused: answers such as "moved" or "migrating", after which the client tried again.
        failed: requests that were given up.
    """

    answered: int = 0
    refused: int = 0
    failed: int = 0

    def __sub__(self, earlier: "Counts") -> "Counts":
        """The difference between two moments."""
        return Counts(self.answered - earlier.answered, self.refused - earlier.refused, self.failed - earlier.failed)

    def __add__(self, other: "Counts") -> "Counts":
        """What several clients counted."""
        return Counts(self.answered + other.answered, self.refused + other.refused, self.failed + other.failed)


def read_counts(path: Path) -> Counts:
    """The newest line of counts in a client's log; zeros before the first one."""
    try:
        with path.open("rb") as log:
            log.seek(max(0, log.seek(0, os.SEEK_END) - _TAIL_BYTES))
            lines = log.read().splitlines()
    except FileNotFoundError:
        return Counts()
    for line in reversed(lines):
        try:
            found = json.loads(line)
            return Counts(int(found["answered"]), int(found["refused"]), int(found["failed"]))
        except (ValueError, KeyError, TypeError):
            continue  # a log line among the counts, or one that is being written
    return Counts()
