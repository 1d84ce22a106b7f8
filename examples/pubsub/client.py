"""The client library of the publish-subscribe service: finds the broker of a topic, and asks again where it is told to.

With traffic as a command, for a namespace that exists:

python -m examples.pubsub.client --cluster demo --bootstrap-servers localhost:9092 --namespace shop/orders --rate 200

A request is repeated until a broker has carried it out, or has been asked often enough. That harms nothing: a message
that is sent again counts once.
"""

import contextlib
import threading
from typing import Final, NamedTuple, Self
from uuid import uuid4

from controlplane import NoRouteError
from controlplane.routing import RoutingClient
from examples.pubsub.topic_file import TopicMessage, namespace_of
from examples.serving.protocol import Connections, Message, Place, Unreachable

ADDRESS_NAME: Final = "pubsub"
_ANSWER_TIMEOUT_S: Final = 3.0
_FIRST_PAUSE_S: Final = 0.02
_LONGEST_PAUSE_S: Final = 0.25
_UNREACHABLE_PAUSE_S: Final = 1.0
"""The longest time for which the routing table is waited for, if the broker that it names cannot be reached again."""
_MESSAGES_AT_ONCE: Final = 500


class GivenUp(Exception):  # noqa: N818 - what became of a request
    """No broker has carried out the request. A message may be in its topic, or may still get there."""


class Acknowledged(NamedTuple):
    """The acknowledgement of a message: its offset in the topic, and how many attempts it took."""

    offset: int
    attempts: int


class PubSubClient:
    """Sends requests for topics to the brokers that own them now. Thread-safe; a context manager.

    Args:
        routing: from ``controlplane.routing_client``; it belongs to this client.
        attempts_at_most: how often a request is sent before it is given up; 60 take a minute if no broker answers.
    """

    def __init__(self, routing: RoutingClient, *, attempts_at_most: int = 60) -> None:
        self.routing = routing
        self._attempts_at_most = attempts_at_most
        self._connections = Connections()
        self._closing = threading.Event()

    def __enter__(self) -> Self:
        """Begin to follow the routing table."""
        self.routing.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop following and close the connections."""
        self._closing.set()
        self.routing.close()
        self._connections.close()

    def ask(self, topic: str, request: Message) -> tuple[Message, int]:
        """The answer of the broker that owns a topic, and the number of attempts that it took.

        Raises:
            GivenUp: there was none after the greatest number of attempts.
        """
        request, told, attempt = {**request, "topic": topic}, None, 0
        while True:
            attempt += 1
            place = told or self._place_of(topic)
            answer = self._attempt(place, request)
            if answer["status"] == "ok":
                return answer, attempt
            if answer["status"] == "error" or attempt >= self._attempts_at_most:
                raise GivenUp(f"{request['op']} for {topic} after {attempt} attempts: {answer}")
            told = self._place_to_ask_next(topic, place, answer, attempt)

    def _attempt(self, place: Place | None, request: Message) -> Message:
        if place is None:
            return {"status": "unreachable", "message": "the routing table names no broker for it"}
        try:
            return self._connections.ask(place, request, _ANSWER_TIMEOUT_S)
        except Unreachable as error:
            return {"status": "unreachable", "message": str(error)}

    def _place_to_ask_next(self, topic: str, place: Place | None, answer: Message, attempt: int) -> Place | None:
        """Wait as the answer of an attempt demands; return whom to ask then, None for whom the routing table names."""
        pause_s = min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2**attempt)
        match answer:
            case {"status": "migrating"}:
                self._closing.wait(pause_s)
                return place
            case {"status": "moved", "ask": [host, port]}:
                # Two brokers that have not read equally far may name each other for a moment.
                self._closing.wait(pause_s if attempt > 1 else 0)
                return str(host), int(port)
            case {"status": "moved"}:
                self._wait_for_another_place(topic, place, pause_s)
            case _:
                self._wait_for_another_place(topic, place, pause_s if attempt == 1 else _UNREACHABLE_PAUSE_S)
        return None

    def _place_of(self, topic: str) -> Place | None:
        """Where the routing table says that the topic is served."""
        try:
            address = self.routing.route_bundle(namespace_of(topic), topic).address(ADDRESS_NAME)
        except NoRouteError:
            return None
        return address.host, address.port

    def _wait_for_another_place(self, topic: str, place: Place | None, pause_s: float) -> None:
        with contextlib.suppress(NoRouteError):
            timeout_ms = round(pause_s * 1_000)
            self.routing.wait_for(lambda _: self._place_of(topic) not in (None, place), timeout_ms=timeout_ms)


class Producer:
    """Sends messages to one topic, one after the other. For one thread.

    The messages of a producer are in the topic in the order in which they were sent.
    """

    def __init__(self, client: PubSubClient, topic: str) -> None:
        self._client = client
        self._topic = topic
        self._name = uuid4().hex
        self._sequence = 0

    def send(self, key: str, text: str) -> Acknowledged:
        """Append a message. Once this returns, it is on disk.

        Raises:
            GivenUp: not acknowledged.
        """
        self._sequence += 1
        message = TopicMessage(self._name, self._sequence, key, text)
        answer, attempts = self._client.ask(self._topic, {"op": "produce", "message": message})
        return Acknowledged(answer["offset"], attempts)


class Subscriber:
    """Receives every message of one topic from an offset on. For one thread.

    Attributes:
        offset: of the next message.
    """

    def __init__(self, client: PubSubClient, topic: str, offset: int = 0) -> None:
        self._client = client
        self._topic = topic
        self._name = uuid4().hex
        self.offset = offset

    def receive(self, wait_s: float = 1.0) -> list[TopicMessage]:
        """The next messages, as soon as there is one; none if there is none in this time.

        Raises:
            GivenUp: not answered.
        """
        request = {
            "op": "consume",
            "offset": self.offset,
            "count": _MESSAGES_AT_ONCE,
            "subscriber": self._name,
            "wait_s": wait_s,
        }
        answer, _ = self._client.ask(self._topic, request)
        messages = [TopicMessage(*message) for message in answer["messages"]]
        self.offset += len(messages)
        return messages


if __name__ == "__main__":
    from examples.pubsub.traffic import main

    main()
