"""The topics file: what it must say, and how real topics are judged by it."""

import dataclasses

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from controlplane import config
from controlplane.errors import ConfigurationError
from controlplane.kafka_rules.topics_file import (
    MIN_INSYNC_REPLICAS,
    ActualTopic,
    Rule,
    SettingSpec,
    TopicSpec,
    advice_not_followed,
    broken_settings,
    parse_topics,
)
from controlplane.resources import resource_path

INPUT_TOPICS = (config.HEARTBEATS, config.LOAD_REPORTS, config.MEMBERSHIP, config.INTENTS, config.CANDIDATES)
ALL_TOPICS = (*INPUT_TOPICS, config.DECISIONS, config.ROUTING_TABLE, config.SNAPSHOTS, config.DEAD_LETTERS)

SMALL = """
format = 1
[topics.log]
why = "A log."
partitions = 1
partitions_promise = "exactly"
partitions_why = "One order."
replication = 3
min_insync_replicas = 2
[topics.log.settings]
"cleanup.policy" = { value = "delete", promise = "exactly", why = "Keep all." }
"retention.ms" = { value = 200, promise = "at_least", least = 100, why = "Readers are slow." }
"segment.ms" = { value = 50, why = "Small files." }
"""


def broken_promises(spec: TopicSpec, actual: ActualTopic) -> tuple[str, ...]:
    """The sentences alone."""
    return tuple(sentence for _, sentence in broken_settings(spec, actual))


def project_specs() -> dict[str, TopicSpec]:
    """The topics of ``infra/kafka/topics.toml`` by name."""
    text = resource_path("infra/kafka/topics.toml").read_text(encoding="utf-8")
    return {spec.name: spec for spec in parse_topics(text, "topics.toml")}


SPECS = project_specs()
SMALL_SPEC = parse_topics(SMALL, "small.toml")[0]


def as_created(spec: TopicSpec, brokers: int) -> ActualTopic:
    """The topic as Kafka shows it after we created it."""
    replication = spec.replication_for(brokers)
    return ActualTopic(f"demo.{spec.name}", int(spec.partitions.value), replication, spec.settings_for(brokers))


def with_setting(actual: ActualTopic, name: str, value: str | None) -> ActualTopic:
    """The same topic with one setting changed, or without it."""
    settings = {key: kept for key, kept in actual.settings.items() if key != name}
    return dataclasses.replace(actual, settings=settings if value is None else {**settings, name: value})


def test_project_file_names_every_topic() -> None:
    """A topic that the code uses and the file forgets would never be created."""
    assert set(SPECS) == set(ALL_TOPICS)


def test_promises_that_the_design_rests_on() -> None:
    """These are relied on by the leader's, the readers' and the pipeline's code; loosening one is a design change."""

    def promise(topic: str, name: str) -> tuple[str, str]:
        setting = next(setting for setting in SPECS[topic].settings if setting.name == name)
        return setting.rule.value, setting.value

    assert {promise(topic, "message.timestamp.type") for topic in INPUT_TOPICS} == {("exactly", "LogAppendTime")}
    assert promise("decisions", "cleanup.policy") == ("exactly", "delete")
    assert promise("decisions", "retention.ms") == ("exactly", "-1")
    assert promise("decisions", "retention.bytes") == ("exactly", "-1")
    assert promise("routing-table", "cleanup.policy") == ("exactly", "compact")
    assert promise("routing-table", "min.compaction.lag.ms") == ("at_least", "3600000")
    assert promise("snapshots", "cleanup.policy") == ("exactly", "compact")
    ordered = {name for name, spec in SPECS.items() if spec.partitions.rule is Rule.EXACTLY}
    assert ordered == set(ALL_TOPICS) - {"heartbeats", "load-reports", "dead-letters"}
    assert {spec.partitions.value for name, spec in SPECS.items() if name in ordered} == {"1"}


@pytest.mark.parametrize("brokers", [1, 2, 3, 5])
@pytest.mark.parametrize("name", ALL_TOPICS)
def test_created_topic_needs_no_change(name: str, brokers: int) -> None:
    """What we create has to pass our own check on any number of brokers."""
    actual = as_created(SPECS[name], brokers)
    assert broken_promises(SPECS[name], actual) == ()
    advised = (
        ()
        if brokers >= 3
        else (
            f"topic {actual.name} has {brokers} {'copy' if brokers == 1 else 'copies'}; 3 are advised, and Kafka shows",
        )
    )
    assert len(advice_not_followed(SPECS[name], actual, brokers)) == len(advised)
    for sentence, begins in zip(advice_not_followed(SPECS[name], actual, brokers), advised, strict=True):
        assert sentence.startswith(begins)


@pytest.mark.parametrize(("replication", "needed"), [(1, 1), (2, 1), (3, 2), (5, 2)])
def test_one_broker_may_be_missing(replication: int, needed: int) -> None:
    """Acknowledged records must survive one broker, and one missing broker must not stop the writers."""
    assert SMALL_SPEC.min_insync_for(replication) == needed
    actual = dataclasses.replace(as_created(SMALL_SPEC, 5), replication=replication)
    assert broken_promises(SMALL_SPEC, with_setting(actual, MIN_INSYNC_REPLICAS, str(needed))) == ()
    if needed > 1:
        broken = broken_promises(SMALL_SPEC, with_setting(actual, MIN_INSYNC_REPLICAS, str(needed - 1)))
        assert [sentence.split(";")[0] for sentence in broken] == ["topic demo.log has min.insync.replicas = 1"]


