"""The topics file against a real broker: created as written, and refused by name when a promise is broken."""

from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from controlplane.adapters.kafka_admin import apply_topics, verify_topics
from controlplane.adapters.kafka_topic_ids import topic_id
from controlplane.config import INTENTS, ClusterConfig, KafkaConfig
from controlplane.embedded.kafka import EmbeddedKafka
from controlplane.embedded.server import HOST, free_port
from controlplane.errors import ConfigurationError, LogUnavailableError, PrerequisiteError
from controlplane.kafka_rules.topics_file import TopicSpec, parse_topics
from controlplane.resources import resource_path
from tests.helpers.polling import poll_until


@pytest.fixture(scope="module")
def specs() -> tuple[TopicSpec, ...]:
    """The project's own topics file."""
    path = Path(resource_path("infra/kafka/topics.toml"))
    return parse_topics(path.read_text(encoding="utf-8"), path.name)


def create(broker: EmbeddedKafka, name: str, partitions: int, **settings: str) -> None:
    """Create a topic as somebody else would have."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    config = {key.replace("_", "."): value for key, value in settings.items()}
    admin.create_topics([NewTopic(name, partitions, 1, config=config)])[name].result(20)
    poll_until(lambda: name in admin.list_topics(timeout=10).topics)


def test_applied_topics_keep_every_promise(
    kafka_broker: EmbeddedKafka, cluster_name: str, specs: tuple[TopicSpec, ...]
) -> None:
    """What we create has to pass our own check, with more copies to advise, and applying twice changes nothing."""
    names = tuple(f"{cluster_name}.{spec.name}" for spec in specs)
    first = apply_topics(kafka_broker.bootstrap_servers, cluster_name, specs, {}, least_copies=1)
    assert sorted(first.created) == sorted(names)
    assert len(first.advice) == len(names)
    assert all("has 1 copy; 3 are advised, and Kafka shows 1 broker" in sentence for sentence in first.advice)
    second = apply_topics(kafka_broker.bootstrap_servers, cluster_name, specs, {}, least_copies=1)
    assert second.created == ()
    assert second.verified == names
    assert verify_topics(kafka_broker.bootstrap_servers, cluster_name, specs, {}) == second


def test_a_topic_that_is_made_again_has_another_id(
    kafka_broker: EmbeddedKafka, cluster_name: str, specs: tuple[TopicSpec, ...]
) -> None:
    """By which a reader tells it from the one that it has read; a topic that is not there has none."""
    cluster, kafka = ClusterConfig(cluster_name), KafkaConfig(kafka_broker.bootstrap_servers)
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    name = cluster.topic(INTENTS)
    ids = []
    for _ in range(2):
        with pytest.raises(PrerequisiteError, match=name):
            topic_id(cluster, kafka, INTENTS)
        apply_topics(kafka.bootstrap_servers, cluster_name, specs, {}, least_copies=1)
        ids += [topic_id(cluster, kafka, INTENTS) for _ in range(2)]
        admin.delete_topics([name])[name].result(20)
        poll_until(lambda: name not in admin.list_topics(timeout=10).topics)
    assert ids[0] == ids[1] != ids[2] == ids[3]


def test_without_kafka_the_id_of_a_topic_is_unavailable() -> None:
    """The question may be asked again."""
    with pytest.raises(LogUnavailableError):
        topic_id(ClusterConfig("c"), KafkaConfig(f"{HOST}:{free_port()}"), INTENTS)


def test_fewer_copies_than_the_file_says_are_refused_unless_they_are_allowed(
    kafka_broker: EmbeddedKafka, cluster_name: str, specs: tuple[TopicSpec, ...]
) -> None:
    """A broker that is away while topics are created would leave every one of them with a copy too few for good."""
    for least_copies, wanted in ((None, 3), (2, 2)):
        with pytest.raises(
            ConfigurationError, match=f"to have {wanted} copies, and Kafka shows 1 broker.*--least-copies 1"
        ):
            apply_topics(kafka_broker.bootstrap_servers, cluster_name, specs, {}, least_copies)
        with pytest.raises(PrerequisiteError, match="has no topic"):
            verify_topics(kafka_broker.bootstrap_servers, cluster_name, specs, {})


@pytest.mark.parametrize(
    ("topic", "settings", "setting"),
    [
        ("decisions", {"cleanup_policy": "compact", "retention_ms": "-1"}, "cleanup.policy = compact"),
        ("decisions", {"retention_ms": "86400000"}, "retention.ms = 86400000"),
        (
            "heartbeats",
            {"message_timestamp_type": "CreateTime"},
            "message.timestamp.type = CreateTime",
        ),
        ("routing-table", {"cleanup_policy": "delete", "min_compaction_lag_ms": "3600000"}, "cleanup.policy = delete"),
        ("routing-table", {"cleanup_policy": "compact"}, "min.compaction.lag.ms = 0"),
    ],
)
def test_broken_promise_is_refused_by_name(
    kafka_broker: EmbeddedKafka,
    cluster_name: str,
    specs: tuple[TopicSpec, ...],
    topic: str,
    settings: dict[str, str],
    setting: str,
) -> None:
    """A controller on such a topic would lose decisions or fence live nodes: it must not start, and must say why."""
    create(kafka_broker, f"{cluster_name}.{topic}", 1, **settings)
    with pytest.raises(ConfigurationError) as refused:
        apply_topics(kafka_broker.bootstrap_servers, cluster_name, specs, {}, least_copies=1)
    assert f"topic {cluster_name}.{topic} has {setting};" in str(refused.value)
    with pytest.raises(PrerequisiteError, match="has no topic"):
        verify_topics(kafka_broker.bootstrap_servers, cluster_name, specs, {})
    only = [spec for spec in specs if spec.name == topic]
    with pytest.raises(ConfigurationError) as refused:
        verify_topics(kafka_broker.bootstrap_servers, cluster_name, only, {})
    assert f"has {setting};" in str(refused.value)


def test_too_many_partitions_break_the_order(
    kafka_broker: EmbeddedKafka, cluster_name: str, specs: tuple[TopicSpec, ...]
) -> None:
    """Decisions in two partitions have no order; a topic made by hand with the broker's default must be refused."""
    create(kafka_broker, f"{cluster_name}.decisions", 2, retention_ms="-1", max_message_bytes="4194304")
    with pytest.raises(ConfigurationError, match=r"has partitions = 2; it has to be 1"):
        apply_topics(kafka_broker.bootstrap_servers, cluster_name, specs, {}, least_copies=1)


def test_fewer_partitions_are_advised_not_added(
    kafka_broker: EmbeddedKafka, cluster_name: str, specs: tuple[TopicSpec, ...]
) -> None:
    """Adding partitions moves keys; it is never done in silence."""
    heartbeats = f"{cluster_name}.heartbeats"
    create(kafka_broker, heartbeats, 2, message_timestamp_type="LogAppendTime", segment_ms="3600000")
    report = apply_topics(kafka_broker.bootstrap_servers, cluster_name, specs, {}, least_copies=1)
    assert [sentence for sentence in report.advice if f"topic {heartbeats} has 2 partitions" in sentence]
    metadata = AdminClient({"bootstrap.servers": kafka_broker.bootstrap_servers}).list_topics(heartbeats, timeout=10)
    assert len(metadata.topics[heartbeats].partitions) == 2


@pytest.mark.slow
def test_unreachable_broker_is_worth_a_retry(specs: tuple[TopicSpec, ...]) -> None:
    """Nobody listening may be a broker that starts: the caller has to be able to tell it from a wrong setting."""
    with pytest.raises(LogUnavailableError):
        verify_topics(f"{HOST}:{free_port()}", "any", specs, {})
