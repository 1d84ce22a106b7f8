"""What is said of a real Kafka's own topics, its brokers and its platform."""

import dataclasses
from collections.abc import Mapping
from types import MappingProxyType

import pytest

from controlplane.bootstrap.topics import topic_specs
from controlplane.kafka_rules.broker_sessions import RECOMMENDED_MS
from controlplane.kafka_rules.platforms import PLATFORMS
from controlplane.kafka_rules.promises import (
    CONSUMER_OFFSETS,
    TRANSACTION_STATE,
    DescribedKafka,
    bearing_silence_limit_ms,
    judge,
)
from controlplane.kafka_rules.topics_file import ActualTopic

_AT_CREATION = (
    "{} lets it be set only when a topic is created: delete the topic, with all that it holds, and run 'controlplane "
    "topics apply'."
)
SPECS = topic_specs()
SAFE = {"min.insync.replicas": "2", "unclean.leader.election.enable": "false"}
RECOMMENDED = {name: str(value_ms) for name, value_ms in RECOMMENDED_MS.items()}
USUAL = {
    "broker.session.timeout.ms": "9000",
    "broker.heartbeat.interval.ms": "2000",
    "replica.lag.time.max.ms": "30000",
}


def described(brokers: int = 3, broker_settings: dict[str, str] = RECOMMENDED) -> DescribedKafka:
    """A Kafka whose topics were created by us."""
    topics = {
        f"demo.{spec.name}": ActualTopic(
            f"demo.{spec.name}",
            int(spec.partitions.value),
            spec.replication_for(brokers),
            spec.settings_for(brokers),
        )
        for spec in SPECS
    }
    return DescribedKafka(brokers, topics, broker_settings=broker_settings)


def own_topic(
    name: str, copies: int, changed: Mapping[str, str] = MappingProxyType({}), brokers: int = 3
) -> DescribedKafka:
    """A Kafka that has one topic of its own."""
    settings = {**SAFE, **changed}
    whole = described(brokers)
    return dataclasses.replace(whole, topics={**whole.topics, name: ActualTopic(name, 50, copies, settings)})


def test_topics_of_kafka_that_do_not_exist_yet_break_nothing() -> None:
    """Kafka creates them when the first client needs them, which may be the first leader."""
    assert judge("demo", SPECS, described()) == ((), ())
    assert judge("demo", SPECS, own_topic(TRANSACTION_STATE, 3)) == ((), ())


@pytest.mark.parametrize(
    ("copies", "changed", "sentence"),
    [
        (1, {"min.insync.replicas": "1"}, "has 1 copy; it has to have 3"),
        (3, {"min.insync.replicas": "1"}, "has min.insync.replicas = 1; it has to be at least 2"),
        (
            3,
            {"unclean.leader.election.enable": "true"},
            "has unclean.leader.election.enable = true; it has to be false",
        ),
    ],
)
def test_a_commit_that_kafka_may_forget_breaks_a_promise(copies: int, changed: dict[str, str], sentence: str) -> None:
    """Acknowledged decisions are as safe as the topic that says which transactions are committed."""
    (broken,) = judge("demo", SPECS, own_topic(TRANSACTION_STATE, copies, changed)).broken
    assert broken.startswith(f"topic {TRANSACTION_STATE} {sentence}.")
    report = judge("demo", SPECS, own_topic(CONSUMER_OFFSETS, copies, changed))
    assert report.broken == ()
    assert [each.split(";")[0] for each in report.advice] == [
        f"topic {CONSUMER_OFFSETS} {sentence.split(';', maxsplit=1)[0]}"
    ]


@pytest.mark.parametrize(("name", "keeps_controllers"), [(TRANSACTION_STATE, True), (CONSUMER_OFFSETS, False)])
@pytest.mark.parametrize(
    ("setting", "value", "wanted"),
    [("min.insync.replicas", "two", "at least 2"), ("unclean.leader.election.enable", "yes", "false")],
)
def test_a_value_that_says_neither_is_named_as_it_is(
    name: str, keeps_controllers: bool, setting: str, value: str, wanted: str
) -> None:
    """Kafka's own topics are judged by the same rules and in the same words as ours."""
    broken, advice = judge("demo", SPECS, own_topic(name, 3, {setting: value}))
    (sentence,) = broken if keeps_controllers else advice
    assert sentence.startswith(f"topic {name} has {setting} = {value}; it has to be {wanted}. ")


@pytest.mark.parametrize("name", [TRANSACTION_STATE, CONSUMER_OFFSETS])
@pytest.mark.parametrize("setting", sorted(SAFE))
def test_a_setting_that_kafka_does_not_show_is_not_taken_for_a_safe_one(name: str, setting: str) -> None:
    """Nothing is proven, so controllers go on, and the answer says what was not checked."""
    whole = own_topic(name, 3)
    shown = {key: value for key, value in SAFE.items() if key != setting}
    topics = {**whole.topics, name: dataclasses.replace(whole.topics[name], settings=shown)}
    broken, advice = judge("demo", SPECS, dataclasses.replace(whole, topics=topics))
    assert broken == ()
    assert advice == (f"topic {name} could not be checked: Kafka does not show its {setting}",)


