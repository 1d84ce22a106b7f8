"""Finds the last incarnation of a node in ``membership``.

The table has no row of a node that left, but the controllers remember it and refuse a join under a lower incarnation. A
process whose clock is behind would have to wait for that clock. Nor is a join in the table that waits for a decision:
a process that joins behind it with a lower incarnation would end when it is admitted, as one that was replaced. The
incarnations of all its predecessors are in ``membership``.
"""

from typing import Final

import structlog

from controlplane.codec.inputs import decode_input
from controlplane.config import MEMBERSHIP
from controlplane.core.membership.inputs import NodeJoined, NodeLeaving, NodeLeft
from controlplane.core.values.identifiers import Incarnation, NodeId
from controlplane.errors import ConfigurationError, InvalidInputError, LogContinuityError, LogUnavailableError
from controlplane.ports import LogReader, RawRecord, Signal
from controlplane.topic_reading.unread import Unread

_MOST_RECORDS: Final = 100_000
"""The number of records that are read at most: the joins of nodes that are never admitted may fill the topic."""
_AT_ONCE: Final = 2_000
_POLL_MS: Final = 100
_IDLE_POLLS: Final = 50
"""The number of polls in a row without new records after which reading ends. Time is not measured, because a process
that was suspended meanwhile has polled nothing."""
_RETRY_S: Final = 0.2

_log = structlog.get_logger(__name__)


def last_incarnation(reader: LogReader, node_id: NodeId, stopping: Signal) -> Incarnation:
    """The greatest incarnation in the node's recent records; 0 if there is none or it cannot be determined.

    Args:
        reader: its assignment is replaced.
        node_id: the node.
        stopping: ends the reading when it is set.
    """
    while not stopping.is_set():
        try:
            return _read(reader, node_id, stopping)
        except LogUnavailableError as error:
            _log.warning("membership unavailable", node=node_id, error=str(error))
            stopping.wait(_RETRY_S)
        except (ConfigurationError, LogContinuityError) as error:
            # It is needed only if clocks differ, so a node without the right to read the topic may join nevertheless.
            _log.warning("former incarnations not known", node=node_id, error=str(error))
            break
    return 0


def _read(reader: LogReader, node_id: NodeId, stopping: Signal) -> Incarnation:
    ends, starts = reader.end_offsets(MEMBERSHIP), reader.start_offsets(MEMBERSHIP)
    begin = {place: max(start, ends[place] - _MOST_RECORDS) for place, start in starts.items()}
    reader.assign(begin)
    last, idle_polls = 0, 0
    unread = Unread(begin, ends)
    while unread.places and idle_polls < _IDLE_POLLS and not stopping.is_set():
        batch = reader.poll(_AT_ONCE, _POLL_MS)
        # Records of a partition that is read to its end are no progress: a foreign writer may append them forever.
        idle_polls = 0 if unread.take(batch) else idle_polls + 1
        last = max([last, *(_incarnation(record) for record in batch.records if record.key == node_id.encode())])
    if unread.places and not stopping.is_set():
        _log.warning(
            "former incarnations not known", node=node_id, error=f"{MEMBERSHIP} was not read to its end in time"
        )
    return last


def _incarnation(record: RawRecord) -> Incarnation:
    try:
        payload = decode_input(MEMBERSHIP, record).payload
    except InvalidInputError:
        return 0
    return payload.incarnation if isinstance(payload, NodeJoined | NodeLeaving | NodeLeft) else 0
