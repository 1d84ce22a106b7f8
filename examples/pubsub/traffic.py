"""Traffic: a producer and a subscriber for each of several topics, with a ledger of what was acknowledged.

Messages are due at a fixed rate. One that has to wait because those before it were not acknowledged yet is late already
when it is sent, and the time to its acknowledgement counts from when it was due. So a broker that is away for a second
shows in every message of that second.
"""

import contextlib
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Final
from uuid import uuid4

from controlplane import routing_client
from examples.pubsub.client import GivenUp, Producer, PubSubClient, Subscriber
from examples.pubsub.topic_file import TopicMessage
from examples.serving.command_line import parser_of, print_results_only, security_in
from examples.serving.counts import print_counts, print_counts_until_stopped
from examples.serving.restarts import Latencies

_KEYS: Final = 10
_ATTEMPTS_AT_MOST: Final = 3
_READ_TO_THE_END_S: Final = 20.0


def new_topics(namespace: str, count: int) -> list[str]:
    """Names of topics that no earlier run has left messages in."""
    new = uuid4().hex[:8]
    return [f"persistent://{namespace}/{new}-{number}" for number in range(1, count + 1)]


@dataclass(slots=True)
class Findings:
    """What became of messages.

    Attributes:
        sent: messages that were sent.
        acknowledged: those that were acknowledged.
        missing: those that were acknowledged and not received.
        doubled: those that were received more than once.
        out_of_order: those that were received after a later message of the same key.
    """

    sent: int = 0
    acknowledged: int = 0
    missing: int = 0
    doubled: int = 0
    out_of_order: int = 0

    @property
    def are_good(self) -> bool:
        """Whether nothing that was acknowledged is missing, and nothing doubled or out of order."""
        return not (self.missing or self.doubled or self.out_of_order)

    def plus(self, other: "Findings") -> "Findings":
        """The sum."""
        return Findings(
            self.sent + other.sent,
            self.acknowledged + other.acknowledged,
            self.missing + other.missing,
            self.doubled + other.doubled,
            self.out_of_order + other.out_of_order,
        )


@dataclass(slots=True)
class Ledger:
    """One topic. The text of a message is its number, which grows by 1; the sets have the numbers."""

    topic: str
    sent: int = 0
    acknowledged: set[int] = field(default_factory=set)
    received: list[TopicMessage] = field(default_factory=list)
    received_numbers: set[int] = field(default_factory=set)

    def receive(self, messages: Sequence[TopicMessage]) -> None:
        """Note messages that a subscriber has received."""
        self.received += messages
        self.received_numbers.update(int(message.text) for message in messages)

    def findings(self, received: Sequence[TopicMessage]) -> Findings:
        """What became of the messages, if a subscriber from offset 0 on has received these."""
        numbers = Counter(int(message.text) for message in received)
        last: dict[str, int] = {}
        out_of_order = 0
        for message in received:
            out_of_order += int(message.text) < last.get(message.key, 0)
            last[message.key] = max(int(message.text), last.get(message.key, 0))
        return Findings(
            self.sent,
            len(self.acknowledged),
            missing=len(self.acknowledged - numbers.keys()),
            doubled=sum(count - 1 for count in numbers.values()),
            out_of_order=out_of_order,
        )


