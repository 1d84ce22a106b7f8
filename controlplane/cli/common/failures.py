"""What an exception means for the exit status and for the sentence that is printed."""

from enum import IntEnum

from controlplane.errors import ConfigurationError, ControlPlaneError, FencedError, RetryableError


class ExitStatus(IntEnum):
    """The exit statuses of every command."""

    DONE = 0
    FAILED = 1
    CALLED_WRONGLY = 2
    UNREACHABLE = 3
    """Kafka, Redis or a leader did not answer in time, a drain was not over in time, or this process leads no more."""
    INTERRUPTED = 130
    """Ctrl-C where it is not the ordinary end; the number is the shells' own (128 + SIGINT)."""


def exit_status_of(error: ControlPlaneError) -> ExitStatus:
    """The exit status for an error of ours."""
    match error:
        case RetryableError() | FencedError():
            return ExitStatus.UNREACHABLE
        case ConfigurationError():
            return ExitStatus.CALLED_WRONGLY
        case _:
            return ExitStatus.FAILED


def sentence_of(error: ControlPlaneError) -> str:
    """What is printed for an error of ours: its message, or its kind where it has none."""
    return str(error) or type(error).__name__
