"""A broker: it owns bundles, and serves the topics in them.

python -m examples.pubsub.broker --cluster demo --broker-id b1 --bootstrap-servers localhost:9092 --directory topics
"""

import argparse
import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import structlog

from controlplane import node_agent
from controlplane.node import (
    Access,
    Bundle,
    FencingToken,
    NodeAgent,
    NodeCallbacks,
    NodeLoad,
    ServedCall,
    SessionState,
    SlotGained,
    TopicLoad,
)
from examples.kv.protocol import Message, Place, Server
from examples.kv.security import security_in
from examples.pubsub.client import ADDRESS_NAME
from examples.pubsub.load import LoadMeter
from examples.pubsub.open_topics import OpenTopics
from examples.pubsub.topic_file import Refused, TopicFile, TopicMessage, namespace_of

_PATIENCE_S: Final = 1.0
"""How long a request waits here while its bundle is on its way to another broker, or is being opened.

Most handoffs end in this time. Then the client asks once more, at the right place, instead of asking in vain."""
_LOOK_AGAIN_S: Final = 0.02
_DRAIN_MS: Final = 20_000
_LINGER_S: Final = 2.0

Work = Callable[[TopicFile, FencingToken], Message]
"""What is to be done for a request when its topic is served here."""


class Broker(NodeCallbacks):
    """The service of one process. The agent determines which bundles it owns.

    Args:
        broker_id: its name in the cluster.
        make_agent: makes the agent: ``controlplane.node_agent`` with everything that is not given here.
        directory: where all brokers have the files of the topics.
        place: where it listens; port 0 takes a free one.
        load_interval_s: interval of the load reports.
    """

    def __init__(
        self,
        broker_id: str,
        make_agent: Callable[..., NodeAgent],
        directory: Path,
        place: Place = ("127.0.0.1", 0),
        load_interval_s: float = 5.0,
    ) -> None:
        self._broker_id = broker_id
        self._topics = OpenTopics(directory)
        self._changed = threading.Condition()
        self._meter = LoadMeter()
        self._logger = structlog.get_logger().bind(broker=broker_id)
        self._server = Server(place, self.answer)
        self.agent = make_agent(
            broker_id,
            addresses={ADDRESS_NAME: self._server.place},
            callbacks=self,
            load_source=self._load,
            load_interval_ms=round(load_interval_s * 1_000),
            version="pubsub-1",
        )

    def run(self) -> SessionState:
        """Serve until SIGTERM or SIGINT, then hand everything over and leave. Also ends if another process replaces it.

        Returns:
            ``LEFT`` or ``SUPERSEDED``.
        """
        self.agent.start()
        self._logger.info("broker serves", place=self._server.place)
        ended_as = self.agent.run_until_signal(timeout_ms=_DRAIN_MS)
        time.sleep(_LINGER_S)  # Clients that have not heard of it are told whom to ask.
        self.close()
        return ended_as

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

    def on_slots_gained(self, gained: Sequence[SlotGained]) -> None:
        """Nothing is stored by slots, so each is ready at once."""
        for slot in gained:
            self.agent.slot_ready(slot.slot_id, slot.epoch)

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
            answer = self._when_served(topic, lambda file, _: {"status": "ok", "messages": file.read(offset, count)})
            if answer["status"] != "ok" or answer["messages"] or time.monotonic() > until_s:
                break
            self._wait()
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
            answer = None
            with self.agent.serve(namespace, topic) as call:
                if call.access is Access.ACCEPT:
                    answer = self._attempt(topic, call.token, work)
            if answer is not None and call.held:
                return answer
            if _is_elsewhere(call) or time.monotonic() > until_s:
                return self._refusal(call)
            self._wait()

    def _attempt(self, topic: str, token: FencingToken, work: Work) -> Message | None:
        """The result of the work; None if the file says that another broker owns the topic by now."""
        try:
            return work(self._topics.file_of(topic), token)
        except Refused as refused:
            self._logger.warning("topic refused", topic=topic, token=token, reason=str(refused))
            return None

    def _refusal(self, call: ServedCall) -> Message:
        if call.access is Access.MIGRATING:
            return {"status": "migrating"}
        places = [(each.host, each.port) for each in call.addresses if each.name == ADDRESS_NAME]
        return {"status": "moved", "ask": places[0] if places else None}

    def _wait(self) -> None:
        with self._changed:
            self._changed.wait(_LOOK_AGAIN_S)

    def _look_again(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def _load(self) -> NodeLoad:
        table = self.agent.table
        bundles = table.bundles.values() if table else ()
        owned = [bundle for bundle in bundles if bundle.serving_node == self._broker_id]
        return self._meter.report({bundle.bundle_id: self._topics.open_in(bundle) for bundle in owned})


def _is_elsewhere(call: ServedCall) -> bool:
    """Whether there is another broker that serves the topic, or no such bundle; otherwise it may come here."""
    if call.access not in (Access.MOVED, Access.UNSUPPORTED):
        return False
    return call.bundle is None or (call.ask is not None and call.ask == call.bundle.serving_node)


def _end_process(failed: threading.ExceptHookArgs) -> None:
    """End the process after an error in any thread, because the cluster replaces only a node that has ended."""
    structlog.get_logger().error("thread_failed", exc_info=(failed.exc_type, failed.exc_value, failed.exc_traceback))
    os._exit(1)


def main() -> int:
    """The command line. Returns the exit status: 1 if another process has replaced this one."""
    threading.excepthook = _end_process
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.INFO))
    parser = argparse.ArgumentParser(description="A broker of the publish-subscribe service.")
    parser.add_argument("--cluster", required=True)
    parser.add_argument("--broker-id", required=True)
    parser.add_argument("--bootstrap-servers", required=True)
    parser.add_argument("--directory", type=Path, required=True, help="where all brokers have the files of the topics")
    parser.add_argument("--security", type=Path, help="a file with Kafka's settings for TLS and login, KEY=VALUE lines")
    parser.add_argument("--host", default="127.0.0.1", help="where it listens; published to clients as given")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    options = parser.parse_args()
    make_agent = partial(node_agent, options.cluster, options.bootstrap_servers, security=security_in(options.security))
    broker = Broker(options.broker_id, make_agent, options.directory, (options.host, options.port))
    return 0 if broker.run() is SessionState.LEFT else 1


if __name__ == "__main__":
    sys.exit(main())
