"""A node's two producers, of which each sends every other heartbeat."""

from collections.abc import Callable

from controlplane.config import HEARTBEATS
from controlplane.ports import Delivery, EventWriter, OutgoingRecord


class AlternatingWriter:
    """Has the methods of :class:`controlplane.ports.EventWriter`, by two of them, which it owns. For one thread.

    A client of Kafka can get stuck: it receives nothing, while others do. Finding that out takes longer than a silence
    limit. A heartbeat that is not acknowledged soon is sent again (:mod:`controlplane.core.session.node_session`), and
    with two writers in turn the second one goes another way. Both are in use all the time, so that either has open
    connections, and finds out by itself that it is stuck.

    Only heartbeats take turns, and may arrive in another order than they were sent. The later offset counts: both show
    that the node lives, and the next heartbeat corrects what the older one says of epochs and slots. Records of other
    topics have to stay in order, so one writer sends all of them.
    """

    def __init__(self, first: EventWriter, second: EventWriter) -> None:
        """Begin with the first; it also sends the records of other topics."""
        self._first = first
        self._second = second
        self._is_turn_of_second = False

    def send(self, record: OutgoingRecord, on_delivery: Callable[[Delivery], None] | None = None) -> None:
        """See :meth:`controlplane.ports.EventWriter.send`. Called by one thread."""
        writer = self._first
        if record.topic == HEARTBEATS:
            writer = self._second if self._is_turn_of_second else self._first
            self._is_turn_of_second = not self._is_turn_of_second
        writer.send(record, on_delivery)

    def poll(self, timeout_ms: int) -> None:
        """See :meth:`controlplane.ports.EventWriter.poll`."""
        self._second.poll(0)
        self._first.poll(timeout_ms)

    @property
    def awaits_delivery(self) -> bool:
        """See :meth:`controlplane.ports.EventWriter.awaits_delivery`."""
        return self._first.awaits_delivery or self._second.awaits_delivery

    def flush(self, timeout_ms: int) -> int:
        """See :meth:`controlplane.ports.EventWriter.flush`; each writer may take the timeout."""
        return self._first.flush(timeout_ms) + self._second.flush(timeout_ms)

    def partition_count(self, topic: str) -> int:
        """See :meth:`controlplane.ports.EventWriter.partition_count`."""
        return self._first.partition_count(topic)

    def close(self) -> None:
        """See :meth:`controlplane.ports.EventWriter.close`."""
        self._first.close()
        self._second.close()
