"""The topics file, ``infra/kafka/topics.toml``: required settings of topics, and the check of real topics against them.

Pure functions from text to values and sentences. A *promise* is a setting on which code relies: a controller refuses to
start when it is broken. *Advice* is only reported. The file itself explains its format.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import Enum

from controlplane.errors import ConfigurationError
from controlplane.kafka_rules.toml_document import (
    Table,
    integer_in,
    parse_document,
    refuse_unknown,
    sentence_in,
    table_in,
)

FORMAT = 1
"""The only known format of the file."""

PARTITIONS = "partitions"
MIN_INSYNC_REPLICAS = "min.insync.replicas"

_NO_LIMIT = -1
_TOPIC_KEYS = frozenset(
    {
        "why",
        "partitions",
        "partitions_promise",
        "partitions_least",
        "partitions_why",
        "replication",
        "min_insync_replicas",
        "settings",
    }
)
_SETTING_KEYS = frozenset({"value", "promise", "least", "why"})


class Rule(Enum):
    """How the value of a real topic is compared with the file's."""

    EXACTLY = "exactly"
    AT_LEAST = "at_least"
    ADVICE = "advice"


@dataclass(frozen=True, slots=True)
class SettingSpec:
    """One setting of a topic.

    Attributes:
        name: Kafka's name, such as ``retention.ms``; ``partitions`` for their number.
        value: the value for a new topic, as Kafka writes it.
        rule: promise (exactly, at least) or advice.
        least: the least value that keeps an at-least promise; -1 means without limit.
        why: what breaks, or gets worse, without it.
    """

    name: str
    value: str
    rule: Rule
    least: int
    why: str

    def keeps(self, actual: str | None) -> bool:
        """Whether an actual value satisfies the rule (for advice: equals the file's value); None never does."""
        if actual is None:
            return False
        if self.rule is not Rule.AT_LEAST:
            return actual == self.value
        if not actual.lstrip("-").isdigit():
            return False
        number = int(actual)
        return number == _NO_LIMIT or (self.least != _NO_LIMIT and number >= self.least)


@dataclass(frozen=True, slots=True)
class TopicSpec:
    """One topic of the file.

    Attributes:
        name: without the cluster's prefix.
        why: what the topic is for.
        partitions: their number, as a setting; its value is that of a new topic.
        replication: number of copies in production.
        min_insync_replicas: number of copies that acknowledge with that replication, see :meth:`min_insync_for`.
        settings: sorted by name.
    """

    name: str
    why: str
    partitions: SettingSpec
    replication: int
    min_insync_replicas: int
    settings: tuple[SettingSpec, ...]

    def replication_for(self, brokers: int) -> int:
        """The number of copies of a new topic on this many brokers."""
        return max(1, min(self.replication, brokers))

    def min_insync_for(self, replication: int) -> int:
        """See :func:`least_in_sync`."""
        return least_in_sync(replication, self.min_insync_replicas)

    def with_advice_on(self, is_settable: Callable[[str], bool]) -> "TopicSpec":
        """The topic with all promises, and with advice only on the settings that can be set."""
        kept = (each for each in self.settings if each.rule is not Rule.ADVICE or is_settable(each.name))
        return replace(self, settings=tuple(kept))

    def settings_for(self, brokers: int) -> dict[str, str]:
        """Every setting of a new topic on this many brokers, under Kafka's names."""
        settings = {setting.name: setting.value for setting in self.settings}
        return {**settings, MIN_INSYNC_REPLICAS: str(self.min_insync_for(self.replication_for(brokers)))}


@dataclass(frozen=True, slots=True)
class ActualTopic:
    """A topic as a broker describes it.

    Attributes:
        name: its full name in Kafka.
        partitions: their number.
        replication: number of copies of the partition that has the fewest.
        settings: all of them under Kafka's names, defaults included.
    """

    name: str
    partitions: int
    replication: int
    settings: Mapping[str, str]

    @property
    def copies_named(self) -> str:
        """The number of copies for a sentence."""
        return f"{self.replication} {'copy' if self.replication == 1 else 'copies'}"

    def value_of(self, setting: str) -> str | None:
        """The value of a setting, or the number of partitions; None if Kafka does not show it."""
        return str(self.partitions) if setting == PARTITIONS else self.settings.get(setting)


def parse_topics(text: str, source: str) -> tuple[TopicSpec, ...]:
    """Read a topics file.

    Args:
        text: its content.
        source: its name, for error messages.

    Returns:
        The topics in the file's order.

    Raises:
        ConfigurationError: the text is not valid TOML, or contains something that the format does not define.
    """
    document = parse_document(text, source, FORMAT)
    topics = table_in(document, "topics", source)
    return tuple(_topic(name, table_in(topics, name, f"{source}, topics"), source) for name in topics)


def least_in_sync(copies: int, wanted: int = 2) -> int:
    """The number of copies that have to acknowledge a write: as many as wanted, but one broker may always be missing.

    Args:
        copies: how many there are.
        wanted: how many have to acknowledge where there are enough.
    """
    return max(1, min(wanted, copies - 1))


