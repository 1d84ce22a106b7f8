"""What ``topics apply`` and ``topics verify`` refuse, without a Kafka."""

import pytest

from controlplane.adapters import kafka_admin
from controlplane.adapters.kafka_topic_inspector import KafkaTopicInspector
from controlplane.bootstrap.topics import topic_specs
from controlplane.errors import ConfigurationError, PrerequisiteError
from controlplane.kafka_rules.broker_sessions import RECOMMENDED_MS
from controlplane.kafka_rules.promises import DescribedKafka
from controlplane.kafka_rules.topics_file import ActualTopic

_SERVERS = "127.0.0.1:1"
_RECOMMENDED = {name: str(value_ms) for name, value_ms in RECOMMENDED_MS.items()}
_BROKEN = (
    "topic local.heartbeats has message.timestamp.type = CreateTime; it has to be LogAppendTime. Time is the broker's "
    "append time; a producer's clock must not affect fencing. Set it: kafka-configs.sh --bootstrap-server 127.0.0.1:1 "
    "--alter --entity-type topics --entity-name local.heartbeats --add-config message.timestamp.type=LogAppendTime"
)
_ADVICE = "advice: topic local.intents has min.insync.replicas = 3 of 3 copies: no broker may be missing; 2 is advised"


def _kafka(*missing: str, broken: bool) -> DescribedKafka:
    """A Kafka whose intents need every copy, without some of its topics, and with a broken promise or without."""
    settings = {spec.name: spec.settings_for(3) for spec in topic_specs()}
    settings["intents"]["min.insync.replicas"] = "3"
    if broken:
        settings["heartbeats"]["message.timestamp.type"] = "CreateTime"
    topics = {
        name: ActualTopic(name, int(spec.partitions.value), 3, settings[spec.name])
        for spec in topic_specs()
        if (name := f"local.{spec.name}") not in missing
    }
    return DescribedKafka(3, topics, broker_settings=_RECOMMENDED)


def _refusal(monkeypatch: pytest.MonkeyPatch, kafka: DescribedKafka, error: type[Exception]) -> list[str]:
    """The lines with which ``topics verify``, and a controller at its start, refuse this Kafka."""
    monkeypatch.setattr(KafkaTopicInspector, "describe", lambda *_: kafka)
    monkeypatch.setattr(kafka_admin, "_refuse_hidden", lambda *_: None)
    with pytest.raises(error) as refused:
        kafka_admin.verify_topics(_SERVERS, "local", topic_specs(), {})
    return str(refused.value).splitlines()


def test_one_answer_names_what_is_missing_what_is_broken_and_what_is_advised(monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer that hides the next one costs an operator a round for each."""
    missing = (
        "cluster local has no topic local.decisions, local.snapshots on 127.0.0.1:1: create them with "
        "'controlplane topics apply'"
    )
    head = "the topics of cluster local break promises that controllers rely on:"
    both = ("local.decisions", "local.snapshots")
    assert _refusal(monkeypatch, _kafka(*both, broken=True), PrerequisiteError) == [missing, head, _BROKEN, _ADVICE]
    assert _refusal(monkeypatch, _kafka(*both, broken=False), PrerequisiteError) == [missing, _ADVICE]
    assert _refusal(monkeypatch, _kafka(broken=True), ConfigurationError) == [head, _BROKEN, _ADVICE]
    monkeypatch.setattr(KafkaTopicInspector, "describe", lambda *_: _kafka(broken=False))
    assert kafka_admin.verify_topics(_SERVERS, "local", topic_specs(), {}).advice == (_ADVICE.removeprefix("advice: "),)


def test_a_topic_with_too_few_copies_is_named_as_kafka_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two clusters may share one Kafka, and every other message has the cluster's prefix."""
    monkeypatch.setattr(KafkaTopicInspector, "describe", lambda *_: DescribedKafka(2, {}))
    monkeypatch.setattr(kafka_admin, "_refuse_hidden", lambda *_: None)
    with pytest.raises(ConfigurationError, match=r"topic local\.\S+ is to have 3 copies, and Kafka shows 2 brokers"):
        kafka_admin.apply_topics("127.0.0.1:1", "local", topic_specs(), {})
