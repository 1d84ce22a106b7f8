"""The client library of the key-value service, and skewed traffic as a command.

python -m examples.kv.client --cluster demo --bootstrap-servers localhost:9092 --rate 200
"""

import contextlib
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple, Self

from controlplane import NoRouteError, routing_client
from controlplane.routing import RoutingClient, RoutingTable
from examples.serving.protocol import Connections, Message, Unreachable

_ANSWER_TIMEOUT_S: Final = 3.0
_FEW_ATTEMPTS: Final = 3
_PAUSE_S: Final = 0.02
_LONGEST_PAUSE_MS: Final = 200
_HANDOFF_MS: Final = 500
"""How long a table is waited for in which another node leads."""
_ADDRESS: Final = "kv"


class GivenUp(Exception):  # noqa: N818 - what became of a request
    """A request had no answer in time. A PUT may have been carried out, or may be carried out later."""


class Acknowledged(NamedTuple):
    """The acknowledgement of a PUT, with its order among the PUTs of its slot.

    Attributes:
        slot_id: the slot of its key.
        node_id: the slot leader that accepted it.
        leader_epoch: the slot leader epoch of the fencing token under which it was accepted.
        counter: the number that the slot leader assigned to it.
        sent_s: when the answered attempt was sent, monotonic.
        answered_s: when its answer had arrived, monotonic.
    """

    slot_id: int
    node_id: str
    leader_epoch: int
    counter: int
    sent_s: float
    answered_s: float


@dataclass(slots=True)
class Counts:
    """Counts of requests.

    Attributes:
        answered: requests that were answered, after any number of attempts.
        refused: answers "moved" or "migrating".
        retried: attempts after the first one.
        failed: requests that were given up.
        longest_ms: the longest time that an answered or given up request took.
        of_many_attempts: requests that were answered after more than 3 attempts.
    """

    answered: int = 0
    refused: int = 0
    retried: int = 0
    failed: int = 0
    longest_ms: float = 0.0
    of_many_attempts: int = 0

    def plus(self, other: "Counts") -> "Counts":
        """What was counted in two intervals."""
        return Counts(
            self.answered + other.answered,
            self.refused + other.refused,
            self.retried + other.retried,
            self.failed + other.failed,
            max(self.longest_ms, other.longest_ms),
            self.of_many_attempts + other.of_many_attempts,
        )


class KvClient:
    """Reads and writes keys at their present slot leaders. Thread-safe; a context manager.

    Args:
        cluster: the cluster's name.
        bootstrap_servers: Kafka's addresses, as ``host:port`` list.
        give_up_s: how long a request is repeated.
        security: Kafka's settings for TLS and login.
        on_end: called with the key of each request that was answered or given up, and the time in ms that it has taken.
    """

    def __init__(
        self,
        cluster: str,
        bootstrap_servers: str,
        *,
        give_up_s: float = 15.0,
        security: Mapping[str, str] | None = None,
        on_end: Callable[[str, float], object] = lambda *_: None,
    ) -> None:
        self._on_end = on_end
        self.routing: RoutingClient = routing_client(cluster, bootstrap_servers, security=security)
        self.counts = Counts()
        self._give_up_s = give_up_s
        self._connections = Connections()
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        """Begin to follow the routing table."""
        self.routing.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop following and close the connections."""
        self.routing.close()
        self._connections.close()

    def put(self, key: str, value: str) -> Acknowledged:
        """Store a value. Once this returns, the value survives the death of any one node.

        Raises:
            GivenUp: not acknowledged in time.
        """
        answer, sent_s = self._request(key, {"op": "put", "key": key, "value": value})
        leader_epoch, counter = answer["version"]
        return Acknowledged(answer["slot"], answer["node"], leader_epoch, counter, sent_s, time.monotonic())

    def get(self, key: str) -> str | None:
        """A key's value; None if it was never stored.

        Raises:
            GivenUp: not answered in time.
        """
        value = self._request(key, {"op": "get", "key": key})[0]["value"]
        return None if value is None else str(value)

    def take_counts(self) -> Counts:
        """The counts of requests since the last call."""
        with self._lock:
            counts, self.counts = self.counts, Counts()
            return counts

    def _request(self, key: str, request: Message) -> tuple[Message, float]:
        """The answer, and the time at which the answered attempt was sent."""
        began_s = time.monotonic()
        attempts = 0
        while True:
            sent_s = time.monotonic()
            asked, answer = self._attempt(key, request)
            attempts += 1
            elapsed_s = time.monotonic() - began_s
            answered = answer["status"] == "ok"
            given_up = not answered and elapsed_s > self._give_up_s
            with self._lock:
                counts = self.counts
                counts.refused += answer["status"] in ("moved", "migrating")
                counts.retried += not answered and not given_up
                counts.answered += answered
                counts.of_many_attempts += answered and attempts > _FEW_ATTEMPTS
                counts.failed += given_up
                if answered or given_up:
                    counts.longest_ms = max(counts.longest_ms, elapsed_s * 1_000)
                    self._on_end(key, elapsed_s * 1_000)
            if answered:
                return answer, sent_s
            if given_up:
                raise GivenUp(f"{request['op']} {key!r} after {attempts} attempts in {elapsed_s:.1f} s: {answer}")
            self._wait(key, asked, answer, min(_LONGEST_PAUSE_MS / 1_000, _PAUSE_S * attempts))

    def _attempt(self, key: str, request: Message) -> tuple[str | None, Message]:
        """The node that the present table names, which reads on if it knows an older one, and its answer."""
        asked = None
        try:
            route = self.routing.route(key)
            asked, address = route.node_id, route.address(_ADDRESS)
            request = {**request, "epoch": route.epoch}
            return asked, self._connections.ask((address.host, address.port), request, _ANSWER_TIMEOUT_S)
        except (NoRouteError, Unreachable) as error:
            return asked, {"status": "unreachable", "message": str(error)}

    def _wait(self, key: str, asked: str | None, answer: Message, pause_s: float) -> None:
        """Wait for a table by which the request is worth repeating; for a moment, if the present one names ``asked``.

        After "moved" that is one in which another node leads the slot, or a later one that leaves it with ``asked``.
        """
        epoch, is_moved = answer.get("epoch", 0), answer["status"] == "moved"

        def is_worth_a_request(table: RoutingTable) -> bool:
            row = table.slot_for(key)
            goes_elsewhere = row.leader == asked and (row.next_leader is not None or table.epoch <= epoch)
            return table.epoch >= epoch and not (is_moved and (row.leader is None or goes_elsewhere))

        table = self.routing.table
        if table is None or (table.slot_for(key).leader == asked and is_worth_a_request(table)):
            time.sleep(pause_s)
            return
        # A node whose session has lapsed refuses what the table leaves with it, and no other table need come.
        is_handed_over = table.slot_for(key).leader != asked or table.slot_for(key).next_leader is not None
        with contextlib.suppress(NoRouteError):
            self.routing.wait_for(is_worth_a_request, timeout_ms=_HANDOFF_MS if is_handed_over else _LONGEST_PAUSE_MS)


if __name__ == "__main__":
    from examples.kv.traffic import main

    main()
