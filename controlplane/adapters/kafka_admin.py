"""Creates and checks the topics of one cluster, as defined in ``infra/kafka/topics.toml``."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from confluent_kafka import KafkaException

from controlplane.adapters.kafka_admin_client import (
    CHANGE_VISIBLE_DEADLINE_S,
    CHANGE_VISIBLE_POLL_S,
    REQUEST_TIMEOUT_S,
    KafkaAdmin,
)
from controlplane.adapters.kafka_errors import is_denied
from controlplane.adapters.kafka_topic_creation import TopicCreation
from controlplane.adapters.kafka_topic_inspector import KafkaTopicInspector
from controlplane.config import topic_name
from controlplane.errors import ConfigurationError, LogUnavailableError, PrerequisiteError
from controlplane.kafka_rules.platforms import Platform
from controlplane.kafka_rules.promises import INTERNAL_TOPICS, DescribedKafka, Judgement, judge
from controlplane.kafka_rules.topics_file import TopicSpec


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
    bootstrap_servers: str,
    cluster: str,
    specs: Sequence[TopicSpec],
    security: Mapping[str, str],
    least_copies: int | None = None,
) -> TopicsReport:
    """Create the topics that are missing and check all of them; existing ones are never changed.

    Args:
        bootstrap_servers: ``host:port`` list, comma separated.
        cluster: the cluster's name, the prefix of its topics.
        specs: the topics as :func:`controlplane.kafka_rules.topics_file.parse_topics` read them.
        security: further librdkafka settings for TLS and SASL.
        least_copies: the fewest copies that a new topic may get, if that is less than the file says. It gets as many
            as there are brokers, up to what the file says.

    Raises:
        ConfigurationError: an existing topic breaks a promise, or there are too few brokers for the copies of a new
            topic (then nothing is created), or Kafka refuses to create one.
        LogUnavailableError: Kafka did not answer in time.
    """
    admin = KafkaAdmin(cluster, bootstrap_servers, security)
    inspector = KafkaTopicInspector(admin)
    described = _describe(inspector, cluster, specs)
    _refuse_broken(cluster, judge(cluster, specs, described, bootstrap_servers=bootstrap_servers))
    absent = _absent(cluster, specs, described)
    _refuse_hidden(admin, absent)
    missing = [spec for spec in specs if topic_name(cluster, spec.name) in absent]
    _refuse_few_copies(cluster, missing, described.brokers, least_copies)
    created, notes = TopicCreation(admin, cluster, described.brokers, described.broker_settings).create(missing)
    deadline = time.monotonic() + CHANGE_VISIBLE_DEADLINE_S
    while absent := _absent(cluster, specs, described):
        if time.monotonic() > deadline:
            _refuse_hidden(admin, absent)
            message = f"Kafka created the topics of {cluster}, but does not show all of them: try again"
            raise LogUnavailableError(message)
        time.sleep(CHANGE_VISIBLE_POLL_S)
        described = _describe(inspector, cluster, specs)
    # Checked again, because another process may have created some of them meanwhile with other settings.
    judgement = judge(cluster, specs, described, bootstrap_servers=bootstrap_servers)
    _refuse_broken(cluster, judgement)
    verified = (name for spec in specs if (name := topic_name(cluster, spec.name)) not in created)
    return TopicsReport(tuple(created), tuple(verified), (*notes, *judgement.advice))


def verify_topics(
    bootstrap_servers: str,
    cluster: str,
    specs: Sequence[TopicSpec],
    security: Mapping[str, str],
    platform: Platform | None = None,
) -> TopicsReport:
    """Check that every topic exists and keeps every promise, and Kafka's own topics and brokers; change nothing.

    Args:
        bootstrap_servers: ``host:port`` list, comma separated.
        cluster: the cluster's name, the prefix of its topics.
        specs: the topics as :func:`controlplane.kafka_rules.topics_file.parse_topics` read them.
        security: further librdkafka settings for TLS and SASL.
        platform: who runs this Kafka, if that is known: it says what cannot be changed there.

    Raises:
        PrerequisiteError: a topic is missing; the message goes on with the broken promises of the others, and with the
            advice.
        ConfigurationError: a topic breaks a promise; the message names topic, setting, value, promise and remedy of
            each, and goes on with the advice.
        LogUnavailableError: Kafka did not answer in time.
    """
    admin = KafkaAdmin(cluster, bootstrap_servers, security)
    described = _describe(KafkaTopicInspector(admin), cluster, specs)
    missing = _absent(cluster, specs, described)
    _refuse_hidden(admin, missing)
    judgement = judge(cluster, specs, described, platform, bootstrap_servers)
    if missing:
        head = (
            f"cluster {cluster} has no topic {', '.join(missing)} on {bootstrap_servers}: "
            f"create them with 'controlplane topics apply'"
        )
        raise PrerequisiteError("\n".join([head, *_lines(cluster, judgement)]))
    _refuse_broken(cluster, judgement)
    return TopicsReport((), tuple(topic_name(cluster, spec.name) for spec in specs), judgement.advice)


def _describe(inspector: KafkaTopicInspector, cluster: str, specs: Sequence[TopicSpec]) -> DescribedKafka:
    """What Kafka shows of the wanted topics, and of its own."""
    return inspector.describe([*(topic_name(cluster, spec.name) for spec in specs), *INTERNAL_TOPICS])


def _absent(cluster: str, specs: Sequence[TopicSpec], described: DescribedKafka) -> list[str]:
    """The full names of the wanted topics that Kafka does not show."""
    return [name for spec in specs if (name := topic_name(cluster, spec.name)) not in described.topics]


def _refuse_few_copies(cluster: str, missing: Sequence[TopicSpec], brokers: int, least_copies: int | None) -> None:
    """Check that new topics get enough copies: a broker that is away now would be missing for as long as they exist.

    Raises:
        ConfigurationError: there are too few brokers.
    """
    for spec in missing:
        wanted = spec.replication if least_copies is None else min(least_copies, spec.replication)
        if spec.replication_for(brokers) < wanted:
            raise ConfigurationError(
                f"topic {topic_name(cluster, spec.name)} is to have {wanted} copies, and Kafka shows {brokers} "
                f"broker{'' if brokers == 1 else 's'}: is one away? Nothing was created. If the cluster has no more "
                f"brokers, allow fewer copies: --least-copies {brokers}"
            )


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


def _refuse_broken(cluster: str, judgement: Judgement) -> None:
    if judgement.broken:
        raise ConfigurationError("\n".join(_lines(cluster, judgement)))


def _lines(cluster: str, judgement: Judgement) -> list[str]:
    """What is not as it has to be, then the advice; an operator who mends the first sees the second as well."""
    head = f"the topics of cluster {cluster} break promises that controllers rely on:"
    return [*([head] if judgement.broken else []), *judgement.broken, *(f"advice: {each}" for each in judgement.advice)]
