"""Probes Kafka through a new client when another client receives nothing, to find out which of the two has failed."""

import random
import threading
import time
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from typing import NamedTuple

import structlog
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka import TopicPartition as KafkaPosition

from controlplane.errors import ConfigurationError

_PROBE_TIMEOUT_S = 5.0
"""A login over a slow link takes some round trips; the caller does not wait for the probe."""
_LEADER_TIMEOUT_MIN_S = 1.0
"""Least timeout for each leader while time remains, so that a silent leader does not use up the time of the others."""
_DOUBTED_TIMEOUT_S = 1.0
"""Short, because the doubted client has its connections already, unless it has lost the address of every broker."""

Place = tuple[str, int]
"""A topic's full name and a partition."""
ANY_PARTITION = -1
"""The partition of a place that a client without metadata has not chosen yet; stands for all partitions."""


class ProbeOutcome(NamedTuple):
    """The result of a probe.

    Attributes:
        leader_answered: whether the leader of one of the places answered the new client.
        doubted_answered: whether the doubted producer learned the leader of one of the places.
    """

    leader_answered: bool
    doubted_answered: bool


class Probe:
    """One query to the leaders of some places, made in a thread of its own.

    Args:
        make: makes the client to query with; it is closed afterwards.
        places: the places whose leaders are asked; one that answers is enough.
        logger: of the client that is doubted.
        doubted: a producer, which is asked for the leaders as well, because it may be waiting for acknowledgements that
            a leader cannot give yet. (A doubted consumer needs no query: it asks its leaders all the time.)

    Attributes:
        outcome: None until the probe is over.
    """

    def __init__(
        self,
        make: Callable[[], Consumer],
        places: AbstractSet[Place],
        logger: structlog.typing.FilteringBoundLogger,
        doubted: Producer | None = None,
    ) -> None:
        """Start the query."""
        self.outcome: ProbeOutcome | None = None
        self._logger = logger
        threading.Thread(target=self._ask, args=(make, places, doubted), name="kafka-probe", daemon=True).start()

    def _ask(self, make: Callable[[], Consumer], places: AbstractSet[Place], doubted: Producer | None) -> None:
        asking: Consumer | None = None
        leader_answered = doubted_answered = False
        try:
            asking = make()
            leader_answered = leader_answers(asking, places, _PROBE_TIMEOUT_S)
            if leader_answered and doubted is not None:
                doubted_answered = bool(_with_leader(doubted, places, time.monotonic() + _DOUBTED_TIMEOUT_S))
        except (ConfigurationError, KafkaException) as error:
            self._logger.warning(
                "a Kafka client receives nothing, and no new client can be made to probe Kafka with", error=str(error)
            )
        finally:
            # Set before closing, which can take seconds while the client resolves a host name.
            self.outcome = ProbeOutcome(leader_answered, doubted_answered)
            if asking is not None:
                asking.close()


def leader_answers(asking: Consumer, places: AbstractSet[Place], timeout_s: float) -> bool:
    """Whether the leader of one of the places answers this client in time.

    Metadata is no proof: any broker names the leaders, also one that has just died. So each leader itself is asked, in
    random order, so that the next probe does not wait for the same silent leader first.
    """
    deadline_s = time.monotonic() + timeout_s
    led = _with_leader(asking, places, deadline_s)
    random.shuffle(led)
    for asked, (name, number) in enumerate(led):
        remaining_s = _remaining_s(deadline_s)
        share_s = min(max(remaining_s / (len(led) - asked), _LEADER_TIMEOUT_MIN_S), remaining_s)
        try:
            asking.get_watermark_offsets(KafkaPosition(name, number), timeout=share_s, cached=False)
        except KafkaException:
            continue
        return True
    return False


def _with_leader(asking: Consumer | Producer, places: AbstractSet[Place], deadline_s: float) -> list[Place]:
    """The places that have a leader, as far as this client learns it before the deadline."""
    led: list[Place] = []
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
