"""What the in-memory broker shows of its topics."""

from collections.abc import Sequence

from controlplane.kafka_rules.promises import DescribedKafka
from controlplane.kafka_rules.topics_file import ActualTopic
from controlplane.testing.memory_broker import MemoryBroker, unavailable


class MemoryTopicInspector:
    """Implements :class:`controlplane.ports.TopicInspector`: one broker, one copy, and the settings that were given."""

    def __init__(self, broker: MemoryBroker) -> None:
        """Connect to the shared broker."""
        self.connected = True
        self._broker = broker

    def describe(self, topics: Sequence[str]) -> DescribedKafka:
        """See :meth:`controlplane.ports.TopicInspector.describe`."""
        if not (self.connected and self._broker.available):
            raise unavailable("its topics")
        found = {
            name: ActualTopic(name, len(self._broker.partitions(name)), 1, self._broker.settings(name))
            for name in topics
            if self._broker.has_topic(name)
        }
        return DescribedKafka(1, found)
