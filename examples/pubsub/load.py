"""A broker's measurements of its own work: for load reports by bundle, and for splits by topic."""

import threading
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from controlplane.node import BundleLoad, NodeLoad, TopicLoad
from examples.serving.usage import Usage, resident_memory


@dataclass(slots=True)
class _Work:
    """What was done for one topic: messages and bytes from producers (in) and to subscribers (out), and who asked."""

    messages_in: int = 0
    messages_out: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    producers: set[str] = field(default_factory=set)
    subscribers: set[str] = field(default_factory=set)


class LoadMeter:
    """Counts messages by topic, from one load report to the next. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._work: dict[str, _Work] = {}
        self._last: dict[str, _Work] = {}
        self._last_s = 1.0
        self._usage = Usage()

    def produced(self, topic: str, producer: str, byte_count: int) -> None:
        """Count a message of a producer."""
        with self._lock:
            work = self._work.setdefault(topic, _Work())
            work.messages_in += 1
            work.bytes_in += byte_count
            work.producers.add(producer)

    def consumed(self, topic: str, subscriber: str, message_count: int, byte_count: int) -> None:
        """Count the answer to a subscriber, also one without messages."""
        with self._lock:
            work = self._work.setdefault(topic, _Work())
            work.messages_out += message_count
            work.bytes_out += byte_count
            work.subscribers.add(subscriber)

    def topic_loads(self, topics: Collection[str]) -> list[TopicLoad]:
        """The load of topics, as the last load report had it."""
        with self._lock:
            work, seconds = self._last, self._last_s
        return [_topic_load(topic, work.get(topic, _Work()), seconds) for topic in topics]

    def report(self, owned: Mapping[str, Collection[str]]) -> NodeLoad:
        """The load since the last report, for the bundles that this broker owns: their ids, and their open topics."""
        with self._lock:
            cpu, seconds = self._usage.take()
            self._last, self._last_s, self._work = self._work, seconds, {}
            work = self._last
        return NodeLoad(
            cpu=cpu,
            memory=resident_memory(),
            bundles=tuple(_bundle_load(bundle_id, topics, work, seconds) for bundle_id, topics in owned.items()),
        )


def _topic_load(topic: str, work: _Work, seconds: float) -> TopicLoad:
    return TopicLoad(
        topic,
        work.messages_in / seconds,
        work.messages_out / seconds,
        work.bytes_in / seconds,
        work.bytes_out / seconds,
    )


def _bundle_load(bundle_id: str, topics: Collection[str], work: dict[str, _Work], seconds: float) -> BundleLoad:
    of_topics = [work[topic] for topic in topics if topic in work]
    return BundleLoad(
        bundle_id,
        message_rate_in_per_s=sum(each.messages_in for each in of_topics) / seconds,
        message_rate_out_per_s=sum(each.messages_out for each in of_topics) / seconds,
        throughput_in_bytes_per_s=sum(each.bytes_in for each in of_topics) / seconds,
        throughput_out_bytes_per_s=sum(each.bytes_out for each in of_topics) / seconds,
        topic_count=len(topics),
        producer_count=sum(len(each.producers) for each in of_topics),
        consumer_count=sum(len(each.subscribers) for each in of_topics),
        cache_size_bytes=0,
    )
