"""The topics that a cluster needs, as the file that ships with the package describes them."""

from controlplane.codec.topics_file import TopicSpec, parse_topics
from controlplane.resources import resource_path

_TOPICS_FILE = "infra/kafka/topics.toml"


def topic_specs() -> tuple[TopicSpec, ...]:
    """What ``infra/kafka/topics.toml`` says.

    Raises:
        ConfigurationError: the file says something impossible; the message names the line.
    """
    return parse_topics(resource_path(_TOPICS_FILE).read_text(encoding="utf-8"), _TOPICS_FILE)
