"""Describes topics and brokers of Kafka: implements the port :class:`controlplane.ports.TopicInspector`."""

import contextlib
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from typing import Final, TypeAlias

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient, ClusterMetadata, ConfigEntry, ConfigResource, ResourceType

from controlplane.adapters.kafka_admin_client import REQUEST_TIMEOUT_S, KafkaAdmin
from controlplane.adapters.kafka_errors import error_of
from controlplane.errors import LogUnavailableError
from controlplane.kafka_rules.promises import INTERNAL_TOPICS, DescribedKafka
from controlplane.kafka_rules.topics_file import ActualTopic

_HIDDEN_TIMEOUT_S: Final = 2.0
"""librdkafka asks the broker that is shown as the controller here, and takes a core while that one is dead."""

_SOON_S: Final = 1.0
"""How long a first answer is waited for before a broker is asked again, which may be another one."""

_Answers: TypeAlias = "Mapping[ConfigResource, Future[Mapping[str, ConfigEntry]]]"


class KafkaTopicInspector:
    """Implements :class:`controlplane.ports.TopicInspector`. Not thread-safe.

    Kafka's own topics that it refuses to describe are named as hidden. Others count as missing here: see
    :func:`controlplane.adapters.kafka_admin.verify_topics`.
    """

    def __init__(self, admin: KafkaAdmin) -> None:
        """Use a connection."""
        self._admin = admin

    def describe(self, topics: Sequence[str]) -> DescribedKafka:
        """See :meth:`controlplane.ports.TopicInspector.describe`."""
        try:
            metadata = list_by_known_broker(self._admin.client)
        except KafkaException as error:
            raise self._admin.failure(error, "describe", "the topics") from error
        if not metadata.brokers:
            raise LogUnavailableError(
                "Kafka shows no brokers: they are starting, or have lost their controllers; try again"
            )
        names = [name for name in topics if name in metadata.topics and metadata.topics[name].partitions]
        hidden = self._hidden([name for name in topics if name in INTERNAL_TOPICS and name not in names])
        answers = self._ask_settings(metadata, names)
        settings = self._settings(answers, hidden)
        found = {}
        for name in names:
            if name not in settings:
                continue
            partitions = metadata.topics[name].partitions.values()
            found[name] = ActualTopic(
                name=name,
                partitions=len(partitions),
                replication=min(len(partition.replicas) for partition in partitions),
                settings=settings[name],
            )
        return DescribedKafka(len(metadata.brokers), found, hidden, _broker_settings(answers))

    def broker_settings(self, metadata: ClusterMetadata) -> dict[str, str]:
        """The settings of the broker that has sent this answer; empty if this client may not read them."""
        return _broker_settings(self._ask_settings(metadata, ())) if metadata.brokers else {}

    def _ask_settings(self, metadata: ClusterMetadata, names: Sequence[str]) -> _Answers:
        """Ask the broker that has sent this answer for its settings and for those of topics, in one request.

        librdkafka sends a request that names a broker to that one. A request about topics alone goes to the one that is
        shown as the controller, which may be dead, because Kafka shows a dead broker until its session has ended. While
        it waits for a broker that refuses connections, librdkafka takes most of a core.
        """
        sender = metadata.orig_broker_id
        asked = sender if sender in metadata.brokers else min(metadata.brokers)
        broker = ConfigResource(ResourceType.BROKER, str(asked))
        resources = [broker, *(ConfigResource(ResourceType.TOPIC, name) for name in names)]
        answers: _Answers = self._admin.client.describe_configs(resources, request_timeout=REQUEST_TIMEOUT_S)
        return answers

    def _hidden(self, names: Sequence[str]) -> dict[str, str]:
        """Those of the missing topics that exist, or may exist, with the reason why Kafka does not show them."""
        if not names:
            return {}
        answers = self._admin.client.describe_topics(TopicCollection(list(names)), request_timeout=_HIDDEN_TIMEOUT_S)
        hidden = {}
        for name, answer in answers.items():
            try:
                answer.result(REQUEST_TIMEOUT_S)
            except (KafkaException, TimeoutError) as error:
                failure = self._admin.failure(error, "describe", f"topic {name}")
                if isinstance(error, TimeoutError):
                    raise failure from error
                if error_of(error).code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                    hidden[name] = str(failure)
        return hidden

    def _settings(self, answers: _Answers, hidden: dict[str, str]) -> dict[str, dict[str, str]]:
        settings = {}
        for resource, answer in answers.items():
            if resource.restype is not ResourceType.TOPIC:
                continue
            try:
                entries = answer.result(REQUEST_TIMEOUT_S)
            except (KafkaException, TimeoutError) as error:
                if isinstance(error, KafkaException) and error_of(error).code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                    # The topic is being created or deleted: one broker shows it, another does not.
                    continue
                failure = self._admin.failure(error, "describe_configs", f"topic {resource.name}")
                if resource.name in INTERNAL_TOPICS and isinstance(error, KafkaException):
                    hidden[resource.name] = str(failure)
                    continue
                raise failure from error
            settings[resource.name] = _values(entries)
        return settings


def list_by_known_broker(client: AdminClient) -> ClusterMetadata:
    """All brokers and topics, as a broker shows them whose id is known.

    A new client does not know to which broker its first connection leads; the first answer tells it the ids of all.

    Raises:
        KafkaException: Kafka did not answer in time, or refuses this client's login.
    """
    metadata = _listed(client)
    return metadata if metadata.orig_broker_id in metadata.brokers else _listed(client)


def _listed(client: AdminClient) -> ClusterMetadata:
    """All brokers and topics, as a broker shows them that answers.

    librdkafka gives a request to any broker to which it is connected, and leaves it there until its time-out if that
    one has died a moment ago. Asked again it takes another one.
    """
    try:
        return client.list_topics(timeout=_SOON_S)
    except KafkaException as error:
        if error_of(error).code() != KafkaError._TIMED_OUT:  # noqa: SLF001 - librdkafka's own codes begin so
            raise
    return client.list_topics(timeout=REQUEST_TIMEOUT_S - _SOON_S)


def _broker_settings(answers: _Answers) -> dict[str, str]:
    for resource, answer in answers.items():
        if resource.restype is ResourceType.BROKER:
            # Advice is left out without them, and a transaction may stay open as with Kafka's default session: a
            # controller needs no right to read them.
            with contextlib.suppress(KafkaException, TimeoutError):
                return _values(answer.result(REQUEST_TIMEOUT_S))
    return {}


def _values(entries: Mapping[str, ConfigEntry]) -> dict[str, str]:
    return {name: entry.value for name, entry in entries.items() if entry.value is not None}
