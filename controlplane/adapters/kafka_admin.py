"""Creates and checks the topics of one cluster, as defined in ``infra/kafka/topics.toml``."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import ConfigResource, NewTopic, ResourceType

from controlplane.adapters.kafka_admin_client import (
    CHANGE_VISIBLE_DEADLINE_S,
    CHANGE_VISIBLE_POLL_S,
    REQUEST_TIMEOUT_S,
    KafkaAdmin,
)
from controlplane.adapters.kafka_errors import is_denied
from controlplane.codec.topics_file import ActualTopic, TopicSpec, advice_not_followed, broken_promises
from controlplane.config import topic_name
from controlplane.errors import ConfigurationError, LogUnavailableError, PrerequisiteError


@dataclass(frozen=True, slots=True)
class TopicsReport:
    """The result of applying or verifying topics; all names are full names in Kafka.

    Attributes:
        created: the topics that were missing and exist now.
        verified: the topics that existed before and keep every promise.
        advice: one sentence for each difference from the file that breaks no promise.
    """

    created: tuple[str, ...]
    verified: tuple[str, ...]
    advice: tuple[str, ...]


def apply_topics(
    bootstrap_servers: str, cluster: str, specs: Sequence[TopicSpec], security: Mapping[str, str]
) -> TopicsReport:
    """Create the topics that are missing and check all of them; existing ones are never changed.

    Args:
        bootstrap_servers: ``host:port`` list, comma separated.
        cluster: the cluster's name, the prefix of its topics.
        specs: the topics as :func:`controlplane.codec.topics_file.parse_topics` read them.
        security: further librdkafka settings for TLS and SASL.

    Raises:
        ConfigurationError: an existing topic breaks a promise (then nothing is created), or Kafka refuses to create
            one.
        LogUnavailableError: Kafka did not answer in time.
    """
    admin = KafkaAdmin(cluster, bootstrap_servers, security)
    brokers, there = _describe(admin, cluster, specs)
    _refuse_broken(cluster, specs, there)
    missing = [spec for spec in specs if topic_name(cluster, spec.name) not in there]
    _refuse_hidden(admin, [topic_name(cluster, spec.name) for spec in missing])
    created = tuple(_create(admin, cluster, missing, brokers))
    deadline = time.monotonic() + CHANGE_VISIBLE_DEADLINE_S
    while len(there) < len(specs):
        if time.monotonic() > deadline:
            _refuse_hidden(admin, [name for spec in specs if (name := topic_name(cluster, spec.name)) not in there])
            message = f"Kafka created the topics of {cluster}, but does not show all of them: try again"
            raise LogUnavailableError(message)
        time.sleep(CHANGE_VISIBLE_POLL_S)
        brokers, there = _describe(admin, cluster, specs)
    # Checked again, because another process may have created some of them meanwhile with other settings.
    _refuse_broken(cluster, specs, there)
    verified = tuple(name for name in there if name not in created)
    return TopicsReport(created, verified, _advice(cluster, specs, there, brokers))


def verify_topics(
    bootstrap_servers: str, cluster: str, specs: Sequence[TopicSpec], security: Mapping[str, str]
) -> TopicsReport:
    """Check that every topic exists and keeps every promise; change nothing.

    Args:
        bootstrap_servers: ``host:port`` list, comma separated.
        cluster: the cluster's name, the prefix of its topics.
        specs: the topics as :func:`controlplane.codec.topics_file.parse_topics` read them.
        security: further librdkafka settings for TLS and SASL.

    Raises:
        PrerequisiteError: a topic is missing.
        ConfigurationError: a topic breaks a promise; the message names topic, setting, value and promise.
        LogUnavailableError: Kafka did not answer in time.
    """
    admin = KafkaAdmin(cluster, bootstrap_servers, security)
    brokers, there = _describe(admin, cluster, specs)
    missing = [name for spec in specs if (name := topic_name(cluster, spec.name)) not in there]
    if missing:
        _refuse_hidden(admin, missing)
        message = (
            f"cluster {cluster} has no topic {', '.join(missing)} on {bootstrap_servers}: "
            f"create them with 'controlplane topics apply'"
        )
        raise PrerequisiteError(message)
    _refuse_broken(cluster, specs, there)
    return TopicsReport((), tuple(there), _advice(cluster, specs, there, brokers))


def _describe(admin: KafkaAdmin, cluster: str, specs: Sequence[TopicSpec]) -> tuple[int, dict[str, ActualTopic]]:
    """The number of brokers, and the wanted topics that exist, by full name in the file's order."""
    try:
        metadata = admin.client.list_topics(timeout=REQUEST_TIMEOUT_S)
    except KafkaException as error:
        raise admin.failure(error, "describe", "the topics") from error
    names = [
        name
        for spec in specs
        if (name := topic_name(cluster, spec.name)) in metadata.topics and metadata.topics[name].partitions
    ]
    settings = _describe_settings(admin, names)
    there = {}
    for name in names:
        if name not in settings:
            continue
        partitions = metadata.topics[name].partitions.values()
        there[name] = ActualTopic(
            name=name,
            partitions=len(partitions),
            replication=min(len(partition.replicas) for partition in partitions),
            settings=settings[name],
        )
    return len(metadata.brokers), there