class Traffic:
    """Producers and subscribers in threads of their own.

    Args:
        client: sends the requests.
        topics: one producer and one subscriber for each.
        rate_per_s: messages to all topics together.

    Attributes:
        ledgers: one for each topic.
        latencies: from when a message was due to its acknowledgement, by topic.
        repeated: attempts after the first one.
        given_up: messages that were not acknowledged.
        of_many_attempts: messages that took more than 3 attempts.
    """

    def __init__(self, client: PubSubClient, topics: Sequence[str], rate_per_s: float) -> None:
        self.ledgers = [Ledger(topic) for topic in topics]
        self.latencies = Latencies()
        self.repeated = 0
        self.given_up = 0
        self.of_many_attempts = 0
        self._client = client
        self._interval_s = len(topics) / rate_per_s
        self._lock = threading.Lock()
        self._no_more = threading.Event()
        self._ending = threading.Event()
        self._failure: BaseException | None = None
        self._producers = self._threads(self._produce)
        self._subscribers = self._threads(self._receive)

    def start(self) -> None:
        """Begin."""
        for thread in (*self._producers, *self._subscribers):
            thread.start()

    def stop(self) -> Findings:
        """End, let the subscribers read to the end, and return what became of all messages.

        Raises:
            BaseException: the error that ended a producer or a subscriber.
        """
        self._no_more.set()
        for thread in self._producers:
            thread.join()
        until_s = time.monotonic() + _READ_TO_THE_END_S
        while not self._all_received() and time.monotonic() < until_s:
            time.sleep(0.05)
        self._ending.set()
        for thread in self._subscribers:
            thread.join()
        self.check()
        total = Findings()
        for ledger in self.ledgers:
            total = total.plus(ledger.findings(ledger.received))
        return total

    def check(self) -> None:
        """Raise the error that ended a producer or a subscriber, if there was one."""
        if self._failure is not None:
            raise self._failure

    def _threads(self, work: Callable[[Ledger], None]) -> list[threading.Thread]:
        def guarded(ledger: Ledger) -> None:
            try:
                work(ledger)
            except BaseException as failure:  # noqa: BLE001 - raised by `check` and `stop`
                self._failure = failure

        return [threading.Thread(target=guarded, args=(ledger,), daemon=True) for ledger in self.ledgers]

    def _all_received(self) -> bool:
        """Whether every message that was acknowledged was received. One that was given up may be there as well."""
        return all(ledger.acknowledged <= ledger.received_numbers for ledger in self.ledgers)

    def _produce(self, ledger: Ledger) -> None:
        producer = Producer(self._client, ledger.topic)
        due_s = time.monotonic()
        while not self._no_more.wait(max(0.0, due_s - time.monotonic())):
            ledger.sent += 1
            self._send(producer, ledger, due_s)
            due_s += self._interval_s

    def _send(self, producer: Producer, ledger: Ledger, due_s: float) -> None:
        try:
            acknowledged = producer.send(f"key-{ledger.sent % _KEYS}", str(ledger.sent))
        except GivenUp:
            with self._lock:
                self.given_up += 1
            return
        self.latencies.note(ledger.topic, (time.monotonic() - due_s) * 1_000)
        ledger.acknowledged.add(ledger.sent)
        with self._lock:
            self.repeated += acknowledged.attempts - 1
            self.of_many_attempts += acknowledged.attempts > _ATTEMPTS_AT_MOST

    def _receive(self, ledger: Ledger) -> None:
        subscriber = Subscriber(self._client, ledger.topic)
        while not self._ending.is_set():
            with contextlib.suppress(GivenUp):
                ledger.receive(subscriber.receive())


def main() -> None:
    """Send messages until SIGTERM, SIGINT or the end of ``--seconds``. Each second print counts as a line of JSON."""
    parser = parser_of("A producer and a subscriber for each of several topics of the publish-subscribe service.")
    parser.add_argument("--namespace", required=True, help="of the topics; it has to exist")
    parser.add_argument("--topics", type=int, default=12)
    parser.add_argument("--rate", type=float, default=300.0, help="messages a second to all topics together")
    parser.add_argument("--seconds", type=float, default=float("inf"))
    options = parser.parse_args()
    print_results_only()
    routing = routing_client(options.cluster, options.bootstrap_servers, security=security_in(options.security))
    with PubSubClient(routing) as client:
        traffic = Traffic(client, new_topics(options.namespace, options.topics), options.rate)
        traffic.start()
        print_counts_until_stopped(lambda: _counts(traffic), options.seconds)
        findings = traffic.stop()
        print_counts({**_counts(traffic), **asdict(findings)})


def _counts(traffic: Traffic) -> dict[str, object]:
    traffic.check()
    acknowledged = sum(len(ledger.acknowledged) for ledger in traffic.ledgers)
    return {"answered": acknowledged, "refused": traffic.repeated, "failed": traffic.given_up}
