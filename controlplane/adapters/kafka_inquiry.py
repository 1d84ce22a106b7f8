"""Asking Kafka through a client of its own, where another client gets nowhere: is it Kafka, or is it that client?"""

import random
import threading
import time
from collections.abc import Callable
from collections.abc import Set as AbstractSet

import structlog
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka import TopicPartition as KafkaPosition

from controlplane.errors import ConfigurationError

_ANSWER_WAIT_S = 5.0
"""A login over a slow link takes some round trips; nobody waits meanwhile."""
_LEAST_WAIT_S = 1.0
"""For each leader, while time remains: one that is silent is not to take it all from the others."""
_OWN_ANSWER_WAIT_S = 1.0
"""The doubted client has its connections, if it has not forgotten where Kafka is."""

_logger = structlog.get_logger()

ANY_PARTITION = -1
"""Stands for one that was not chosen yet, by a client that knew none."""
Places = AbstractSet[tuple[str, int]]
"""Full topic names and partitions."""


class Inquiry:
    """One question to the leaders of some places, asked in a thread of its own so that nobody waits for it.

    Args:
        make: the client to ask by; it is closed afterwards.
        places: whose leaders are asked: one that answers is enough.
        doubted: a producer, which can be asked who leads; it waits for acknowledgements, which a leader may owe that
            answers everything else. A consumer that is doubted needs no asking: it asks its leaders all the time.

    Attributes:
        leader_answered: whether a leader answered the new client.
        doubted_answered: whether the doubted producer was told, too, who leads one of the places.
    """

    def __init__(self, make: Callable[[], Consumer], places: Places, doubted: Producer | None = None) -> None:
        """Begin to ask."""
        self.leader_answered = False
        self.doubted_answered = False
        self._ended = threading.Event()
        threading.Thread(target=self._ask, args=(make, places, doubted), name="kafka-inquiry", daemon=True).start()

    @property
    def is_over(self) -> bool:
        """Whether the attributes say how it went; until then they say no."""
        return self._ended.is_set()

    def _ask(self, make: Callable[[], Consumer], places: Places, doubted: Producer | None) -> None:
        asking: Consumer | None = None
        try:
            asking = make()
            self.leader_answered = gets_an_answer(asking, places, _ANSWER_WAIT_S)
            if self.leader_answered and doubted is not None:
                self.doubted_answered = bool(_led(doubted, places, time.monotonic() + _OWN_ANSWER_WAIT_S))
        except (ConfigurationError, KafkaException) as error:
            _logger.warning("no other Kafka client to try", error=str(error))
        finally:
            # Closing may wait for a host whose name is looked for; the answer does not.
            self._ended.set()
            if asking is not None:
                asking.close()


def gets_an_answer(asking: Consumer, places: Places, timeout_s: float) -> bool:
    """Whether the leader of one of the places answers this client.

    Any broker tells who leads, also of a leader that has just died: so the leader itself is asked. In no order, so that
    the next inquiry does not wait for the same silent leader once more.
    """
    deadline_s = time.monotonic() + timeout_s
    led = _led(asking, places, deadline_s)
    random.shuffle(led)
    for asked, (name, number) in enumerate(led):
        remaining_s = _remaining_s(deadline_s)
        share_s = min(max(remaining_s / (len(led) - asked), _LEAST_WAIT_S), remaining_s)
        try:
            asking.get_watermark_offsets(KafkaPosition(name, number), timeout=share_s, cached=False)
        except KafkaException:
            continue
        return True
    return False


def _led(asking: Consumer | Producer, places: Places, deadline_s: float) -> list[tuple[str, int]]:
    """The places that have a leader, as far as this client is told; none where it is told nothing in time."""
    led: list[tuple[str, int]] = []
    for name in sorted({name for name, _ in places}):
        try:
            partitions = asking.list_topics(name, timeout=_remaining_s(deadline_s)).topics[name].partitions
        except KafkaException:
            continue
        numbers = [number for number, partition in partitions.items() if partition.leader >= 0]
        takes_any = (name, ANY_PARTITION) in places
        led.extend((name, number) for number in numbers if takes_any or (name, number) in places)
    return led


def _remaining_s(deadline_s: float) -> float:
    return max(deadline_s - time.monotonic(), 0.001)
