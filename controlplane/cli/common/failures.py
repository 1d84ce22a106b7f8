"""From an exception to the exit status and the printed sentence."""

from enum import IntEnum

from controlplane.errors import ConfigurationError, ControlPlaneError, FencedError, RetryableError


class ExitStatus(IntEnum):
    """The exit statuses of every command."""

    DONE = 0
    FAILED = 1
    CALLED_WRONGLY = 2
    UNREACHABLE = 3
    """Kafka, Redis or a leader did not answer in time, a drain or an order of bundles did not end in time, or
    this process lost the lead."""
    INTERRUPTED = 130
    """Ctrl-C in a command that ends by itself; the number is that of shells (128 + SIGINT)."""


def exit_status_of(error: ControlPlaneError) -> ExitStatus:
    """The exit status for an error of this package."""
    match error:
        case RetryableError() | FencedError():
            return ExitStatus.UNREACHABLE
        case ConfigurationError():
            return ExitStatus.CALLED_WRONGLY
        case _:
            return ExitStatus.FAILED


def sentence_of(error: ControlPlaneError) -> str:
    """The printed text of an error of this package: its message, or its class if it has none."""
    return str(error) or type(error).__name__
