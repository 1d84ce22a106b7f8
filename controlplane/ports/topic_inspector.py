"""What Kafka shows of its topics and brokers."""

from collections.abc import Sequence
from typing import Protocol

from controlplane.kafka_rules.promises import DescribedKafka


class TopicInspector(Protocol):
    """Describes topics and brokers. Not thread-safe."""

    def describe(self, topics: Sequence[str]) -> DescribedKafka:
        """What Kafka shows of these topics, by their full names. Topics that do not exist are left out.

        Raises:
            LogUnavailableError: Kafka did not answer in time.
            ConfigurationError: Kafka refuses this client's login, or denies it the settings of a topic that it shows.
        """
        ...
