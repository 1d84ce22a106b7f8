"""What a real Kafka promises: its topics, Kafka's own ones and its brokers, judged by the topics file and by platform.

Pure functions from what Kafka shows to sentences. A broken promise keeps controllers from running; advice does not.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from controlplane.config import DECISIONS, topic_name
from controlplane.core.cluster.policy import HEARTBEAT_INTERVAL_MS
from controlplane.core.session.node_session import SessionSettings
from controlplane.core.session.silence import least_limit_ms
from controlplane.kafka_rules.broker_sessions import BROKER_SESSION, RECOMMENDED_MS
from controlplane.kafka_rules.platforms import Platform
from controlplane.kafka_rules.topics_file import (
    PARTITIONS,
    ActualTopic,
    Rule,
    SettingSpec,
    TopicSpec,
    advice_not_followed,
    broken_settings,
    every_copy_needed,
    in_sync_promise,
    least_in_sync,
    sentence_on,
)

TRANSACTION_STATE: Final = "__transaction_state"
CONSUMER_OFFSETS: Final = "__consumer_offsets"
INTERNAL_TOPICS: Final = (TRANSACTION_STATE, CONSUMER_OFFSETS)
"""Kafka's own topics. It creates them when the first client needs them."""

_COPIES: Final = 3
_LATE_MS: Final = 1_000
"""Time after the session within which leaders have moved and waiting writes are acknowledged."""
_WHY_STATE: Final = (
    "Kafka keeps there which transactions are committed: without it a decision that was acknowledged can be aborted."
)
_WHY_OFFSETS: Final = "No part of a control plane needs it; consumer groups of others do."


@dataclass(frozen=True, slots=True)
class DescribedKafka:
    """What Kafka shows of itself.

    Attributes:
        brokers: the number of brokers.
        topics: those that were asked for and exist, by full name.
        hidden: why Kafka does not show a topic of :data:`INTERNAL_TOPICS` to this client, by full name.
        broker_settings: the settings of one broker; empty if this client may not read them.
    """

    brokers: int
    topics: Mapping[str, ActualTopic]
    hidden: Mapping[str, str] = field(default_factory=dict)
    broker_settings: Mapping[str, str] = field(default_factory=dict)


class Judgement(NamedTuple):
    """The result of a check, in sentences: promises that are broken, and differences that break none."""

    broken: tuple[str, ...]
    advice: tuple[str, ...]


def judge(
    cluster: str,
    specs: Sequence[TopicSpec],
    described: DescribedKafka,
    platform: Platform | None = None,
    bootstrap_servers: str = "HOST:PORT",
) -> Judgement:
    """Compare what Kafka shows with the topics file, and its own topics and brokers with what the log relies on.

    Args:
        cluster: the cluster's name, the prefix of its topics.
        specs: the topics that it should have; missing ones are left out.
        described: what Kafka shows of them and of :data:`INTERNAL_TOPICS`.
        platform: who runs this Kafka, if that is known.
        bootstrap_servers: where it is, for the commands in the sentences.
    """
    broken: list[str] = []
    advice: list[str] = []
    remedies = _Remedies(platform, bootstrap_servers)
    for spec in specs:
        actual = described.topics.get(topic_name(cluster, spec.name))
        if actual is None:
            continue
        for setting, sentence in broken_settings(spec, actual):
            broken.append(_joined(sentence, remedies.of_ours(actual, setting)))
        settable = spec if platform is None else spec.with_advice_on(platform.lets_set)
        advice += advice_not_followed(settable, actual, described.brokers)
    decisions = described.topics.get(topic_name(cluster, DECISIONS))
    state = described.topics.get(TRANSACTION_STATE)
    if state is not None:
        copies = 1 if decisions is None else min(decisions.replication, _COPIES)
        own = _judge_kafkas_own(state, copies, _WHY_STATE, remedies, "" if platform is None else platform.where)
        broken += own.broken
        advice += (*own.advice, *every_copy_needed(state))
    offsets = described.topics.get(CONSUMER_OFFSETS)
    if offsets is not None:
        own = _judge_kafkas_own(offsets, min(described.brokers, _COPIES), _WHY_OFFSETS, remedies)
        advice += (*own.broken, *own.advice)
    advice += [f"topic {name} could not be checked: {why}" for name, why in sorted(described.hidden.items())]
    advice += broker_advice(described, platform)
    return Judgement(tuple(broken), tuple(advice))


