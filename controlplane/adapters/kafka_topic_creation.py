"""Creates topics of one cluster on a Kafka that may not let every setting be set."""

from collections.abc import Mapping, Sequence
from typing import Final

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import NewTopic

from controlplane.adapters.kafka_admin_client import REQUEST_TIMEOUT_S, KafkaAdmin
from controlplane.adapters.kafka_errors import error_of, is_denied
from controlplane.config import topic_name
from controlplane.errors import ConfigurationError, LogUnavailableError
from controlplane.kafka_rules.topics_file import Rule, SettingSpec, TopicSpec, promises_of

_NOT_SETTABLE: Final = frozenset({KafkaError.POLICY_VIOLATION, KafkaError.INVALID_CONFIG, KafkaError.INVALID_REQUEST})
_OF_BROKER: Final[Mapping[str, str]] = {
    "cleanup.policy": "log.cleanup.policy",
    "delete.retention.ms": "log.cleaner.delete.retention.ms",
    "max.message.bytes": "message.max.bytes",
    "message.timestamp.type": "log.message.timestamp.type",
    "min.compaction.lag.ms": "log.cleaner.min.compaction.lag.ms",
    "min.insync.replicas": "min.insync.replicas",
    "retention.bytes": "log.retention.bytes",
    "retention.ms": "log.retention.ms",
    "unclean.leader.election.enable": "unclean.leader.election.enable",
}
"""The setting of the brokers that a topic has which does not name one itself, by the topic's setting."""


class TopicCreation:
    """Creates topics with the settings that Kafka lets one set, if those and its own ones keep every promise.

    Args:
        admin: the connection.
        cluster: the cluster's name, the prefix of its topics.
        brokers: the number of brokers.
        broker_settings: the settings of a broker; empty if this client may not read them.
    """

    def __init__(self, admin: KafkaAdmin, cluster: str, brokers: int, broker_settings: Mapping[str, str]) -> None:
        self._admin = admin
        self._cluster = cluster
        self._brokers = brokers
        self._broker_settings = broker_settings

    def create(self, missing: Sequence[TopicSpec]) -> tuple[list[str], list[str]]:
        """Create topics.

        Returns:
            Their full names, and a sentence for each setting that Kafka does not let one set.

        Raises:
            ConfigurationError: Kafka refuses one of them, or does not let a promise be kept; in the latter case nothing
                is created, and the message names topic, setting and promise.
            LogUnavailableError: Kafka did not answer in time.
        """
        if not missing:
            return [], []
        refused = self._refused_settings(missing)
        self._require_promises(missing, refused)
        new = [self._new(spec, refused.get(spec.name, {})) for spec in missing]
        reasons = self._ask(new, validate_only=False)
        created = [name for name, reason in reasons.items() if self._was_created(name, reason)]
        notes = [
            f"topic {topic_name(self._cluster, name)} is created without {', '.join(sorted(settings))}: Kafka does not "
            f"let {'it' if len(settings) == 1 else 'them'} be set"
            for name, settings in refused.items()
        ]
        return created, notes

    def _refused_settings(self, missing: Sequence[TopicSpec]) -> dict[str, dict[str, KafkaError]]:
        """For each topic that cannot be created as the file says the settings that cannot be set, with the reasons.

        Asked for one setting after another, because a refusal names one of them, or none.

        Raises:
            ConfigurationError: Kafka does not let one be created without settings either.
        """
        wanted = {topic_name(self._cluster, spec.name): spec for spec in missing}
        answers = self._ask([self._new(spec, {}) for spec in missing], validate_only=True)
        unfit = {name: spec for name, spec in wanted.items() if _is_not_settable(answers[name])}
        bare = [self._new(spec, spec.settings_for(self._brokers)) for spec in unfit.values()]
        for name, error in self._ask(bare, validate_only=True).items():
            if error is not None:
                raise ConfigurationError(f"Kafka does not let topic {name} be created: {error.str()}")
        refused: dict[str, dict[str, KafkaError]] = {spec.name: {} for spec in unfit.values()}
        for setting in sorted({each for spec in unfit.values() for each in spec.settings_for(self._brokers)}):
            trials = [
                self._new(spec, dict.fromkeys(spec.settings_for(self._brokers).keys() - {setting}))
                for spec in unfit.values()
                if setting in spec.settings_for(self._brokers)
            ]
            for name, error in self._ask(trials, validate_only=True).items():
                if error is not None and _is_not_settable(error):
                    refused[unfit[name].name][setting] = error
        return {name: settings for name, settings in refused.items() if settings}

    def _require_promises(self, missing: Sequence[TopicSpec], refused: Mapping[str, Mapping[str, KafkaError]]) -> None:
        """Check that the topics will have the promised settings that cannot be set.

        Raises:
            ConfigurationError: they would not.
        """
        sentences = []
        for spec in missing:
            for setting in promises_of(spec, spec.replication_for(self._brokers)):
                error = refused.get(spec.name, {}).get(setting.name)
                own = self._broker_settings.get(_OF_BROKER.get(setting.name, ""))
                if error is not None and not setting.keeps(own):
                    sentences.append(self._cannot_be_kept(spec, setting, own, error))
        if sentences:
            head = f"this Kafka cannot keep promises that controllers of cluster {self._cluster} rely on; nothing was "
            raise ConfigurationError("\n".join([f"{head}created:", *sentences]))

    def _cannot_be_kept(self, spec: TopicSpec, setting: SettingSpec, own: str | None, error: KafkaError) -> str:
        wanted = f"at least {setting.least}" if setting.rule is Rule.AT_LEAST else setting.value
        has = "cannot be read" if own is None else f"is {own}"
        name = topic_name(self._cluster, spec.name)
        return (
            f"topic {name} needs {setting.name} = {wanted}, which Kafka does not let be set ({error.str()}), and its "
            f"own value {has}. {setting.why}"
        )

    def _new(self, spec: TopicSpec, without: Mapping[str, object]) -> NewTopic:
        settings = spec.settings_for(self._brokers)
        return NewTopic(
            topic_name(self._cluster, spec.name),
            num_partitions=int(spec.partitions.value),
            replication_factor=spec.replication_for(self._brokers),
            config={name: value for name, value in settings.items() if name not in without},
        )

    def _ask(self, new: Sequence[NewTopic], *, validate_only: bool) -> dict[str, KafkaError | None]:
        """Create topics, or ask whether they could be; by topic the reason why not.

        Raises:
            LogUnavailableError: Kafka did not answer in time.
            NotAllowedError: this user has no right to create them.
        """
        if not new:
            return {}
        answers = self._admin.client.create_topics(
            list(new), request_timeout=REQUEST_TIMEOUT_S, validate_only=validate_only
        )
        reasons: dict[str, KafkaError | None] = {}
        for name, answer in answers.items():
            reasons[name] = None
            try:
                answer.result(REQUEST_TIMEOUT_S)
            except TimeoutError as error:
                raise self._admin.failure(error, "create", f"topic {name}") from error
            except KafkaException as error:
                reasons[name] = reason = error_of(error)
                if is_denied(reason):
                    raise self._admin.failure(error, "create", f"topic {name}") from error
        return reasons

    def _was_created(self, name: str, error: KafkaError | None) -> bool:
        if error is None:
            return True
        if error.code() == KafkaError.TOPIC_ALREADY_EXISTS:
            return False
        message = f"Kafka did not create topic {name}: {error}"
        raise (LogUnavailableError if error.retriable() else ConfigurationError)(message)


def _is_not_settable(error: KafkaError | None) -> bool:
    return error is not None and error.code() in _NOT_SETTABLE
