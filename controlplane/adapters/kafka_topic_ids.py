"""Kafka's id of a topic, which a topic that is deleted and made again does not share (KIP-516)."""

from typing import Final

from confluent_kafka import KafkaException, TopicCollection, Uuid

from controlplane.adapters.kafka_admin_client import REQUEST_TIMEOUT_S, KafkaAdmin
from controlplane.config import ClusterConfig, KafkaConfig

_ANSWERED_WITHIN_S: Final = 2.0
"""librdkafka asks the broker that is shown as the controller, which may be dead.

See :mod:`controlplane.adapters.kafka_topic_inspector`.
"""
_NONE: Final = str(Uuid(0, 0))
_URL_SAFE: Final = str.maketrans("+/", "-_")
"""Kafka's own tools print ids in base 64 for URLs, and librdkafka in that of RFC 4648, section 4."""


def topic_id(cluster: ClusterConfig, kafka: KafkaConfig, topic: str) -> str | None:
    """The id of a topic as Kafka's own tools print it; None: the broker gives topics none.

    Args:
        cluster: determines the topic's whole name.
        kafka: where Kafka is.
        topic: without the cluster's prefix.

    Raises:
        ConfigurationError: Kafka refuses the login, or does not allow the question.
        LogUnavailableError: Kafka did not answer in time.
        PrerequisiteError: there is no such topic.
    """
    admin = KafkaAdmin(cluster.name, kafka.bootstrap_servers, kafka.security)
    name = cluster.topic(topic)
    with admin.client as client:  # its threads would else live on in the traceback of a failure
        asked = client.describe_topics(TopicCollection([name]), request_timeout=_ANSWERED_WITHIN_S)
        try:
            found = str(asked[name].result(REQUEST_TIMEOUT_S).topic_id)
        except (KafkaException, TimeoutError) as error:
            raise admin.failure(error, "describe", f"topic {name}") from error
    return None if found == _NONE else found.translate(_URL_SAFE)