def test_transactions_that_need_every_copy_are_mentioned() -> None:
    """Without that topic no transaction commits, so a dead broker stops all decisions."""
    assert judge("demo", SPECS, own_topic(TRANSACTION_STATE, 3, {"min.insync.replicas": "3"})) == (
        (),
        (f"topic {TRANSACTION_STATE} has min.insync.replicas = 3 of 3 copies: no broker may be missing; 2 is advised",),
    )


def test_one_copy_is_enough_where_decisions_have_one() -> None:
    """A cluster that was allowed fewer copies may have a Kafka that has fewer too."""
    one = own_topic(TRANSACTION_STATE, 1, {"min.insync.replicas": "1"}, 1)
    assert judge("demo", SPECS, one).broken == ()


def test_what_may_not_be_described_is_said() -> None:
    """A promise that nobody has checked must not look like one that is kept."""
    hidden = dataclasses.replace(described(), hidden={TRANSACTION_STATE: "User:c1 may not describe it"})
    assert judge("demo", SPECS, hidden).advice == (
        f"topic {TRANSACTION_STATE} could not be checked: User:c1 may not describe it",
    )


def test_settings_of_brokers_are_advised_only_where_there_are_several() -> None:
    """With one broker nobody waits for another one's death."""
    assert judge("demo", SPECS, described(1, USUAL)).advice[-1].startswith("topic demo.dead-letters has 1 copy")
    session, heartbeat, lag = judge("demo", SPECS, described(3, USUAL)).advice
    assert session.startswith("the brokers have broker.session.timeout.ms = 9000; at most 3000 is advised. When")
    assert "A silence limit of 12400 ms keeps nodes from refusing" in session
    assert heartbeat == "the brokers have broker.heartbeat.interval.ms = 2000; at most 500 is advised"
    assert lag == "the brokers have replica.lag.time.max.ms = 30000; at most 3000 is advised"
    (unread,) = judge("demo", SPECS, described(3, {})).advice
    assert unread.startswith("the settings of the brokers could not be read")


@pytest.mark.parametrize(("session_ms", "limit_ms"), [(1_000, 3_500), (3_000, 5_700), (9_000, 12_400)])
def test_a_silence_limit_bears_the_session_of_a_dead_broker(session_ms: int, limit_ms: int) -> None:
    """A node's margin is 500 ms or a ninth; what is left has to last from a heartbeat before the death to one after."""
    assert bearing_silence_limit_ms(session_ms) == limit_ms
    for limit, is_enough in ((limit_ms, True), (limit_ms - 100, False)):
        margin_ms = max(500, limit / 9)
        assert (limit - margin_ms >= session_ms + 2_000) is is_enough


def test_a_platform_that_fixes_a_broken_promise_is_named() -> None:
    """MSK Serverless lets few settings be set: the one that it lacks is named, and its other advice is not given."""
    weak = described()
    table = weak.topics["demo.routing-table"]
    settings = {**table.settings, "min.compaction.lag.ms": "0", "segment.ms": "604800000"}
    topics = {**weak.topics, table.name: dataclasses.replace(table, settings=settings)}
    kafka = dataclasses.replace(weak, topics=topics, broker_settings={})
    (broken,) = judge("demo", SPECS, kafka, PLATFORMS["msk-serverless"]).broken
    assert broken.endswith(
        "Amazon MSK Serverless does not let min.compaction.lag.ms be set: this promise cannot be kept there."
    )
    advice = judge("demo", SPECS, kafka, PLATFORMS["msk-serverless"]).advice
    assert not any("segment.ms" in each for each in advice)
    assert any(
        "= 9000; at most 3000 is advised, but Amazon MSK Serverless allows no less than 9000" in each for each in advice
    )
    shown = judge("demo", SPECS, described(3, {**USUAL, "broker.session.timeout.ms": "12000"}), PLATFORMS["msk"]).advice
    assert any("= 12000; at most 3000 is advised, but Amazon MSK allows no less than 9000" in each for each in shown)


def with_setting(topic: str, name: str, value: str) -> DescribedKafka:
    """A Kafka one of whose topics has another value of a setting."""
    whole = described()
    actual = whole.topics[topic]
    changed = dataclasses.replace(actual, settings={**actual.settings, name: value})
    return dataclasses.replace(whole, topics={**whole.topics, topic: changed})


def alter(servers: str, topic: str, change: str) -> str:
    """The command that sets a setting of a topic."""
    return (
        f"Set it: kafka-configs.sh --bootstrap-server {servers} --alter --entity-type topics --entity-name {topic} "
        f"--add-config {change}"
    )


