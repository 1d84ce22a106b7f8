"""Platforms that run Kafka, and what each of them fixes. More of them are in ``docs/reference/platforms.md``."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from controlplane.kafka_rules.broker_sessions import (
    BROKER_SESSION,
    FETCH_BACKOFF,
    FETCH_WAIT,
    REPLICA_LAG,
    USUAL_SESSION_MS,
)


@dataclass(frozen=True, slots=True)
class Platform:
    """One way to run Kafka.

    Attributes:
        name: as commands take it.
        title: as people call it.
        topic_settings: the settings of topics that may be set; None for all.
        at_creation: those of them that may be set only when a topic is created.
        fixed_topic: the values of settings of topics that the platform fixes.
        fixed_broker_ms: settings of brokers that cannot be set lower than this, in ms.
        where: what to know before settings of Kafka's own topics are changed, as a sentence.
    """

    name: str
    title: str
    topic_settings: frozenset[str] | None = None
    at_creation: frozenset[str] = frozenset()
    fixed_topic: Mapping[str, str] = field(default_factory=dict)
    fixed_broker_ms: Mapping[str, int] = field(default_factory=dict)
    where: str = ""

    def lets_set(self, setting: str) -> bool:
        """Whether a setting of a topic may be set."""
        return self.topic_settings is None or setting in self.topic_settings

    def remedy(self, setting: str, command: str) -> str:
        """What to do about a setting of a topic that breaks a promise, as a sentence.

        Args:
            setting: its name.
            command: the sentence for a setting that can be set.
        """
        if setting in self.at_creation:
            return (
                f"{self.title} lets it be set only when a topic is created: delete the topic, with all that it holds, "
                "and run 'controlplane topics apply'."
            )
        if setting in self.fixed_topic:
            return f"{self.title} fixes it at {self.fixed_topic[setting]}: this does not look like {self.title}."
        if self.lets_set(setting):
            return command
        return f"{self.title} does not let {setting} be set: this promise cannot be kept there."


_SERVERLESS_SETTINGS: Final = frozenset(
    {
        "cleanup.policy",
        "compression.type",
        "max.message.bytes",
        "message.timestamp.difference.max.ms",
        "message.timestamp.type",
        "retention.bytes",
        "retention.ms",
    }
)
_EXPRESS_SETTINGS: Final = _SERVERLESS_SETTINGS - {"message.timestamp.difference.max.ms"} | {
    "delete.retention.ms",
    "max.compaction.lag.ms",
    "message.timestamp.after.max.ms",
    "message.timestamp.before.max.ms",
    "min.compaction.lag.ms",
}
_KEEPS_ITS_OWN: Final = (
    "An existing topic keeps its own settings: those {}, such as transaction.state.log.min.isr, count only when Kafka "
    "creates it."
)
_NOT_OURS: Final = "The platform's operator sets it: ask for it, or use another platform."

_FIXED_BY_MSK_MS: Final = {BROKER_SESSION: USUAL_SESSION_MS, FETCH_BACKOFF: 1_000, FETCH_WAIT: 500}
"""Kafka's defaults of settings that are not among those of a custom configuration."""

PLATFORMS: Final[Mapping[str, Platform]] = {
    platform.name: platform
    for platform in (
        Platform("apache", "Apache Kafka", where=_KEEPS_ITS_OWN.format("of the brokers")),
        Platform("strimzi", "Strimzi", where=_KEEPS_ITS_OWN.format("in the Kafka resource")),
        Platform(
            "msk",
            "Amazon MSK",
            fixed_broker_ms={**_FIXED_BY_MSK_MS, REPLICA_LAG: 10_000},
            where=_KEEPS_ITS_OWN.format("in an MSK configuration"),
        ),
        Platform(
            "msk-express",
            "Amazon MSK with Express brokers",
            topic_settings=_EXPRESS_SETTINGS,
            fixed_topic={"min.insync.replicas": "2", "unclean.leader.election.enable": "false"},
            fixed_broker_ms={**_FIXED_BY_MSK_MS, REPLICA_LAG: 30_000},
            where=_NOT_OURS,
        ),
        Platform(
            "msk-serverless",
            "Amazon MSK Serverless",
            topic_settings=_SERVERLESS_SETTINGS,
            at_creation=frozenset({"cleanup.policy"}),
            fixed_broker_ms={**_FIXED_BY_MSK_MS, REPLICA_LAG: 30_000},
            where=_NOT_OURS,
        ),
    )
}
"""The platforms that ``controlplane topics verify`` knows, by name."""
