"""Where the copies of partitions are on several brokers: looked at, waited for, moved."""

import contextlib
import struct
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType

from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ClusterMetadata,
    ConfigEntry,
    ConfigResource,
    PartitionMetadata,
    ResourceType,
)

from tests.helpers.kafka_requests import NO_TAGS, NULL_CLIENT, ask_any, length_of, take_length, take_text

_DEADLINE_S = 60.0
_REQUEST_TIMEOUT_S = 10.0
_METADATA_TIMEOUT_S = 2.0
_ATTEMPTS = 10
_LEARNS_WITHIN_S = 5.0
_ELECT_API_KEY = 43
_REASSIGN_API_KEY = 45
_ELECTION_NOT_NEEDED = 84


class PartitionLeaders:
    """The partitions of a cluster of brokers, for tests that have to know or choose who leads one.

    Args:
        bootstrap_servers: brokers of which at least one answers.
        security: how to log in where that is asked for; copies are moved only where it is not.
    """

    def __init__(self, bootstrap_servers: str, security: Mapping[str, str] = MappingProxyType({})) -> None:
        self._servers = bootstrap_servers
        self._security = security

    def partition(self, topic: str, partition: int = 0) -> PartitionMetadata:
        """Its leader, its copies, the first of which is preferred as the leader, and which of them are in sync.

        A broker may learn of a new topic a moment after the others.
        """
        for _ in range(_ATTEMPTS - 1):
            found = self._metadata(topic).topics[topic].partitions
            if partition in found:
                return found[partition]
            time.sleep(_LEARNS_WITHIN_S / _ATTEMPTS)
        return self._metadata(topic).topics[topic].partitions[partition]

    def partitions(self, topic: str) -> int:
        """How many partitions a topic has."""
        return len(self._metadata(topic).topics[topic].partitions)

    def leader(self, topic: str, partition: int = 0) -> int:
        """The id of the broker that leads it, -1 while none does."""
        return int(self.partition(topic, partition).leader)

    def follower(self, topic: str, partition: int = 0) -> int:
        """The id of a broker that holds a copy in sync and does not lead."""
        found = self.partition(topic, partition)
        return int(next(each for each in found.isrs if each != found.leader))

    def wait_until_in_sync(self, deadline_s: float = _DEADLINE_S) -> None:
        """Wait until every partition of every topic, Kafka's own included, has a leader and all its copies in sync."""
        self._wait_until(lambda: not list(self._out_of_sync()), lambda: ", ".join(self._out_of_sync()), deadline_s)

    def move_leader(self, topic: str, broker: int, partition: int = 0, deadline_s: float = _DEADLINE_S) -> None:
        """Let a broker lead a partition, and get a copy of it first, in place of the last one, if it has none.

        It is the preferred leader afterwards, so that Kafka's own preferred election leaves it there.
        """
        copies = [int(each) for each in self.partition(topic, partition).replicas]
        if broker not in copies:
            copies.pop()
        wanted = [broker, *(each for each in copies if each != broker)]
        self.reassign(topic, wanted, partition, deadline_s)
        self._wait_until(
            lambda: self._elected(topic, partition, broker),
            lambda: f"broker {broker} does not lead {topic}-{partition}: {self.partition(topic, partition)}",
            deadline_s,
        )

    def reassign(self, topic: str, brokers: Sequence[int], partition: int = 0, deadline_s: float = _DEADLINE_S) -> None:
        """Give these brokers the copies of a partition, the preferred leader first, and wait until all are in sync."""
        if [int(each) for each in self.partition(topic, partition).replicas] != list(brokers):
            _request_reassignment(self._servers, topic, partition, brokers)

        def settled() -> bool:
            found = self.partition(topic, partition)
            return list(found.replicas) == list(brokers) and set(found.isrs) == set(brokers)

        self._wait_until(settled, lambda: str(self.partition(topic, partition).__dict__), deadline_s)

    def copies_on(self, broker: int) -> list[tuple[str, int]]:
        """Topic and partition of every copy that a broker holds, Kafka's own topics included."""
        return [
            (name, number)
            for name, topic in self._metadata().topics.items()
            for number, found in topic.partitions.items()
            if broker in found.replicas
        ]

    def leave_only_followers(self, broker: int, topic: str) -> None:
        """Let a broker follow in every partition of a topic, and hold nothing else: other brokers take the rest."""
        for number in range(self.partitions(topic)):
            copies = [int(each) for each in self.partition(topic, number).replicas if each != broker]
            self.reassign(topic, [*copies[:2], broker], number)
            self.move_leader(topic, copies[0], number)
        for name, number in self.copies_on(broker):
            if name != topic:
                self._take_from(broker, name, number)

    def _take_from(self, broker: int, topic: str, partition: int) -> None:
        """Let a broker that has no copy of a partition take the place of one that has."""
        copies = [int(each) for each in self.partition(topic, partition).replicas]
        other = next(each for each in sorted(self._metadata().brokers) if each not in copies)
        self.reassign(topic, [other if each == broker else each for each in copies], partition)

    def set_least_copies(self, topic: str, copies: int) -> None:
        """Let a topic ask for this many copies in sync before it acknowledges a write."""
        change = ConfigEntry("min.insync.replicas", str(copies), incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[change])
        admin = AdminClient({"bootstrap.servers": self._servers})
        admin.incremental_alter_configs([resource])[resource].result(_REQUEST_TIMEOUT_S)

    def elect_preferred(self, topic: str, partition: int = 0) -> bool:
        """Let the preferred leader lead; False if it could not, for example because it is not in sync."""
        return _request_preferred_leader(self._servers, topic, partition)

    def _metadata(self, *topic: str) -> ClusterMetadata:
        """What a broker knows. A new client for each question: a former one may wait for a broker that is paused."""
        for _ in range(_ATTEMPTS - 1):
            with contextlib.suppress(KafkaException):
                return self._ask(*topic)
        return self._ask(*topic)

    def _ask(self, *topic: str) -> ClusterMetadata:
        settings: dict[str, str | int | float | bool] = {
            "bootstrap.servers": self._servers,
            "log_level": 0,
            **self._security,
        }
        return AdminClient(settings).list_topics(*topic, timeout=_METADATA_TIMEOUT_S)

    def _elected(self, topic: str, partition: int, broker: int) -> bool:
        if self.leader(topic, partition) == broker:
            return True
        self.elect_preferred(topic, partition)
        return False

    def _out_of_sync(self) -> Iterator[str]:
        for name, topic in self._metadata().topics.items():
            for number, found in topic.partitions.items():
                if found.leader < 0 or set(found.isrs) != set(found.replicas):
                    yield f"{name}-{number}: leader {found.leader}, {found.isrs} of {found.replicas} in sync"

    def _wait_until(self, condition: Callable[[], bool], describe: Callable[[], str], deadline_s: float) -> None:
        deadline = time.monotonic() + deadline_s
        while not _holds(condition):
            assert time.monotonic() < deadline, f"not within {deadline_s} s: {describe()}"
            time.sleep(0.1)


