"""A consumer that is replaced if it receives nothing although Kafka answers other clients (decision 0014).

From each assigned partition, a consumer is expected to bring the next record or the end. Its owner keeps the positions
and assigns a new consumer to them.
"""

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from functools import partial

from confluent_kafka import Consumer, KafkaError
from confluent_kafka import TopicPartition as KafkaPosition

from controlplane.adapters.kafka_client import close_in_background
from controlplane.adapters.kafka_probe import Place, Probe
from controlplane.adapters.kafka_replaceable_client import ReplaceableClient


class ReplaceableConsumer(ReplaceableClient[Consumer]):
    """Owns one consumer at a time. Not thread-safe.

    Attributes:
        is_assigned: whether partitions are assigned.
    """

    is_assigned = False
    _is_halted = False

    def assign(self, positions: Sequence[KafkaPosition]) -> None:
        """Read from these positions, and no others."""
        self.is_assigned, self._is_halted = bool(positions), False
        self.current.assign(list(positions))

    def halt(self) -> None:
        """Take note that the owner takes no more records until it assigns again."""
        self._is_halted = True

    def check(self, now_s: float, take_over: Callable[[], None]) -> None:
        """Probe or replace the client if that is due; to be called whenever everything that had arrived was taken.

        Args:
            now_s: the time, by the clock of ``stalls``.
            take_over: assigns the new consumer, if the client was replaced.
        """
        if self._check(now_s):
            take_over()

    def replace_unanswered(self, asked: Consumer, cause: KafkaError) -> None:
        """Replace a consumer without an assignment that did not answer a request in time."""
        self._try_replace(asked, cause)

    def replace(self, cause: KafkaError) -> None:
        """Put a consumer without metadata and without an assignment in the place of the present one, if possible."""
        self._try_replace(self.current, cause)

    def serve_idle(self) -> None:
        """Run the callbacks of a consumer that is not polled for records; its reports accumulate until then."""
        if self._is_halted or not self.is_assigned:
            self.current.poll(0)

    def close(self) -> None:
        """Close the consumer, which must not be used afterwards."""
        self.current.close()

    def _start_probe(self, places: AbstractSet[Place]) -> Probe:
        return Probe(partial(self._make, self.listener), places, self._logger)

    def _retire(self, former: Consumer, cause: KafkaError) -> None:  # noqa: ARG002 - it has nothing to report it to
        close_in_background(former)
