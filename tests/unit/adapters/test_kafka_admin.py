"""What ``topics apply`` refuses before it creates anything, without a Kafka."""

import pytest

from controlplane.adapters import kafka_admin
from controlplane.adapters.kafka_topic_inspector import KafkaTopicInspector
from controlplane.bootstrap.topics import topic_specs
from controlplane.errors import ConfigurationError
from controlplane.kafka_rules.promises import DescribedKafka


def test_a_topic_with_too_few_copies_is_named_as_kafka_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two clusters may share one Kafka, and every other message has the cluster's prefix."""
    monkeypatch.setattr(KafkaTopicInspector, "describe", lambda *_: DescribedKafka(2, {}))
    monkeypatch.setattr(kafka_admin, "_refuse_hidden", lambda *_: None)
    with pytest.raises(ConfigurationError, match=r"topic local\.\S+ is to have 3 copies, and Kafka shows 2 brokers"):
        kafka_admin.apply_topics("127.0.0.1:1", "local", topic_specs(), {})
