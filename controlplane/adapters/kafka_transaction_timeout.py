"""How long Kafka should leave a leader's transaction open, by the brokers that a write may have to wait for."""

from collections.abc import Mapping

from confluent_kafka import KafkaException

from controlplane.adapters.kafka_admin_client import KafkaAdmin
from controlplane.adapters.kafka_topic_inspector import KafkaTopicInspector, list_by_known_broker
from controlplane.config import DECISIONS, topic_name
from controlplane.kafka_rules.broker_sessions import BROKER_SESSION, USUAL_SESSION_MS, transaction_timeout_ms


def ask_transaction_timeout_ms(bootstrap_servers: str, cluster: str, security: Mapping[str, str]) -> int:
    """What :func:`~controlplane.kafka_rules.broker_sessions.transaction_timeout_ms` says of this Kafka.

    A process asks once, at its start. Brokers may be away then that have copies of the log, so these count as well.

    Raises:
        LogUnavailableError: Kafka did not answer in time.
        ConfigurationError: Kafka refuses this client's login.
    """
    admin = KafkaAdmin(cluster, bootstrap_servers, security)
    try:
        shown = list_by_known_broker(admin.client)
    except KafkaException as error:
        raise admin.failure(error, "describe", "the brokers") from error
    log = shown.topics.get(topic_name(cluster, DECISIONS))
    copies = [] if log is None else [len(partition.replicas) for partition in log.partitions.values()]
    count = max(len(shown.brokers), *copies, 0)
    # A controller needs no right to read the settings of brokers, and one broker has no session that matters.
    settings = KafkaTopicInspector(admin).broker_settings(shown) if count > 1 else {}
    return transaction_timeout_ms(count, int(settings.get(BROKER_SESSION, USUAL_SESSION_MS)))
