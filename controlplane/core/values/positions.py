"""The partitions of decisions and rows, and the text form of input partitions."""

from typing import Final

from controlplane.config import DECISIONS, ROUTING_TABLE
from controlplane.core.values.identifiers import TopicPartition
from controlplane.errors import LogContinuityError

DECISIONS_PARTITION: Final = TopicPartition(DECISIONS, 0)
"""The partition of the decisions: a single one, so that they have one order."""
TABLE_PLACE: Final = TopicPartition(ROUTING_TABLE, 0)
"""The partition of the routing table: a single one, so that a marker comes after its rows."""


def position_key(place: TopicPartition) -> str:
    """The text form of an input partition in decisions, for example ``heartbeats[3]``."""
    return f"{place.topic}[{place.partition}]"


def place_of(key: str) -> TopicPartition:
    """The input partition of a text form made by :func:`position_key`.

    Raises:
        LogContinuityError: the text has another form.
    """
    topic, bracket, number = key.removesuffix("]").partition("[")
    if not bracket or not number.isascii() or not number.isdigit() or key != f"{topic}[{int(number)}]":
        raise LogContinuityError(f"position {key!r:.80} is not of the form topic[partition]")
    return TopicPartition(topic, int(number))
