"""The topics that a cluster needs, read from the file that ships with the package."""

from controlplane.kafka_rules.topics_file import TopicSpec, parse_topics
from controlplane.resources import resource_path

_TOPICS_FILE = "infra/kafka/topics.toml"


def topic_specs() -> tuple[TopicSpec, ...]:
    """The topics in ``infra/kafka/topics.toml``.

    Raises:
        ConfigurationError: the file contains something invalid; the message names the place.
    """
    return parse_topics(resource_path(_TOPICS_FILE).read_text(encoding="utf-8"), _TOPICS_FILE)
