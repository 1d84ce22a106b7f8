"""Which reports are of processes that a later one of their node has replaced, decided from offsets alone.

A node's reports stand in one partition, in the order in which they count; so the verdict about a report follows from
what stands before it there, in whatever steps the table is read.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple


class NodePlace(NamedTuple):
    """A node in one partition."""

    partition: int
    node_id: str


class Process(NamedTuple):
    """A run of a node's process in one partition."""

    place: NodePlace
    incarnation: int


class Verdicts(NamedTuple):
    """What the reports of a step make of their processes.

    Attributes:
        ends: the offset from which the reports of a process do not count; a process that is not named counts.
        newest: the latest process of each node after the step that has a report with plausible figures of the node.
    """

    ends: Mapping[Process, int]
    newest: Mapping[NodePlace, int]


def verdicts(first_offsets: Mapping[Process, int | None], known: Mapping[NodePlace, int]) -> Verdicts:
    """The rule: a report counts if none of a later process of its node, with plausible figures, stands before it.

    Args:
        first_offsets: of each process that has reports in the step, the first one whose figures of the node can be
            true; None if there is none.
        known: the latest processes before the step that had such a report.
    """
    ends: dict[Process, int] = {}
    newest = dict(known)
    end_of: dict[NodePlace, int] = {}
    for process in _latest_first(first_offsets):
        place, incarnation = process
        if incarnation < known.get(place, incarnation):
            ends[process] = 0
            continue
        if place in end_of:
            ends[process] = end_of[place]
        first = first_offsets[process]
        if first is not None:
            end_of[place] = min(first, end_of.get(place, first))
            newest[place] = max(incarnation, newest.get(place, incarnation))
    return Verdicts(ends, newest)


def _latest_first(processes: Iterable[Process]) -> list[Process]:
    return sorted(processes, key=lambda process: process.incarnation, reverse=True)