def broken_settings(spec: TopicSpec, actual: ActualTopic) -> tuple[tuple[SettingSpec, str], ...]:
    """One sentence for each promise that the topic breaks, with the setting.

    The sentence says topic, setting, value, the required value, and why.
    """
    return tuple(
        (setting, sentence_on(actual, setting))
        for setting in promises_of(spec, actual.replication)
        if not setting.keeps(actual.value_of(setting.name))
    )


def advice_not_followed(spec: TopicSpec, actual: ActualTopic, brokers: int) -> tuple[str, ...]:
    """One sentence for each difference between the topic and the file that breaks no promise."""
    sentences = [
        sentence_on(actual, setting)
        for setting in spec.settings
        if setting.rule is Rule.ADVICE and not setting.keeps(actual.value_of(setting.name))
    ]
    if actual.replication < spec.replication:
        sentences.append(
            f"topic {actual.name} has {actual.copies_named}; {spec.replication} are advised, and Kafka shows "
            f"{brokers} broker{'' if brokers == 1 else 's'}"
        )
    sentences += every_copy_needed(actual, spec.min_insync_replicas)
    if spec.partitions.rule is Rule.AT_LEAST and spec.partitions.keeps(str(actual.partitions)):
        advised = int(spec.partitions.value)
        if actual.partitions < advised:
            # Never added by us: a key's later records would go to another partition than its earlier ones.
            sentences.append(
                f"topic {actual.name} has {actual.partitions} partitions; {advised} are advised, but none are added"
            )
    return tuple(sentences)


def every_copy_needed(actual: ActualTopic, wanted: int = 2) -> tuple[str, ...]:
    """A sentence if a topic with several copies acknowledges a write only when all of them have it.

    Args:
        actual: the topic.
        wanted: how many have to acknowledge where there are enough, see :func:`least_in_sync`.
    """
    insync = actual.value_of(MIN_INSYNC_REPLICAS) or ""
    if actual.replication <= 1 or not insync.isdigit() or int(insync) < actual.replication:
        return ()
    advised = least_in_sync(actual.replication, wanted)
    has = f"topic {actual.name} has {MIN_INSYNC_REPLICAS} = {insync} of {actual.copies_named}"
    return (f"{has}: no broker may be missing; {advised} is advised",)


def promises_of(spec: TopicSpec, replication: int) -> tuple[SettingSpec, ...]:
    """The settings that a topic with so many copies has to have."""
    why = "An acknowledged record must not be lost with one broker."
    insync = in_sync_promise(spec.min_insync_for(replication), why)
    named = tuple(setting for setting in spec.settings if setting.rule is not Rule.ADVICE)
    return (spec.partitions, insync, *named)


def in_sync_promise(needed: int, why: str) -> SettingSpec:
    """The promise that so many copies have to acknowledge a write."""
    return SettingSpec(MIN_INSYNC_REPLICAS, str(needed), Rule.AT_LEAST, needed, why)


def sentence_on(actual: ActualTopic, setting: SettingSpec) -> str:
    """A sentence on a setting that is not as it has to be: topic, setting, value, the required value, and why."""
    value = actual.value_of(setting.name)
    has = f"has no {setting.name}" if value is None else f"has {setting.name} = {value}"
    wanted = {
        Rule.EXACTLY: f"it has to be {setting.value}",
        Rule.AT_LEAST: f"it has to be at least {setting.least}"
        if setting.least != _NO_LIMIT
        else "it has to be without limit (-1)",
        Rule.ADVICE: f"{setting.value} is advised",
    }[setting.rule]
    return f"topic {actual.name} {has}; {wanted}. {setting.why}"


def _topic(name: str, table: Table, source: str) -> TopicSpec:
    where = f"{source}, topic {name}"
    refuse_unknown(table, _TOPIC_KEYS, where)
    partitions = integer_in(table, "partitions", where)
    settings = table_in(table, "settings", where)
    return TopicSpec(
        name=name,
        why=sentence_in(table, "why", where),
        partitions=_setting_spec(
            PARTITIONS,
            {
                "value": partitions,
                "promise": table.get("partitions_promise"),
                "least": table.get("partitions_least", partitions),
                "why": table.get("partitions_why"),
            },
            where,
        ),
        replication=integer_in(table, "replication", where),
        min_insync_replicas=integer_in(table, "min_insync_replicas", where),
        settings=tuple(_setting_spec(key, table_in(settings, key, where), where) for key in sorted(settings)),
    )


def _setting_spec(name: str, table: Table, topic: str) -> SettingSpec:
    where = f"{topic}, setting {name}"
    refuse_unknown(table, _SETTING_KEYS, where)
    value = table.get("value")
    if isinstance(value, bool) or not isinstance(value, int | str):
        message = f"{where}: value is {value!r}; write a text or a whole number"
        raise ConfigurationError(message)
    promise = table.get("promise", Rule.ADVICE.value)
    rules = {rule.value: rule for rule in Rule}
    if not isinstance(promise, str) or promise not in rules:
        message = (
            f"{where}: promise is {promise!r}; write {Rule.EXACTLY.value!r}, {Rule.AT_LEAST.value!r}, or leave it out"
        )
        raise ConfigurationError(message)
    least = 0
    if rules[promise] is Rule.AT_LEAST:
        least = integer_in({"least": value, **table}, "least", where)
    return SettingSpec(name, str(value), rules[promise], least, sentence_in(table, "why", where))
