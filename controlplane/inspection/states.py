"""A cluster's present state, and what its nodes last reported, read from the log: for views and for what-ifs."""

from typing import Final

from controlplane.config import HEARTBEATS
from controlplane.core.deciding.observations import Observations
from controlplane.core.log.state import State
from controlplane.core.membership.log_time import Heard, PartitionView
from controlplane.core.values.identifiers import TopicPartition
from controlplane.inspection import readers
from controlplane.inspection.past_states import replay
from controlplane.inspection.source import LogSource

LOOK_BACK_MS: Final = 60_000
"""How far back in log time a node's last heartbeat is looked for."""


def read_state(source: LogSource) -> State:
    """The state after the last decision, folded from the newest good snapshot; an empty one before the first.

    Raises:
        LogUnavailableError: the log did not answer.
        LogContinuityError: the log is not one chain, or a record is no decision.
        UnsupportedFeatureLevelError: a newer version wrote it.
    """
    return replay(source).state


def read_observations(source: LogSource, state: State) -> Observations:
    """What the living nodes last said and how long ago, as far as planning asks for it: of silence it says nothing.

    The clock is the broker's append time. A leader counts less of an outage, in which no controller ticked.

    Raises:
        LogUnavailableError: the log did not answer.
    """
    living = {node_id for node_id, node in state.membership.nodes.items() if node.lives}
    tail = readers.read_last_heartbeats(source, living, LOOK_BACK_MS)
    heard = {
        (node_id, last.heartbeat.incarnation): Heard(last.append_time_ms, last.append_time_ms, last.heartbeat)
        for node_id, last in tail.last.items()
    }
    view = PartitionView(clock_ms=tail.now_ms, last_tick_ms=tail.now_ms, heard=heard)
    return Observations(partitions={0: view}, positions={TopicPartition(HEARTBEATS, 0): 0})
