"""How long Kafka should leave a leader's transaction open, by the brokers that a write may have to wait for."""

from collections.abc import Mapping
from typing import Final

from confluent_kafka import KafkaException

from controlplane.adapters.kafka_admin_client import REQUEST_TIMEOUT_S, KafkaAdmin
from controlplane.adapters.kafka_topic_inspector import KafkaTopicInspector
from controlplane.config import DECISIONS, topic_name
from controlplane.kafka_rules.promises import BROKER_SESSION

_WITH_ONE_BROKER_MS: Final = 5_000
_LEAST_WITH_SEVERAL_MS: Final = 10_000
_BEYOND_SESSION_MS: Final = 5_000
_USUAL_SESSION_MS: Final = 9_000
"""Kafka's default."""


def transaction_timeout_ms(bootstrap_servers: str, cluster: str, security: Mapping[str, str]) -> int:
    """The time after which Kafka should abort a leader's open transaction.

    It is the longest time for which a crashed leader holds readers back if no other one follows. With several brokers
    it has to be longer than Kafka takes to give up a dead one: until then no write is acknowledged that the dead broker
    has a copy of, and a shorter time would fence a healthy leader.

    A process asks once, at its start. Brokers may be away then that have copies of the log, so these count as well.

    Raises:
        LogUnavailableError: Kafka did not answer in time.
        ConfigurationError: Kafka refuses this client's login.
    """
    admin = KafkaAdmin(cluster, bootstrap_servers, security)
    try:
        shown = admin.client.list_topics(timeout=REQUEST_TIMEOUT_S)
    except KafkaException as error:
        raise admin.failure(error, "describe", "the brokers") from error
    brokers = sorted(shown.brokers)
    log = shown.topics.get(topic_name(cluster, DECISIONS))
    copies = [] if log is None else [len(partition.replicas) for partition in log.partitions.values()]
    if max(len(brokers), *copies, 0) <= 1:
        return _WITH_ONE_BROKER_MS
    # A controller needs no right to read the settings of brokers.
    session_ms = int(KafkaTopicInspector(admin).broker_settings(brokers).get(BROKER_SESSION, _USUAL_SESSION_MS))
    return max(_LEAST_WITH_SEVERAL_MS, session_ms + _BEYOND_SESSION_MS)
