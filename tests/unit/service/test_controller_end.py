"""A controller that ends gives its lease back and ends its threads, whatever went wrong before or in between."""

import random
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from controlplane.errors import InvariantViolationError
from controlplane.service.controller import Controller
from controlplane.testing import VirtualClock


class Part:
    """A part of a controller that notes how it was ended."""

    def __init__(self, name: str, ended: list[str], *, fails: bool = False) -> None:
        """It runs."""
        self._name = name
        self._ended = ended
        self._fails = fails

    def start(self) -> None:
        """Nothing to do."""

    def stop(self) -> None:
        """Note it."""
        self._ended.append(self._name)
        if self._fails:
            raise InvariantViolationError(f"{self._name} does not end")

    close = stop


def test_a_part_that_fails_to_end_keeps_no_other_from_ending(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first error is shown, and the lease is given back: another controller need not wait until it expires."""
    ended: list[str] = []

    class Broken:
        """The machine, which cannot step down, and the warm-up, which fails first."""

        def __init__(self, *_: object) -> None:
            """Of any controller."""

        def run(self, _: object) -> None:
            """Fail."""
            raise InvariantViolationError("the warm-up failed")

        def on_event(self, *_: object) -> None:
            """Fail."""
            raise InvariantViolationError("the machine failed")

    monkeypatch.setattr("controlplane.service.controller.WarmUp", Broken)
    components: Any = SimpleNamespace(
        clock=VirtualClock(),
        metrics=None,
        follower=Part("follower", ended),
        input_reader=Part("input reader", ended),
        snapshots=Part("snapshots", ended, fails=True),
    )
    machine, keeper, ticker, ends, promises = (
        Broken(),
        Part("keeper", ended),
        Part("ticker", ended),
        Part("input ends", ended),
        Part("promises", ended),
    )
    parts: Any = (machine, keeper, ticker, ends)
    watch: Any = promises
    controller = Controller(components, *parts, promise_watch=watch, random_source=random.Random(1))
    with pytest.raises(InvariantViolationError) as caught:
        controller.run(threading.Event())
    errors: list[str] = []
    error: BaseException | None = caught.value
    while error is not None:
        errors.append(str(error))
        error = error.__context__
    assert errors == ["snapshots does not end", "the machine failed", "the warm-up failed"]
    assert ended == ["keeper", "ticker", "input ends", "promises", "snapshots", "input reader", "follower"]
