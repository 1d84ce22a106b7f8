"""What errors say in one line, and what an operator is told beside it."""

from typing import Final

from streaming.storage import StoragePath

HOW_TO_MEND: Final = "docs/how-to/mend-the-pipeline.md has the steps"
"""The end of an error that only its operator can mend."""
NO_SPACE: Final = "No space left on device"
"""Stands in the errors of Java, Python and delta-rs on a full disk."""
LONGEST_LINE: Final = 300
"""So many characters of what another system says are told."""


def first_line(error: BaseException | str) -> str:
    """What an error says, without the trace that may follow."""
    return f"{str(error).strip().partition(chr(10))[0].strip():.{LONGEST_LINE}}"


def root_reason(error: BaseException) -> str:
    """The first line of what caused an exception, without the trace of Java if it came from there: that has 40 lines.

    Args:
        error: an exception of Python, of py4j or of pyspark.
    """
    java = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    if java is None:
        return first_line(error) or type(error).__name__
    while java.getCause() is not None:
        java = java.getCause()
    return first_line(java.getMessage() or "") or first_line(java.toString())


def full_disk(folder: StoragePath | str) -> str:
    """What an operator is told of the full disk of a folder."""
    return f"the disk of {folder} is full: make room; {HOW_TO_MEND}"