def _holds(condition: Callable[[], bool]) -> bool:
    try:
        return condition()
    except KafkaException:
        return False  # a broker is away: not yet


def _request_preferred_leader(bootstrap_servers: str, topic: str, partition: int) -> bool:
    """Kafka's ElectLeaders, in which librdkafka's Python client has an error; whether the preferred one leads now."""
    name = topic.encode()
    body = struct.pack(">ih", 1, len(name)) + name + struct.pack(">iii", 1, partition, int(_REQUEST_TIMEOUT_S * 1_000))
    answer = ask_any(bootstrap_servers, struct.pack(">hhih", _ELECT_API_KEY, 0, 1, NULL_CLIENT) + body)
    answer.read(4 + 4 + 4)  # correlation id, throttle time, one topic
    answer.read(struct.unpack(">h", answer.read(2))[0] + 4)  # its name, one partition
    code: int = struct.unpack(">ih", answer.read(6))[1]
    return code in {0, _ELECTION_NOT_NEEDED}


def _request_reassignment(bootstrap_servers: str, topic: str, partition: int, brokers: Sequence[int]) -> None:
    """Kafka's AlterPartitionReassignments, which librdkafka does not have."""
    body = b"".join(
        [
            struct.pack(">hhih", _REASSIGN_API_KEY, 0, 1, NULL_CLIENT) + NO_TAGS,
            struct.pack(">i", int(_REQUEST_TIMEOUT_S * 1_000)),
            length_of(1) + length_of(len(topic.encode())) + topic.encode(),
            length_of(1) + struct.pack(">i", partition),
            length_of(len(brokers)) + struct.pack(f">{len(brokers)}i", *brokers),
            NO_TAGS * 3,
        ]
    )
    answer = ask_any(bootstrap_servers, body)
    answer.read(4 + 1 + 4)  # correlation id, no tags, throttle time
    code, reason = struct.unpack(">h", answer.read(2))[0], take_text(answer)
    if code == 0 and take_length(answer) > 0:
        take_text(answer)  # the topic
        take_length(answer)
        code, reason = struct.unpack(">ih", answer.read(6))[1], take_text(answer)
    assert code == 0, f"{topic}-{partition} was not given to {brokers}: error {code} {reason}"