PROMISES = [
    (name, setting) for name, spec in sorted(SPECS.items()) for setting in spec.settings if setting.rule != Rule.ADVICE
]


@pytest.mark.parametrize(("name", "setting"), PROMISES, ids=lambda value: getattr(value, "name", value))
def test_each_promise_can_be_broken(name: str, setting: SettingSpec) -> None:
    """A check that passes whatever the topic says would let a controller lead on a topic that loses its log."""
    created = as_created(SPECS[name], 3)
    worse = "other" if setting.rule is Rule.EXACTLY else str(setting.least - 1)
    for actual in (with_setting(created, setting.name, worse), with_setting(created, setting.name, None)):
        (sentence,) = broken_promises(SPECS[name], actual)
        assert f"topic demo.{name} has" in sentence
        assert setting.name in sentence
        assert setting.why in sentence


@example(least=5, actual=-1)
@example(least=5, actual=5)
@example(least=5, actual=4)
@given(least=st.integers(0, 10**6), actual=st.integers(-1, 2 * 10**6))
def test_at_least_means_at_least(least: int, actual: int) -> None:
    """The bound itself keeps the promise, and -1 is Kafka's word for without limit."""
    setting = SettingSpec("retention.ms", str(least), Rule.AT_LEAST, least, "Why.")
    assert setting.keeps(str(actual)) == (actual == -1 or actual >= least)
    unlimited = SettingSpec("retention.ms", "-1", Rule.AT_LEAST, -1, "Why.")
    assert unlimited.keeps(str(actual)) == (actual == -1)


def test_advice_is_reported_and_breaks_nothing() -> None:
    """Operators may tune what no code relies on, and still see where they differ."""
    actual = dataclasses.replace(with_setting(as_created(SMALL_SPEC, 3), "segment.ms", "60"), replication=2)
    actual = with_setting(actual, MIN_INSYNC_REPLICAS, "1")
    assert broken_promises(SMALL_SPEC, actual) == ()
    assert advice_not_followed(SMALL_SPEC, actual, 3) == (
        "topic demo.log has segment.ms = 60; 50 is advised. Small files.",
        "topic demo.log has 2 copies; 3 are advised, and Kafka shows 3 brokers",
    )


@pytest.mark.parametrize(
    ("copies", "insync", "advised"),
    [(1, 1, None), (1, 2, None), (2, 1, None), (2, 2, 1), (3, 2, None), (3, 3, 2), (3, 4, 2), (5, 4, None), (5, 5, 2)],
)
def test_a_topic_that_needs_every_copy_keeps_its_promises_and_is_mentioned(
    copies: int, insync: int, advised: int | None
) -> None:
    """It loses nothing, but the death of any one broker stops all writes to it, and with them all decisions."""
    created = dataclasses.replace(as_created(SMALL_SPEC, 3), replication=copies)
    actual = with_setting(created, MIN_INSYNC_REPLICAS, str(insync))
    assert broken_promises(SMALL_SPEC, actual) == ()
    about = [each for each in advice_not_followed(SMALL_SPEC, actual, 5) if MIN_INSYNC_REPLICAS in each]
    start = f"topic demo.log has min.insync.replicas = {insync} of {copies} copies: no broker may be missing; "
    assert about == ([] if advised is None else [f"{start}{advised} is advised"])


def test_partitions_are_judged_by_their_own_rule() -> None:
    """Two partitions break an order that one keeps; fewer than advised are only mentioned."""
    (sentence,) = broken_promises(SMALL_SPEC, dataclasses.replace(as_created(SMALL_SPEC, 3), partitions=2))
    assert sentence == "topic demo.log has partitions = 2; it has to be 1. One order."
    few = dataclasses.replace(as_created(SPECS["heartbeats"], 3), partitions=2)
    assert broken_promises(SPECS["heartbeats"], few) == ()
    assert advice_not_followed(SPECS["heartbeats"], few, 3) == (
        "topic demo.heartbeats has 2 partitions; 8 are advised, but none are added",
    )


@pytest.mark.parametrize(
    ("before", "after", "complaint"),
    [
        ("format = 1", "format = 2", "small.toml has format 2; this version reads format 1"),
        ("format = 1", "format 1", "small.toml is not a TOML file"),
        ("partitions = 1", 'partitions = "one"', "topic log: partitions is 'one'; write a whole number"),
        ("partitions = 1", "partitions = true", "topic log: partitions is True; write a whole number"),
        ("replication = 3", "", "topic log: replication is None"),
        ('why = "A log."', "", "topic log: why is None; write a sentence"),
        ('why = "A log."', 'why = "A log."\nowner = "me"', "topic log: 'owner' is unknown"),
        ("[topics.log.settings]", "[topics.log.setings]", "settings"),
        ('"exactly", why = "Keep', '"exact", why = "Keep', "setting cleanup.policy: promise is 'exact'"),
        ("value = 50,", "value = 0.5,", "setting segment.ms: value is 0.5"),
        ("value = 50,", "", "setting segment.ms: value is None"),
        ("least = 100,", "leest = 100,", "setting retention.ms: 'leest' is unknown"),
        ('value = 200, promise = "at_least", least = 100', 'value = "much", promise = "at_least"', "least is 'much'"),
    ],
)
def test_mistakes_are_named(before: str, after: str, complaint: str) -> None:
    """A setting that is misspelt must not be dropped in silence: it might be the one that keeps the log."""
    assert before in SMALL
    with pytest.raises(ConfigurationError) as refused:
        parse_topics(SMALL.replace(before, after, 1), "small.toml")
    assert complaint in str(refused.value)
