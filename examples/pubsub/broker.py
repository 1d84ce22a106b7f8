"""A broker: it owns bundles, and serves the topics in them.

python -m examples.pubsub.broker --cluster demo --node-id b1 --bootstrap-servers localhost:9092 --directory topics
"""

import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

import structlog

from controlplane.node import (
    Access,
    Bundle,
    FencingToken,
    NodeLoad,
    ServedBundleRequest,
    TopicLoad,
)
from examples.pubsub.client import ADDRESS_NAME
from examples.pubsub.load import LoadMeter
from examples.pubsub.open_topics import OpenTopics
from examples.pubsub.topic_file import Refused, TopicFile, TopicMessage, namespace_of
from examples.serving.protocol import Message, Place, Server
from examples.serving.service import Service, serve, service_parser

_PATIENCE_S: Final = 1.0
"""How long a request waits here while its bundle is on its way to another broker, or is being opened.

Most handoffs end in this time. Then the client asks once more, at the right place, instead of asking in vain."""
_LOOK_AGAIN_S: Final = 0.02
_LOOK_FOR_MESSAGES_S: Final = 0.2
"""How often a subscriber that waits is looked after, if no message comes: its bundle may have gone elsewhere."""

Work = Callable[[TopicFile, FencingToken], Message]
"""What is to be done for a request when its topic is served here."""


