"""Skewed traffic: requests at a given rate, most of them for few keys, with a ledger of the PUTs."""

import itertools
import random
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Final

from examples.kv.client import Acknowledged, Counts, GivenUp, KvClient
from examples.serving.command_line import parser_of, print_results_only, security_in
from examples.serving.counts import print_counts, print_counts_until_stopped

_WORKERS: Final = 8
_KEYS_PER_WORKER: Final = 100
_ZIPF_EXPONENT: Final = 1.1
_PUT_SHARE: Final = 0.5


@dataclass(slots=True)
class Ledger:
    """One writer's knowledge of its keys. Each value is a number, which grows with each PUT of the key.

    Attributes:
        attempted: the last value of each key that was sent.
        acknowledged: the last value of each key that was acknowledged.
    """

    attempted: dict[str, int] = field(default_factory=dict)
    acknowledged: dict[str, int] = field(default_factory=dict)

    def contradiction(self, key: str, value: str | None) -> str | None:
        """The error of a value that was read without concurrent writes; None if the value is possible."""
        least, most = self.acknowledged.get(key, 0), self.attempted.get(key, 0)
        found = int(value or 0)
        if least <= found <= most:
            return None
        return f"{key} reads {found}, acknowledged was {least}, attempted up to {most}"


class Traffic:
    """Writers and readers in threads, each with keys of its own.

    Args:
        client: sends the requests.
        rate_per_s: requests of all workers together.
        seed: of the choice of keys.
        on_acknowledged: called by the worker's thread for every acknowledged PUT.
    """

    def __init__(
        self,
        client: KvClient,
        rate_per_s: float,
        *,
        seed: int = 1,
        on_acknowledged: Callable[[Acknowledged], object] = lambda _: None,
    ) -> None:
        self.ledgers = [Ledger() for _ in range(_WORKERS)]
        self._client = client
        self._interval_s = _WORKERS / rate_per_s
        self._on_acknowledged = on_acknowledged
        self._stopping = threading.Event()
        self._resting = threading.Event()
        self._at_rest = [threading.Event() for _ in range(_WORKERS)]
        self._failure: BaseException | None = None
        self._threads = [
            threading.Thread(target=self._guarded, args=(number, random.Random(seed * 1_000 + number)), daemon=True)
            for number in range(_WORKERS)
        ]

    def start(self) -> None:
        """Begin."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """End, and wait for the running requests.

        Raises:
            BaseException: the error that ended a worker.
        """
        self._stopping.set()
        for thread in self._threads:
            thread.join()
        self.check()

    def check(self) -> None:
        """Raise the error that ended a worker, if there was one."""
        if self._failure is not None:
            raise self._failure

    def rest(self) -> None:
        """Pause: send nothing from now on, and wait until no request is running."""
        self._resting.set()
        for at_rest in self._at_rest:
            while not at_rest.wait(0.5):
                self.check()

    def resume(self) -> None:
        """Continue after :meth:`rest`."""
        for at_rest in self._at_rest:
            at_rest.clear()
        self._resting.clear()

    def _guarded(self, number: int, chance: random.Random) -> None:
        try:
            self._work(number, chance)
        except BaseException as failure:  # noqa: BLE001 - shown by `check` and `stop`
            self._failure = failure

    def _work(self, number: int, chance: random.Random) -> None:
        weights = [1 / (rank + 1) ** _ZIPF_EXPONENT for rank in range(_KEYS_PER_WORKER)]
        cumulated = list(itertools.accumulate(weights))
        ledger = self.ledgers[number]
        due_s = time.monotonic() + chance.random() * self._interval_s
        while not self._stopping.wait(max(0.0, due_s - time.monotonic())):
            if self._resting.is_set():
                self._at_rest[number].set()
                self._stopping.wait(0.01)
                continue
            # A worker that was delayed does not send the missed requests at once, which would be a burst.
            due_s = max(due_s, time.monotonic() - 1.0) + self._interval_s
            rank = chance.choices(range(_KEYS_PER_WORKER), cum_weights=cumulated)[0]
            self._ask(ledger, f"{number}-{rank}", put=chance.random() < _PUT_SHARE)

    def _ask(self, ledger: Ledger, key: str, *, put: bool) -> None:
        try:
            if put:
                ledger.attempted[key] = ledger.attempted.get(key, 0) + 1
                acknowledged = self._client.put(key, str(ledger.attempted[key]))
                self._on_acknowledged(acknowledged)
                ledger.acknowledged[key] = ledger.attempted[key]
            else:
                self._client.get(key)
        except GivenUp:
            return  # counted by the client; the ledger has the attempt


def main() -> None:
    """Send traffic until SIGTERM, SIGINT or the end of ``--seconds``. Each second print counts as a line of JSON."""
    parser = parser_of("Skewed traffic for the key-value service.")
    parser.add_argument("--rate", type=float, default=200.0, help="requests a second")
    parser.add_argument("--seconds", type=float, default=float("inf"))
    options = parser.parse_args()
    print_results_only()
    with KvClient(options.cluster, options.bootstrap_servers, security=security_in(options.security)) as client:
        traffic = Traffic(client, options.rate)
        traffic.start()
        total = _Total(client, traffic)
        print_counts_until_stopped(total.take, options.seconds)
        traffic.stop()
        print_counts(total.take())


class _Total:
    """Adds up what a client counted."""

    def __init__(self, client: KvClient, traffic: Traffic) -> None:
        self._client = client
        self._traffic = traffic
        self._counts = Counts()

    def take(self) -> dict[str, object]:
        """The counts of the whole run, and those since the last call."""
        self._traffic.check()
        interval = self._client.take_counts()
        self._counts = total = self._counts.plus(interval)
        table = self._client.routing.table
        return {
            "epoch": table.epoch if table else 0,
            "answered": total.answered,
            "refused": total.refused,
            "retried": total.retried,
            "failed": total.failed,
            "longest_ms": round(total.longest_ms, 1),
            "interval": asdict(interval),
        }
