"""Reaching Kafka and Redis at the start of a command, and other waits: patient, visible, and with an end."""

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
"""Between two attempts, and between two lines that say what is waited for: no screen stays silent for longer."""


class UnreachableError(RetryableError):
    """Kafka or Redis did not answer within ``--connect-timeout``."""


def reach(what: str, timeout_s: float, attempt: Callable[[], T]) -> T:
    """The result of ``attempt``, tried again with a visible wait as long as the other side does not answer.

    Args:
        what: who is asked and where, for example ``Kafka at localhost:9092``.
        timeout_s: no attempt begins after so many seconds.
        attempt: the call; other exceptions than ``RetryableError`` pass through at once.

    Raises:
        UnreachableError: the time is over; the message holds the last answer.
    """
    patience = Retrying(
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
            return patience(attempt)
    except RetryableError as error:
        raise UnreachableError(
            f"{what} did not answer for {timeout_s:.0f} s (--connect-timeout): "
            f"is it running, and is the address right? The last trouble: {error}"
        ) from error


@contextmanager
def telling(sentence: Callable[[float], str]) -> Iterator[None]:
    """Say every two seconds on standard error what goes on, from another thread: a single step may take long as well.

    Args:
        sentence: what is said, given the seconds since the beginning.
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
