"""Connecting to Kafka and Redis at the start of a command, and other waits, with progress messages and a timeout."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import click
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_exponential

from controlplane.errors import RetryableError

T = TypeVar("T")

LONGEST_WAIT_S = 2.0
"""The time between two attempts, and between two progress messages."""


class UnreachableError(RetryableError):
    """Kafka or Redis did not answer within ``--connect-timeout``."""


def reach(what: str, timeout_s: float, attempt: Callable[[], T]) -> T:
    """The result of ``attempt``, which is repeated, with progress messages, while the service does not answer.

    Args:
        what: the service and its address, for example ``Kafka at localhost:9092``.
        timeout_s: no attempt begins later than that.
        attempt: the call. Exceptions other than ``RetryableError`` are raised at once.

    Raises:
        UnreachableError: the time is over; the message contains the last error.
    """
    retrying = Retrying(
        retry=retry_if_exception_type(RetryableError),
        wait=wait_exponential(multiplier=0.25, max=LONGEST_WAIT_S),
        stop=stop_after_delay(timeout_s),
        reraise=True,
    )

    def waiting(elapsed_s: float) -> str:
        now = "trying again" if elapsed_s < timeout_s else "the last attempt still runs"
        return f"{what} does not answer yet; {now} ({min(elapsed_s, timeout_s):.0f} of {timeout_s:.0f} s)"

    try:
        with telling(waiting):
            return retrying(attempt)
    except RetryableError as error:
        raise UnreachableError(
            f"{what} did not answer for {timeout_s:.0f} s (--connect-timeout): "
            f"is it running, and is the address right? The last trouble: {error}"
        ) from error


@contextmanager
def telling(sentence: Callable[[float], str]) -> Iterator[None]:
    """Print a progress message on standard error every two seconds, from another thread, as one step may take long.

    Args:
        sentence: the message, given the seconds since the beginning.
    """
    began = time.monotonic()
    done = threading.Event()

    def say() -> None:
        while not done.wait(LONGEST_WAIT_S):
            click.echo(sentence(time.monotonic() - began), err=True)

    teller = threading.Thread(target=say, name="visible-wait", daemon=True)
    teller.start()
    try:
        yield
    finally:
        done.set()
        teller.join()