@pytest.mark.parametrize(
    ("topic", "name", "value", "right"),
    [
        ("demo.heartbeats", "message.timestamp.type", "CreateTime", "LogAppendTime"),
        ("demo.heartbeats", "retention.ms", "1", "21600000"),
        ("demo.decisions", "min.insync.replicas", "1", "2"),
        ("demo.decisions", "retention.ms", "1000", "-1"),
    ],
)
def test_a_setting_that_can_be_set_comes_with_the_command(topic: str, name: str, value: str, right: str) -> None:
    """It sets what a new topic would have, and can be copied from the end of its line."""
    kafka = with_setting(topic, name, value)
    for platform in (None, PLATFORMS["apache"], PLATFORMS["strimzi"], PLATFORMS["msk"]):
        (broken,) = judge("demo", SPECS, kafka, platform, "k1:9092,k2:9092").broken
        assert broken.startswith(f"topic {topic} has {name} = {value}; it has to be ")
        assert broken.endswith(f". {alter('k1:9092,k2:9092', topic, f'{name}={right}')}")
    (unaddressed,) = judge("demo", SPECS, kafka).broken
    assert unaddressed.endswith(alter("HOST:PORT", topic, f"{name}={right}"))


@pytest.mark.parametrize("platform", [None, "apache", "msk-serverless"])
def test_the_number_of_partitions_has_no_remedy(platform: str | None) -> None:
    """Kafka takes no partition away, so neither a command nor a platform helps."""
    whole = described()
    two = dataclasses.replace(whole.topics["demo.decisions"], partitions=2)
    kafka = dataclasses.replace(whole, topics={**whole.topics, two.name: two})
    (broken,) = judge("demo", SPECS, kafka, None if platform is None else PLATFORMS[platform]).broken
    assert broken.startswith("topic demo.decisions has partitions = 2; it has to be 1. ")
    assert broken.endswith("the parts of a decision follow each other.")


@pytest.mark.parametrize(
    ("platform", "name", "value", "remedy"),
    [
        ("msk-serverless", "cleanup.policy", "compact", _AT_CREATION),
        ("msk-express", "min.insync.replicas", "1", "{0} fixes it at 2: this does not look like {0}."),
        (
            "msk-express",
            "unclean.leader.election.enable",
            "true",
            "{0} fixes it at false: this does not look like {0}.",
        ),
    ],
)
def test_a_setting_that_no_command_changes_comes_without_one(platform: str, name: str, value: str, remedy: str) -> None:
    """What is set at creation only, or fixed at a safe value, is not what cannot be kept there."""
    (broken,) = judge("demo", SPECS, with_setting("demo.decisions", name, value), PLATFORMS[platform]).broken
    assert broken.endswith(f". {remedy.format(PLATFORMS[platform].title)}")


@pytest.mark.parametrize(
    ("platform", "where"),
    [("apache", "of the brokers"), ("strimzi", "in the Kafka resource"), ("msk", "in an MSK configuration")],
)
def test_an_existing_topic_of_kafkas_own_is_not_changed_by_settings_of_brokers(platform: str, where: str) -> None:
    """Kafka gives it settings of its own when it creates it; a broker's default does not reach them any more."""
    unclean = own_topic(TRANSACTION_STATE, 3, {"unclean.leader.election.enable": "true"})
    known = f"those {where}, such as transaction.state.log.min.isr, count only when Kafka creates it."
    command = alter("k:1", TRANSACTION_STATE, "unclean.leader.election.enable=false")
    (broken,) = judge("demo", SPECS, unclean, PLATFORMS[platform], "k:1").broken
    assert broken.endswith(f"can be aborted. An existing topic keeps its own settings: {known} {command}")
    (broken,) = judge("demo", SPECS, unclean, None, "k:1").broken
    assert broken.endswith(f"can be aborted. {command}")
    few = own_topic(TRANSACTION_STATE, 2, {"min.insync.replicas": "1"})
    (broken,) = judge("demo", SPECS, few, PLATFORMS[platform]).broken
    assert broken.endswith(known)


@pytest.mark.parametrize("platform", ["msk-express", "msk-serverless"])
def test_a_topic_of_kafkas_own_that_cannot_be_set_comes_without_a_command(platform: str) -> None:
    """Express and Serverless let no setting be set that makes these topics safe."""
    unclean = {"unclean.leader.election.enable": "true"}
    (broken,) = judge("demo", SPECS, own_topic(TRANSACTION_STATE, 3, unclean), PLATFORMS[platform]).broken
    assert broken.endswith("The platform's operator sets it: ask for it, or use another platform.")
    offsets = judge("demo", SPECS, own_topic(CONSUMER_OFFSETS, 3, unclean), PLATFORMS[platform]).advice
    assert [each for each in offsets if "kafka-configs" in each] == []
    (advice,) = judge("demo", SPECS, own_topic(CONSUMER_OFFSETS, 3, unclean), PLATFORMS["msk"], "k:1").advice
    assert advice.endswith(f"of others do. {alter('k:1', CONSUMER_OFFSETS, 'unclean.leader.election.enable=false')}")
