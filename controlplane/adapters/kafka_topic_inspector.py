"""Describes topics and brokers of Kafka: implements the port :class:`controlplane.ports.TopicInspector`."""

from collections.abc import Sequence
from typing import Final

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import ClusterMetadata, ConfigResource, ResourceType

from controlplane.adapters.kafka_admin_client import REQUEST_TIMEOUT_S, KafkaAdmin
from controlplane.adapters.kafka_errors import error_of
from controlplane.kafka_rules.promises import INTERNAL_TOPICS, DescribedKafka
from controlplane.kafka_rules.topics_file import ActualTopic

_SETTINGS_TIMEOUT_S: Final = 2.0
"""A broker may die between two requests, and librdkafka takes most of a core while it waits for one that is named."""


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
            metadata = self._admin.client.list_topics(timeout=REQUEST_TIMEOUT_S)
        except KafkaException as error:
            raise self._admin.failure(error, "describe", "the topics") from error
        names = [name for name in topics if name in metadata.topics and metadata.topics[name].partitions]
        hidden = self._hidden([name for name in topics if name in INTERNAL_TOPICS and name not in names])
        settings = self._settings(names, hidden)
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
        return DescribedKafka(len(metadata.brokers), found, hidden, self.broker_settings(metadata))

    def broker_settings(self, metadata: ClusterMetadata) -> dict[str, str]:
        """The settings of the broker that has sent this answer; empty if this client may not read them.

        Kafka shows a dead broker until its session has ended, so another one is asked only if the sender is not known:
        the answer came over an address that stands for all brokers.
        """
        if not metadata.brokers:
            return {}
        sender = metadata.orig_broker_id
        asked = sender if sender in metadata.brokers else min(metadata.brokers)
        resource = ConfigResource(ResourceType.BROKER, str(asked))
        try:
            (answer,) = self._admin.client.describe_configs([resource], request_timeout=_SETTINGS_TIMEOUT_S).values()
            entries = answer.result(_SETTINGS_TIMEOUT_S)
        except (KafkaException, TimeoutError):
            # Advice is left out then, and a transaction may stay open as with Kafka's default session: a controller
            # needs no right to read them.
            return {}
        return {name: entry.value for name, entry in entries.items() if entry.value is not None}

    def _hidden(self, names: Sequence[str]) -> dict[str, str]:
        """Those of the missing topics that exist, or may exist, with the reason why Kafka does not show them."""
        if not names:
            return {}
        answers = self._admin.client.describe_topics(TopicCollection(list(names)), request_timeout=REQUEST_TIMEOUT_S)
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

    def _settings(self, names: Sequence[str], hidden: dict[str, str]) -> dict[str, dict[str, str]]:
        if not names:
            return {}
        resources = [ConfigResource(ResourceType.TOPIC, name) for name in names]
        answers = self._admin.client.describe_configs(resources, request_timeout=REQUEST_TIMEOUT_S)
        settings = {}
        for resource, answer in answers.items():
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
            settings[resource.name] = {name: entry.value for name, entry in entries.items() if entry.value is not None}
        return settings
