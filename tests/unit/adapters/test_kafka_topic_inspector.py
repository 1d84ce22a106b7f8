"""What a broker shows of a topic that another one has just created or deleted, without a broker."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, ClusterMetadata, ConfigResource

from controlplane.adapters.kafka_admin_client import REQUEST_TIMEOUT_S, KafkaAdmin
from controlplane.adapters.kafka_topic_inspector import KafkaTopicInspector, list_by_known_broker
from controlplane.errors import LogUnavailableError

THERE, GOING = "test.decisions", "test.heartbeats"


class FakeClient:
    """Lists two topics and brokers, and knows the settings of one topic and of every broker."""

    def __init__(self, *senders: int, brokers: Sequence[int] = (1, 2, 3)) -> None:
        """The brokers of these ids send the lists, one after the other; -1 if the client does not know the id."""
        self._senders, self._brokers = list(senders), brokers
        self.requests: list[list[str]] = []

    def list_topics(self, timeout: float) -> SimpleNamespace:
        """Both, with one partition each."""
        assert timeout > 0
        partitions = {0: SimpleNamespace(replicas=[1, 2])}
        topics = {name: SimpleNamespace(partitions=partitions) for name in (THERE, GOING)}
        return SimpleNamespace(topics=topics, brokers=dict.fromkeys(self._brokers), orig_broker_id=self._senders.pop(0))

    def describe_configs(self, resources: list[ConfigResource], request_timeout: float) -> dict[ConfigResource, Any]:
        """An answer for each."""
        assert request_timeout > 0
        self.requests.append([resource.name for resource in resources])
        return {
            resource: SimpleNamespace(result=lambda _, name=resource.name: _settings(name)) for resource in resources
        }


def _settings(name: str) -> dict[str, SimpleNamespace]:
    if name == GOING:
        raise KafkaException(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART))
    if name.isdecimal():
        return {"asked": SimpleNamespace(value=name)}
    return {"retention.ms": SimpleNamespace(value="-1"), "unknown": SimpleNamespace(value=None)}


def test_a_topic_that_only_some_brokers_know_counts_as_missing() -> None:
    """It is being created or deleted: the next look finds it, or does not."""
    admin = cast("KafkaAdmin", SimpleNamespace(client=FakeClient(2)))
    described = KafkaTopicInspector(admin).describe([THERE, GOING, "test.never-made"])
    assert list(described.topics) == [THERE]
    assert described.topics[THERE].replication == 2
    assert described.topics[THERE].settings == {"retention.ms": "-1"}
    assert described.hidden == {}


@pytest.mark.parametrize(
    ("client", "asked"),
    [
        (FakeClient(2), {"asked": "2"}),
        (FakeClient(-1, 3), {"asked": "3"}),  # a new client's first connection
        (FakeClient(-1, -1), {"asked": "1"}),
    ],
)
def test_the_broker_that_answers_is_asked_for_settings(client: FakeClient, asked: dict[str, str]) -> None:
    """Another one may be dead, though Kafka still shows it. One request also asks for the topics' settings."""
    admin = cast("KafkaAdmin", SimpleNamespace(client=client))
    assert KafkaTopicInspector(admin).describe([THERE]).broker_settings == asked
    assert client.requests == [[*asked.values(), THERE]]


class LateClient(FakeClient):
    """Its first requests fail."""

    def __init__(self, *failures: int) -> None:
        """With errors of these codes, one after the other."""
        super().__init__(2)
        self.failures = list(failures)
        self.waited_s: list[float] = []

    def list_topics(self, timeout: float) -> SimpleNamespace:
        """The next failure, or the list."""
        self.waited_s.append(timeout)
        if self.failures:
            raise KafkaException(KafkaError(self.failures.pop(0)))
        return super().list_topics(timeout)


def test_a_broker_that_has_died_a_moment_ago_is_not_waited_for() -> None:
    """The request that was given to it waits there; asked again soon, another one answers, within the same time."""
    late = KafkaError._TIMED_OUT  # noqa: SLF001 - librdkafka's own codes begin so
    client = LateClient(late)
    admin = cast("KafkaAdmin", SimpleNamespace(client=client))
    assert KafkaTopicInspector(admin).describe([THERE]).brokers == 3
    assert client.waited_s == [1.0, REQUEST_TIMEOUT_S - 1.0]
    for failures in ((late, late), (KafkaError._AUTHENTICATION,)):  # noqa: SLF001 - as above
        client = LateClient(*failures)
        with pytest.raises(KafkaException):
            list_by_known_broker(cast("AdminClient", client))
        assert client.failures == [], "an error that is no time-out is told at once"
        assert len(client.waited_s) == len(failures)


def test_brokers_that_show_none_of_them_are_asked_later() -> None:
    """They are starting. No topic is missing for that."""
    admin = cast("KafkaAdmin", SimpleNamespace(client=FakeClient(-1, -1, brokers=())))
    with pytest.raises(LogUnavailableError, match="shows no brokers"):
        KafkaTopicInspector(admin).describe([THERE])
    shown = SimpleNamespace(brokers={}, orig_broker_id=-1)
    assert KafkaTopicInspector(admin).broker_settings(cast("ClusterMetadata", shown)) == {}
