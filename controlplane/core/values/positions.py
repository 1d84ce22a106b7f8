"""Places in the log: where decisions and rows stand, and how decisions name input partitions."""

from typing import Final

from controlplane.config import DECISIONS, ROUTING_TABLE
from controlplane.core.values.identifiers import TopicPartition
from controlplane.errors import LogContinuityError

DECISIONS_PLACE: Final = TopicPartition(DECISIONS, 0)
"""Where decisions stand: one partition, so that they have one order."""
TABLE_PLACE: Final = TopicPartition(ROUTING_TABLE, 0)
"""Where the rows of the routing table stand: one partition, so that a marker comes after its rows."""


def position_key(place: TopicPartition) -> str:
    """How decisions name an input partition: ``heartbeats[3]``."""
    return f"{place.topic}[{place.partition}]"


def place_of(key: str) -> TopicPartition:
    """The input partition that :func:`position_key` names so.

    Raises:
        LogContinuityError: it names none.
    """
    topic, bracket, number = key.removesuffix("]").partition("[")
    if not bracket or not number.isascii() or not number.isdigit() or key != f"{topic}[{int(number)}]":
        raise LogContinuityError(f"{key!r:.80} names no partition, as heartbeats[3] does")
    return TopicPartition(topic, int(number))