def broker_advice(described: DescribedKafka, platform: Platform | None) -> list[str]:
    """One sentence for each setting of the brokers that makes the death of one of several brokers cost more."""
    if described.brokers <= 1:
        return []
    fixed = {} if platform is None else platform.fixed_broker_ms
    sentences = []
    for name, recommended_ms in RECOMMENDED_MS.items():
        value = described.broker_settings.get(name, "")
        actual_ms = int(value) if value.isdigit() else fixed.get(name)
        if actual_ms is None or actual_ms <= recommended_ms:
            continue
        sentence = f"the brokers have {name} = {actual_ms}; at most {recommended_ms} is advised"
        if name in fixed and platform is not None:
            sentence += f", but {platform.title} allows no less than {fixed[name]}"
        if name == BROKER_SESSION:
            sentence += (
                ". When a broker dies, Kafka acknowledges no write to a partition with a copy on it until that session "
                f"has ended. A silence limit of {bearing_silence_limit_ms(actual_ms)} ms keeps nodes from refusing "
                "requests meanwhile"
            )
        sentences.append(sentence)
    if not described.broker_settings and BROKER_SESSION not in fixed:
        sentences.append("the settings of the brokers could not be read: compare them with docs/reference/platforms.md")
    return sentences


def bearing_silence_limit_ms(session_ms: int) -> int:
    """The least silence limit at which the death of one of several brokers makes no node refuse requests.

    The last acknowledged heartbeat of a node was sent up to one interval before the death, the next one is acknowledged
    when the broker's session has ended and leaders have moved, and a node stops a margin before the limit
    (:mod:`controlplane.core.session.silence`).
    """
    silent_ms = session_ms + HEARTBEAT_INTERVAL_MS + _LATE_MS
    return -(-least_limit_ms(silent_ms, SessionSettings().self_fencing_margin_ms) // 100) * 100


def _promises_of_kafkas_own(copies: int, why: str) -> tuple[SettingSpec, ...]:
    """The settings that an internal topic with so many copies has to have."""
    return (
        in_sync_promise(least_in_sync(copies), why),
        SettingSpec("unclean.leader.election.enable", "false", Rule.EXACTLY, 0, why),
    )


def _judge_kafkas_own(actual: ActualTopic, copies: int, why: str, remedies: "_Remedies", where: str = "") -> Judgement:
    """What an internal topic lacks to be as safe as a topic with so many copies, and what of it Kafka does not show.

    A setting that is not shown breaks nothing: Kafka made the topic and gives each of its settings a value.

    Args:
        actual: the topic.
        copies: the number of copies that it has to have.
        why: what each of its promises is for.
        remedies: what to do about a broken one.
        where: what to know before.
    """
    broken, unknown = [], []
    if actual.replication < copies:
        has = f"topic {actual.name} has {actual.copies_named}; it has to have {copies}. {why}"
        broken.append(_joined(has, where))
    for setting in _promises_of_kafkas_own(actual.replication, why):
        value = actual.value_of(setting.name)
        if value is None:
            unknown.append(f"topic {actual.name} could not be checked: Kafka does not show its {setting.name}")
        elif not setting.keeps(value):
            broken.append(_joined(sentence_on(actual, setting), where, remedies.of_kafkas_own(actual, setting)))
    return Judgement(tuple(broken), tuple(unknown))


@dataclass(frozen=True, slots=True)
class _Remedies:
    """What to do about a setting of a topic that breaks a promise, as sentences; empty where nothing can be said.

    Attributes:
        platform: who runs this Kafka, if that is known.
        bootstrap_servers: where it is.
    """

    platform: Platform | None
    bootstrap_servers: str

    def of_ours(self, actual: ActualTopic, setting: SettingSpec) -> str:
        """For a topic of the topics file. The number of partitions cannot be set."""
        if setting.name == PARTITIONS:
            return ""
        command = self._command(actual, setting)
        return command if self.platform is None else self.platform.remedy(setting.name, command)

    def of_kafkas_own(self, actual: ActualTopic, setting: SettingSpec) -> str:
        """For a topic of :data:`INTERNAL_TOPICS`, which cannot be created anew."""
        is_settable = self.platform is None or self.platform.lets_set(setting.name)
        return self._command(actual, setting) if is_settable else ""

    def _command(self, actual: ActualTopic, setting: SettingSpec) -> str:
        # The last word of its line, and without a full stop: it is copied from there.
        return (
            f"Set it: kafka-configs.sh --bootstrap-server {self.bootstrap_servers} --alter --entity-type topics "
            f"--entity-name {actual.name} --add-config {setting.name}={setting.value}"
        )


def _joined(*sentences: str) -> str:
    return " ".join(filter(None, sentences))
