"""Connecting to Kafka and Redis at the start of a command, and other waits, with progress messages and a timeout."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import click
from tenacity import RetryCallState, Retrying, retry_if_exception_type, stop_after_delay, wait_exponential

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
        timeout_s: no attempt begins later than that; the last one may end some seconds after it.
        attempt: the call. Exceptions other than ``RetryableError`` are raised at once.

    Raises:
        UnreachableError: the time is over; the message contains the last error.
    """
    usual_pause = wait_exponential(multiplier=0.25, max=LONGEST_WAIT_S)

    def pause_s(state: RetryCallState) -> float:
        return min(usual_pause(state), max(0.0, timeout_s - (state.seconds_since_start or 0.0)))

    retrying = Retrying(
        retry=retry_if_exception_type(RetryableError),
        wait=pause_s,
        stop=stop_after_delay(timeout_s),
        reraise=True,
    )

    last_told = False

    def waiting(elapsed_s: float) -> str:
        nonlocal last_told
        if last_told:
            return ""
        last_told = elapsed_s >= timeout_s
        now = "the last attempt still runs" if last_told else "trying again"
        return f"{what} does not answer yet; {now} ({min(elapsed_s, timeout_s):.0f} of {timeout_s:.0f} s)"

    began_s = time.monotonic()
    try:
        with telling(waiting):
            return retrying(attempt)
    except RetryableError as error:
        raise UnreachableError(
            f"{what} did not answer for {time.monotonic() - began_s:.0f} s (--connect-timeout {timeout_s:g}): "
            f"is it running, and is the address right? The last trouble: {error}"
        ) from error


@contextmanager
def telling(sentence: Callable[[float], str]) -> Iterator[None]:
    """Print a progress message on standard error every two seconds, from another thread, as one step may take long.

    Args:
        sentence: the message, given the seconds since the beginning; an empty one is not printed.
    """
    began = time.monotonic()
    done = threading.Event()

    def say() -> None:
        while not done.wait(LONGEST_WAIT_S):
            message = sentence(time.monotonic() - began)
            if message:
                click.echo(message, err=True)

    teller = threading.Thread(target=say, name="visible-wait", daemon=True)
    teller.start()
    try:
        yield
    finally:
        done.set()
        teller.join()