def _refuse_hidden(admin: KafkaAdmin, missing: Sequence[str]) -> None:
    """Check that missing topics are missing: one that this client may not describe is reported only if asked by name.

    Raises:
        ConfigurationError: one of them is hidden from this client.
    """
    for name in missing:
        try:
            error = admin.client.list_topics(name, timeout=REQUEST_TIMEOUT_S).topics[name].error
        except KafkaException as failed:
            raise admin.failure(failed, "describe", f"topic {name}") from failed
        if error is not None and is_denied(error):
            raise admin.failure(error, "describe", f"topic {name}")


def _describe_settings(admin: KafkaAdmin, names: Sequence[str]) -> dict[str, dict[str, str]]:
    if not names:
        return {}
    resources = [ConfigResource(ResourceType.TOPIC, name) for name in names]
    answers = admin.client.describe_configs(resources, request_timeout=REQUEST_TIMEOUT_S)
    settings = {}
    for resource, answer in answers.items():
        try:
            entries = answer.result(REQUEST_TIMEOUT_S)
        except (KafkaException, TimeoutError) as error:
            if isinstance(error, KafkaException) and error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                # The topic is being created or deleted: one broker shows it, another does not.
                continue
            raise admin.failure(error, "describe_configs", f"topic {resource.name}") from error
        settings[resource.name] = {name: entry.value for name, entry in entries.items() if entry.value is not None}
    return settings


def _create(admin: KafkaAdmin, cluster: str, missing: Sequence[TopicSpec], brokers: int) -> list[str]:
    if not missing:
        return []
    new = [
        NewTopic(
            topic_name(cluster, spec.name),
            num_partitions=int(spec.partitions.value),
            replication_factor=spec.replication_for(brokers),
            config=spec.settings_for(brokers),
        )
        for spec in missing
    ]
    created = []
    for name, answer in admin.client.create_topics(new, request_timeout=REQUEST_TIMEOUT_S).items():
        try:
            answer.result(REQUEST_TIMEOUT_S)
            created.append(name)
        except TimeoutError as error:
            raise admin.failure(error, "create", f"topic {name}") from error
        except KafkaException as error:
            reason: KafkaError = error.args[0]
            if is_denied(reason):
                raise admin.failure(error, "create", f"topic {name}") from error
            if reason.code() == KafkaError.TOPIC_ALREADY_EXISTS:
                continue
            message = f"Kafka did not create topic {name}: {reason}"
            raise (LogUnavailableError if reason.retriable() else ConfigurationError)(message) from error
    return created


def _refuse_broken(cluster: str, specs: Sequence[TopicSpec], there: Mapping[str, ActualTopic]) -> None:
    broken = [
        sentence
        for spec in specs
        if (actual := there.get(topic_name(cluster, spec.name))) is not None
        for sentence in broken_promises(spec, actual)
    ]
    if broken:
        message = "\n".join([f"the topics of cluster {cluster} break promises that controllers rely on:", *broken])
        raise ConfigurationError(message)


def _advice(
    cluster: str, specs: Sequence[TopicSpec], there: Mapping[str, ActualTopic], brokers: int
) -> tuple[str, ...]:
    return tuple(
        sentence
        for spec in specs
        for sentence in advice_not_followed(spec, there[topic_name(cluster, spec.name)], brokers)
    )
