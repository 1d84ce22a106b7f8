"""Single records on their way to the broker in memory: delays, lost acknowledgements and records that are doubled."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from controlplane.ports import Clock, Delivery
from controlplane.testing.memory_partition import MemoryPartition


@dataclass(slots=True)
class PendingSend:
    """A record that a writer has queued and the broker has not appended yet; times are in ms of the monotonic clock.

    ``connection`` is that of the writer, which handles one record after the other; the writer's wall clock is
    ``sender_ahead_ms`` ahead of the broker's.
    """

    topic: str
    partition: int
    key: bytes
    value: bytes | None
    due_ms: int
    expires_ms: int
    is_connected: Callable[[], bool]
    complete: Callable[[Delivery], None]
    connection: object
    sender_ahead_ms: int = 0


class PendingSends:
    """The records that writers have sent and that are not appended, or not acknowledged, yet. Not thread-safe.

    Attributes:
        unreplicated: pairs of topic and partition for which no record is acknowledged, because a copy is on a broker
            that has just died.
        acks_to_lose: the number of records, from the next one on, that are appended and in the end reported as given
            up.
        sends_to_double: the number of records, from the next one on, that are appended twice.
    """

    def __init__(
        self,
        clock: Clock,
        takes_records: Callable[[str, int], bool],
        find_partition: Callable[[str, int], MemoryPartition | None],
        tell_change: Callable[[str], None],
    ) -> None:
        """Begin without records.

        Args:
            clock: the broker's time.
            takes_records: whether a partition's leader appends what is sent.
            find_partition: a topic's partition, or None if there is none.
            tell_change: called with the name of a topic that has a new record.
        """
        self.unreplicated: set[tuple[str, int]] = set()
        self.acks_to_lose = 0
        self.sends_to_double = 0
        self._clock = clock
        self._takes_records = takes_records
        self._find_partition = find_partition
        self._tell_change = tell_change
        self._waiting: deque[PendingSend] = deque()
        self._unacknowledged: list[PendingSend] = []

    def __bool__(self) -> bool:
        """Whether a record waits to be appended or given up."""
        return bool(self._waiting or self._unacknowledged)

    def add(self, send: PendingSend) -> None:
        """Take a record from a writer."""
        self._waiting.append(send)

    def settle(self) -> None:
        """Append the records that are due and can be, and give up those that have expired."""
        if self._waiting:
            self._settle_waiting()
        if self._unacknowledged:
            self._give_up_unacknowledged()

    def _settle_waiting(self) -> None:
        now_ms = self._clock.monotonic_ms()
        waiting: deque[PendingSend] = deque()
        due: list[PendingSend] = []
        held_up: set[int] = set()
        for send in self._waiting:
            if (send.topic, send.partition) in self.unreplicated:
                held_up.add(id(send.connection))
            is_reached = self._takes_records(send.topic, send.partition) and send.is_connected()
            if not is_reached or id(send.connection) in held_up:
                if send.expires_ms <= now_ms:
                    send.complete(_given_up(send, "the broker was unreachable for longer than the message timeout"))
                    continue
                send.due_ms = max(send.due_ms, now_ms)
                waiting.append(send)
            elif send.due_ms > now_ms:
                waiting.append(send)
            else:
                due.append(send)
        self._waiting = waiting
        for send in sorted(due, key=lambda one: one.due_ms):
            self._append(send, self._clock.wall_ms() - (now_ms - send.due_ms))

    def _append(self, send: PendingSend, append_time_ms: int) -> None:
        partition = self._find_partition(send.topic, send.partition)
        if partition is None:
            send.complete(_given_up(send, "the topic or partition does not exist any more"))
            return
        offset = partition.append(send.key, send.value, append_time_ms, sender_ahead_ms=send.sender_ahead_ms)
        if self.sends_to_double:
            self.sends_to_double -= 1
            partition.append(send.key, send.value, append_time_ms, sender_ahead_ms=send.sender_ahead_ms)
        self._tell_change(send.topic)
        if self.acks_to_lose:
            self.acks_to_lose -= 1
            self._unacknowledged.append(send)
        else:
            send.complete(Delivery(send.topic, send.partition, offset, append_time_ms, None))

    def _give_up_unacknowledged(self) -> None:
        now_ms = self._clock.monotonic_ms()
        for send in self._unacknowledged:
            if send.expires_ms <= now_ms:
                send.complete(_given_up(send, "no acknowledgement came within the message timeout"))
        self._unacknowledged = [send for send in self._unacknowledged if send.expires_ms > now_ms]


def _given_up(send: PendingSend, reason: str) -> Delivery:
    return Delivery(send.topic, send.partition, -1, -1, reason)
