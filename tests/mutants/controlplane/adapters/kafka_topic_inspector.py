"""Bugs in ``controlplane/adapters/kafka_topic_inspector.py``, which simulated controllers do not run."""

from typing import Final

from tests.mutants.mutant import Bug

_TESTS: Final = ("unit/adapters/test_kafka_topic_inspector.py",)

BUGS: Final = (
    Bug(
        "a broker that has died a moment ago is waited for",
        "client.list_topics(timeout=_SOON_S)",
        "client.list_topics(timeout=REQUEST_TIMEOUT_S)",
        tests=_TESTS,
    ),
    Bug(
        "a refused login is tried again as if it had been late",
        "error_of(error).code() != KafkaError._TIMED_OUT",
        "error_of(error).code() == KafkaError.UNKNOWN_TOPIC_OR_PART",
        tests=_TESTS,
    ),
    Bug(
        "settings that have their defaults are not shown",
        "return {name: entry.value for name, entry in entries.items() if entry.value is not None}",
        "return {name: entry.value for name, entry in entries.items() if not entry.is_default}",
        tests=("embedded/test_topics_on_broker.py::test_broken_promise_is_refused_by_name",),
    ),
    Bug(
        "a topic that is being created or deleted ends the inspection",
        "if isinstance(error, KafkaException) and error_of(error).code() == KafkaError.UNKNOWN_TOPIC_OR_PART:",
        "if False:",
        tests=_TESTS,
    ),
    Bug(
        "a topic of Kafka's own that is not shown counts as missing",
        "                    hidden[name] = str(failure)",
        "                    pass",
        tests=("security/test_topics_of_kafkas_own.py",),
    ),
    Bug(
        "a topic of Kafka's own whose settings are not shown ends the inspection",
        "if resource.name in INTERNAL_TOPICS and isinstance(error, KafkaException):",
        "if False:",
        tests=("security/test_topics_of_kafkas_own.py",),
    ),
    Bug(
        "a broker that may be dead is asked for settings",
        "sender if sender in metadata.brokers else min(metadata.brokers)",
        "min(metadata.brokers)",
        tests=_TESTS,
    ),
    Bug(
        "the broker of a new client's first connection stays unknown",
        "return metadata if metadata.orig_broker_id in metadata.brokers else _listed(client)",
        "return metadata",
        tests=_TESTS,
    ),
    Bug(
        "a broker that shows no others makes every topic look as if it were missing",
        "if not metadata.brokers:",
        "if False:",
        tests=_TESTS,
    ),
)
