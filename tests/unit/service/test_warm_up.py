"""What a controller does while it starts and Kafka leaves it waiting."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from structlog.testing import capture_logs

from controlplane.errors import LogUnavailableError
from controlplane.service.warm_up import WarmUp
from controlplane.testing import VirtualClock


class Start:
    """A start whose log takes some turns to read, and whose ticks are not acknowledged for some time."""

    def __init__(self, log_turns: int, unheard_ms: int) -> None:
        self.clock = VirtualClock()
        self.log_turns = log_turns
        self.unheard_ms = unheard_ms
        self.letters_served = 0
        self.ticker_served = 0
        self.began_with: list[object] = []

    def run(self) -> None:
        """Start to the end."""
        components: Any = SimpleNamespace(
            clock=self.clock,
            dead_letters=SimpleNamespace(listen=self._serve_letters),
            follower=SimpleNamespace(poll=self._poll, state=None),
            input_reader=SimpleNamespace(start=lambda _, times_ms: self.began_with.append(times_ms)),
        )
        ticker: Any = SimpleNamespace(start=lambda: None, serve_idle=self._serve_ticker, broker_times_ms=self._times)
        stop: Any = SimpleNamespace(is_set=lambda: False, wait=lambda seconds: self.clock.advance(int(seconds * 1_000)))
        WarmUp(components, ticker).run(stop)

    def _poll(self, timeout_ms: int) -> bool:
        self.clock.advance(timeout_ms)
        self.log_turns -= 1
        if self.log_turns == 1:
            raise LogUnavailableError("no answer")
        return self.log_turns <= 0

    def _times(self) -> tuple[dict[str, int], bool]:
        is_heard = self.clock.monotonic_ms() >= self.unheard_ms
        return ({"heartbeats[0]": 7} if is_heard else {}), is_heard

    def _serve_letters(self) -> None:
        self.letters_served += 1

    def _serve_ticker(self) -> None:
        self.ticker_served += 1


def said_by(run: Callable[[], None]) -> list[str]:
    """The warnings about ticks."""
    with capture_logs() as logs:
        run()
    return [each["event"] for each in logs if "acknowledged no tick" in each["event"]]


def test_writers_without_work_are_served_while_the_log_is_read() -> None:
    """Their clients would lose connections and logins, and keep their reports in memory."""
    start = Start(log_turns=5, unheard_ms=0)
    assert said_by(start.run) == []
    assert (start.letters_served, start.ticker_served) == (6, 5)
    assert start.began_with == [{"heartbeats[0]": 7}]


def test_ticks_that_are_not_acknowledged_are_said_once_after_ten_seconds() -> None:
    """A controller that only waited would look dead."""
    assert said_by(Start(log_turns=1, unheard_ms=9_000).run) == []
    late = Start(log_turns=1, unheard_ms=25_000)
    assert len(said_by(late.run)) == 1
    assert late.began_with == [{"heartbeats[0]": 7}]
    assert late.letters_served > 200
