"""What the traffic's client counted: it appends one JSON object a moment to its log, and this reads them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Counts:
    """Requests since the client's start.

    Attributes:
        answered: requests that got their answer, whatever it took.
        refused: answers "moved", "migrating" or the like: the client tried again.
        failed: requests that were given up.
    """

    answered: int = 0
    refused: int = 0
    failed: int = 0

    def __sub__(self, earlier: "Counts") -> "Counts":
        """What came between two moments."""
        return Counts(self.answered - earlier.answered, self.refused - earlier.refused, self.failed - earlier.failed)

    def __add__(self, other: "Counts") -> "Counts":
        """What several clients counted."""
        return Counts(self.answered + other.answered, self.refused + other.refused, self.failed + other.failed)
