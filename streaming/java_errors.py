"""What an exception of the JVM says in one line: its text is a trace of 40 lines."""

from typing import Final

_LONGEST: Final = 300


def root_reason(error: BaseException) -> str:
    """The first line of what caused an exception, without the trace of Java if it came from there.

    Args:
        error: an exception of Python, of py4j or of pyspark.
    """
    java = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    if java is None:
        return _first_line(str(error)) or type(error).__name__
    while java.getCause() is not None:
        java = java.getCause()
    return _first_line(java.getMessage() or "") or _first_line(java.toString())


def _first_line(text: str) -> str:
    return f"{text.strip().partition(chr(10))[0].strip():.{_LONGEST}}"
