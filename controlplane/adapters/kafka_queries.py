"""A reader's queries to Kafka about partitions and offsets.

Every query is repeated until it is answered or its timeout has passed. A client that has not answered by then is not
asked again, because it may have lost the address of every broker (decision 0014).
"""

import time
from collections.abc import Callable
from typing import Final, TypeVar

from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, Consumer, KafkaError, KafkaException, Producer
from confluent_kafka import TopicPartition as KafkaPosition

from controlplane.adapters.kafka_client import close_in_background
from controlplane.adapters.kafka_errors import Access, error_of, is_missing
from controlplane.adapters.kafka_log_listener import LogListener
from controlplane.adapters.kafka_replaceable_consumer import ReplaceableConsumer
from controlplane.config import ClusterConfig
from controlplane.core.values.identifiers import TopicPartition
from controlplane.errors import LogUnavailableError, PrerequisiteError

_Answer = TypeVar("_Answer")

_RETRY_PAUSE_S: Final = 0.05
_ELECTION_TIMEOUT_S: Final = 1.0
"""Usual elections take less time. A partition without a leader after it is left out if the caller allows that."""


class KafkaQueries:
    """Asks Kafka on behalf of one reader. Not thread-safe.

    While the reader has nothing assigned, its own consumer is asked. A consumer whose first call is ``assign`` often
    takes a second until it fetches; one that has made a query before does not (measured: 10 of 24, and 0 of 24).
    Afterwards a second consumer is asked, because queries would queue behind the reader's open fetch.

    Args:
        cluster: determines the prefix of the topics.
        reading: the reader's own consumer.
        make: makes the second consumer.
        access: the principal and the operation, for messages.
        timeout_s: the time limit of a query, including its repetitions.
    """

    def __init__(
        self,
        cluster: ClusterConfig,
        reading: ReplaceableConsumer,
        make: Callable[[LogListener], Consumer],
        access: Access,
        timeout_s: float,
    ) -> None:
        """Set up; the second consumer is made when it is needed."""
        self._cluster = cluster
        self._reading = reading
        self._make = make
        self._access = access
        self._timeout_s = timeout_s
        self._second: Consumer | None = None

    def partition_count(self, topic: str) -> int:
        """The number of partitions of the topic.

        Raises:
            LogUnavailableError: no answer in time.
            PrerequisiteError: there is no such topic.
            ConfigurationError: Kafka refuses the login, or denies this user to describe the topic.
        """
        name = self._cluster.topic(topic)
        return len(self._ask(name, lambda asked, remaining_s: partition_leaders(asked, name, remaining_s)))

    def offsets_at_time(self, topic: str, time_ms: int, *, only_answering: bool) -> dict[TopicPartition, int]:
        """For each partition the first offset appended at or after the time, or its end; raises as the former."""
        # The end is asked for first, because records that are appended in between must not be left out.
        ends = self.end_offsets(topic, only_answering=only_answering)
        found = self._offsets(topic, time_ms, only_answering=only_answering)
        # A partition can get a leader, or lose it, between the two queries.
        answered = [place for place in found if place in ends or not only_answering]
        return {place: found[place] if found[place] >= 0 else ends[place] for place in answered}

    def start_offsets(self, topic: str, *, only_answering: bool) -> dict[TopicPartition, int]:
        """For each partition the first offset that is kept; raises as the former."""
        return self._offsets(topic, OFFSET_BEGINNING, only_answering=only_answering)

    def end_offsets(self, topic: str, *, only_answering: bool) -> dict[TopicPartition, int]:
        """For each partition the last stable offset; raises as the former."""
        return self._offsets(topic, OFFSET_END, only_answering=only_answering)

    def serve(self) -> None:
        """Run the callbacks of consumers that bring no records, because librdkafka's reports accumulate until then."""
        self._reading.serve_idle()
        if self._second is not None:
            self._second.poll(0)

    def close(self) -> None:
        """Close the second consumer; the reader's own stays open."""
        if self._second is not None:
            self._second.close()
            self._second = None

    def _offsets(self, topic: str, time_ms_or_end: int, *, only_answering: bool) -> dict[TopicPartition, int]:
        """One request for all partitions of a topic; -1 and -2 stand for end and start, as in Kafka's protocol."""
        name = self._cluster.topic(topic)
        election_deadline_s = time.monotonic() + _ELECTION_TIMEOUT_S

        def ask(asked: Consumer, remaining_s: float) -> dict[TopicPartition, int]:
            has_leader = partition_leaders(asked, name, remaining_s)
            if only_answering and not all(has_leader.values()) and time.monotonic() < election_deadline_s:
                raise KafkaException(KafkaError(KafkaError.LEADER_NOT_AVAILABLE))
            numbers = [number for number in sorted(has_leader) if has_leader[number] or not only_answering]
            if not numbers:
                return {}
            wanted = [KafkaPosition(name, number, time_ms_or_end) for number in numbers]
            found = asked.offsets_for_times(wanted, timeout=remaining_s)
            for position in found:
                if position.error is not None:
                    raise KafkaException(position.error)
            return {TopicPartition(topic, position.partition): position.offset for position in found}

        return self._ask(name, ask)

    def _ask(self, name: str, query: Callable[[Consumer, float], _Answer]) -> _Answer:
        """Ask until there is an answer or the timeout has passed; leaders may be unknown for a moment after a start."""
        asked = self._consumer_to_ask()
        deadline_s = time.monotonic() + self._timeout_s
        while True:
            remaining_s = deadline_s - time.monotonic()
            try:
                return query(asked, max(remaining_s, _RETRY_PAUSE_S))
            except KafkaException as exception:
                error = error_of(exception)
                translated = self._reading.listener.request_error(error, f"topic {name}", self._access)
                # One part of the client may not know a topic yet whose partitions another part has counted.
                may_pass = isinstance(translated, LogUnavailableError | PrerequisiteError)
                if not may_pass or remaining_s <= _RETRY_PAUSE_S:
                    if isinstance(translated, LogUnavailableError):
                        self._give_up(asked, error)
                    raise translated from exception
            finally:
                self.serve()
            time.sleep(_RETRY_PAUSE_S)

    def _consumer_to_ask(self) -> Consumer:
        if not self._reading.is_assigned:
            return self._reading.current
        if self._second is None:
            self._second = self._make(self._reading.listener)
        return self._second

    def _give_up(self, asked: Consumer, cause: KafkaError) -> None:
        if asked is self._second:
            self._second = None
            close_in_background(asked)
        else:
            self._reading.replace_unanswered(asked, cause)


def partition_leaders(asked: Consumer | Producer, name: str, timeout_s: float) -> dict[int, bool]:
    """The partitions of a topic, and whether each has a leader.

    Args:
        asked: the client to ask through.
        name: the topic's full name.
        timeout_s: how long to wait for an answer.

    Raises:
        PrerequisiteError: there is no such topic.
        KafkaException: there is no usable answer.
    """
    found = asked.list_topics(name, timeout=timeout_s).topics[name]
    if found.error is not None:
        if is_missing(found.error):
            raise PrerequisiteError(
                f"there is no topic {name}: is the cluster's name right (--cluster)? A new cluster's topics are "
                "created by 'controlplane topics apply'"
            )
        raise KafkaException(found.error)
    return {number: partition.leader >= 0 for number, partition in found.partitions.items()}
