"""Where a controller that starts begins to read its inputs: far enough back to measure every present silence."""

from collections.abc import Mapping
from typing import Final

import structlog

from controlplane.config import HEARTBEATS
from controlplane.core.log.inputs import DECIDED_TOPICS, INPUT_TOPICS
from controlplane.core.log.state import State
from controlplane.core.values.identifiers import TopicPartition
from controlplane.core.values.positions import position_key
from controlplane.ports import LogReader

_LOOK_BACK_LIMITS: Final = 3
"""A cold start reads back this many silence limits: enough to measure every present silence, and less than a window.
The *term opened* event records the offsets, so that the audit begins at the same ones (decision 0011).
"""
LOOK_BACK_RECORDS: Final = 100_000
"""Most records of one partition that are read back. Not a duration, because brokers' clocks may differ or be set."""
_SAME_CLOCK_MS: Final = 1_000
"""Partitions whose times differ by no more are asked together, for the earliest of these times."""

_log = structlog.get_logger(__name__)


def first_positions(
    reader: LogReader, state: State, times_ms: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int]:
    """The offsets to begin at, of all input partitions.

    Args:
        reader: asks Kafka for offsets.
        state: after the decisions that were read.
        times_ms: for partitions of ``heartbeats`` the append time, in ms, of a record written just now; not empty.

    Raises:
        LogUnavailableError: Kafka did not answer in time.
    """
    firsts = _first_heartbeats(reader, _LOOK_BACK_LIMITS * state.cluster.silence_limit_ms, times_ms)
    for topic in DECIDED_TOPICS:
        firsts |= reader.start_offsets(topic, only_answering=True)
    positions = {}
    for place in partitions_of(reader, *INPUT_TOPICS):
        wanted = state.positions.get(position_key(place), 0)
        first = firsts.get(place)
        if first is None:
            _log.warning("input partition does not answer", at=place, read_from=wanted)
            positions[place] = wanted
        elif place.topic == HEARTBEATS:
            positions[place] = first
        else:
            positions[place] = max(first, wanted)
            if first > wanted:
                _log.error("inputs were deleted before any decision took them up", at=place, first=first, wanted=wanted)
    return positions


def partitions_of(reader: LogReader, *topics: str) -> list[TopicPartition]:
    """Every partition of these topics."""
    return [TopicPartition(topic, number) for topic in topics for number in range(reader.partition_count(topic))]


def _first_heartbeats(
    reader: LogReader, look_back_ms: int, times_ms: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int]:
    """For each partition of ``heartbeats`` that answers the offset to begin at: by its own clock, and not too far back.

    Partitions are asked for one time together where their clocks agree, since each request asks all of them.
    """
    ends = reader.end_offsets(HEARTBEATS, only_answering=True)
    earliest_ms = min(times_ms.values())
    waiting = {place: times_ms.get(place, earliest_ms) for place in ends}
    firsts: dict[TopicPartition, int] = {}
    while waiting:
        asked_ms = min(waiting.values())
        together = [place for place, time_ms in waiting.items() if time_ms - asked_ms <= _SAME_CLOCK_MS]
        found = reader.offsets_at_time(HEARTBEATS, asked_ms - look_back_ms, only_answering=True)
        for place in together:
            del waiting[place]
            if place not in found:
                continue
            firsts[place] = max(found[place], ends[place] - LOOK_BACK_RECORDS)
            if firsts[place] > found[place]:
                _log.warning(
                    "too many heartbeats to read back, silences count from a later one",
                    at=place,
                    left_out=firsts[place] - found[place],
                    read_from=firsts[place],
                )
    return firsts
