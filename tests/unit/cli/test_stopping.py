"""Long-running commands and signals."""

import signal
from collections.abc import Iterator

import pytest

from controlplane.cli.common.stopping import stop_on_signals


@pytest.fixture(autouse=True)
def _interrupts_as_usual() -> Iterator[None]:
    """Python's own handler: a Spark session of another test may have left one of its own."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signal_sets_the_event(number: signal.Signals) -> None:
    """Ctrl-C and a supervisor's SIGTERM both end the command cleanly."""
    before = signal.getsignal(number)
    with stop_on_signals() as stop:
        assert not stop.is_set()
        signal.raise_signal(number)
        assert stop.wait(10)
    assert signal.getsignal(number) == before


def test_second_signal_is_not_held_back() -> None:
    """Who presses Ctrl-C twice does not want to wait."""
    with stop_on_signals() as stop:
        signal.raise_signal(signal.SIGINT)
        assert stop.wait(10)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
