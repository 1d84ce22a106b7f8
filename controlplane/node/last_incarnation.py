"""Under which incarnation a node was last heard of, where the routing table says nothing of it.

The table forgets a node that left; the controllers do not, and refuse a join under an older incarnation. A process that
starts where the clock is behind would wait for that clock. What its predecessors asked for stands in ``membership``.
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
"""How far back it looks: nodes that nobody admits fill the topic with their joins."""
_AT_ONCE: Final = 2_000
_POLL_MS: Final = 100
_IDLE_POLLS: Final = 50
"""So many polls in a row without news end the reading. Time is not counted: a process that was suspended meanwhile has
polled nothing."""
_RETRY_S: Final = 0.2

_log = structlog.get_logger(__name__)


def last_incarnation(reader: LogReader, node_id: NodeId, stopping: Signal) -> Incarnation:
    """The greatest incarnation under which the node asked for anything lately; 0 if it did not, or nobody can tell.

    Args:
        reader: is assigned to another topic afterwards.
        node_id: which node.
        stopping: when it is set, nobody waits for the answer any more.
    """
    while not stopping.is_set():
        try:
            return _read(reader, node_id, stopping)
        except LogUnavailableError as error:
            _log.warning("membership unavailable", node=node_id, error=str(error))
            stopping.wait(_RETRY_S)
        except (ConfigurationError, LogContinuityError) as error:
            # Only where clocks differ is it needed, so nobody has to be kept out for want of a right.
            _log.warning("former incarnations unknown", node=node_id, error=str(error))
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
        # Records of a partition that is read to its end are no news: a foreign writer may send them for ever.
        idle_polls = 0 if unread.take(batch) else idle_polls + 1
        last = max([last, *(_incarnation(record) for record in batch.records if record.key == node_id.encode())])
    if unread.places and not stopping.is_set():
        _log.warning("former incarnations unknown", node=node_id, error=f"{MEMBERSHIP} was not read to its end in time")
    return last


def _incarnation(record: RawRecord) -> Incarnation:
    try:
        payload = decode_input(MEMBERSHIP, record).payload
    except InvalidInputError:
        return 0
    return payload.incarnation if isinstance(payload, NodeJoined | NodeLeaving | NodeLeft) else 0