class Broker(Service):
    """The service of one process. The agent determines which bundles it owns.

    Args:
        broker_id: its name in the cluster.
        directory: where all brokers have the files of the topics.
        place: where it listens; port 0 takes a free one.
    """

    version = "pubsub-1"

    def __init__(self, broker_id: str, directory: Path, place: Place = ("127.0.0.1", 0)) -> None:
        self._broker_id = broker_id
        self._topics = OpenTopics(directory)
        self._changed = threading.Condition()
        self._change_count = 0
        self._meter = LoadMeter()
        self._logger = structlog.get_logger().bind(broker=broker_id)
        self._server = Server(place, self.answer)

    @property
    def addresses(self) -> Mapping[str, Place]:
        """Where it answers clients."""
        return {ADDRESS_NAME: self._server.place}

    def close(self) -> None:
        """Answer no more requests."""
        self._server.close()

    # -- what the agent tells -----------------------------------------------------------------------------------------

    def on_bundle_assigned(self, bundle: Bundle, token: FencingToken) -> None:
        """Take over every topic of the bundle that has a file, before its clients come."""
        self._topics.take_over(bundle, token)
        self._logger.info("bundle opened", bundle=bundle.bundle_id, token=token)

    def on_bundle_releasing(self, bundle: Bundle) -> None:
        """Close the topics. Requests for them wait here until it is known who owns the bundle next."""
        self._topics.close(bundle)
        self._logger.info("bundle closed", bundle=bundle.bundle_id)

    def on_bundle_released(self, bundle_id: str, bundle: Bundle | None) -> None:
        """Send the clients away: requests that wait are answered with the address of the new owner."""
        self._logger.info("bundle left", bundle=bundle_id, owner=bundle.owner if bundle else None)
        self._look_again()

    def on_bundle_split(self, parent: Bundle, children: Sequence[Bundle]) -> None:
        """Say which topics are in which part. They stay open, because they are kept by their names."""
        counts = {child.bundle_id: len(self._topics.open_in(child)) for child in children}
        self._logger.info("bundle split", bundle=parent.bundle_id, topics=counts)

    def topics_of_bundle(self, bundle: Bundle) -> Sequence[TopicLoad]:
        """The topics of a bundle that is to be split by its topics or their load."""
        return self._meter.topic_loads(self._topics.stored_in(bundle))

    # -- requests -----------------------------------------------------------------------------------------------------

    def answer(self, request: Message) -> Message:
        """One request of a client."""
        match request["op"]:
            case "produce":
                return self._produce(request["topic"], TopicMessage(*request["message"]))
            case "consume":
                return self._consume(request)
            case other:
                return {"status": "error", "message": f"unknown op {other!r}"}

    def _produce(self, topic: str, message: TopicMessage) -> Message:
        def append(file: TopicFile, token: FencingToken) -> Message:
            return {"status": "ok", "offset": file.append(token, message)}

        answer = self._when_served(topic, append)
        if answer["status"] == "ok":
            self._meter.produced(topic, message.producer, len(message.key) + len(message.text))
            self._look_again()
        return answer

    def _consume(self, request: Message) -> Message:
        topic, offset, count = request["topic"], int(request["offset"]), int(request["count"])
        until_s = time.monotonic() + min(float(request["wait_s"]), _PATIENCE_S)
        while True:
            seen = self._change_count
            answer = self._when_served(topic, lambda file, _: {"status": "ok", "messages": file.read(offset, count)})
            if answer["status"] != "ok" or answer["messages"] or time.monotonic() > until_s:
                break
            self._wait(seen, _LOOK_FOR_MESSAGES_S)
        if answer["status"] == "ok":
            byte_count = sum(len(message.key) + len(message.text) for message in answer["messages"])
            self._meter.consumed(topic, request["subscriber"], len(answer["messages"]), byte_count)
        return answer

    def _when_served(self, topic: str, work: Work) -> Message:
        """The result of the work if this broker serves the topic, now or soon. Otherwise the answer is whom to ask.

        The work's result is given only if the right to serve the topic has lasted until the work was done.
        """
        namespace, until_s = namespace_of(topic), time.monotonic() + _PATIENCE_S
        while True:
            answer, seen = None, self._change_count
            with self.agent.serve(namespace, topic) as request:
                if request.access is Access.ACCEPT:
                    answer = self._attempt(topic, request.token, work)
            if answer is not None and request.held:
                return answer
            if _is_elsewhere(request) or time.monotonic() > until_s:
                return self._refusal(request)
            self._wait(seen, _LOOK_AGAIN_S)

    def _attempt(self, topic: str, token: FencingToken, work: Work) -> Message | None:
        """The result of the work; None if the file says that another broker owns the topic by now."""
        try:
            return work(self._topics.file_of(topic), token)
        except Refused as refused:
            self._logger.warning("topic refused", topic=topic, token=token, reason=str(refused))
            return None

    def _refusal(self, request: ServedBundleRequest) -> Message:
        if request.access is Access.MIGRATING:
            return {"status": "migrating"}
        places = [(each.host, each.port) for each in request.addresses if each.name == ADDRESS_NAME]
        return {"status": "moved", "ask": places[0] if places else None}

    def _wait(self, seen: int, at_most_s: float) -> None:
        """Wait until more has changed than was seen, at most for a while."""
        with self._changed:
            self._changed.wait_for(lambda: self._change_count != seen, at_most_s)

    def _look_again(self) -> None:
        with self._changed:
            self._change_count += 1
            self._changed.notify_all()

    def load(self) -> NodeLoad:
        """What the process takes, and the messages in the bundles that it owns."""
        table = self.agent.table
        bundles = table.bundles.values() if table else ()
        owned = [bundle for bundle in bundles if bundle.serving_node == self._broker_id]
        return self._meter.report({bundle.bundle_id: self._topics.open_in(bundle) for bundle in owned})


def _is_elsewhere(request: ServedBundleRequest) -> bool:
    """Whether there is another broker that serves the topic, or no such bundle; otherwise it may come here."""
    if request.access not in (Access.MOVED, Access.UNSUPPORTED):
        return False
    return request.bundle is None or (request.ask is not None and request.ask == request.bundle.serving_node)


def main() -> int:
    """The command line. Returns the exit status: 1 if another process has replaced this one."""
    parser = service_parser("A broker of the publish-subscribe service.")
    parser.add_argument("--directory", type=Path, required=True, help="where all brokers have the files of the topics")
    options = parser.parse_args()
    return serve(Broker(options.node_id, options.directory, (options.host, options.port)), options)


if __name__ == "__main__":
    sys.exit(main())
