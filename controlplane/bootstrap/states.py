"""A cluster's state and what its nodes last said, as somebody outside finds them: for views and for what-ifs."""

from controlplane.bootstrap.readers import READ_TIMEOUT_MS, read_decisions, read_last_heartbeats
from controlplane.codec.framing import Framing
from controlplane.config import HEARTBEATS
from controlplane.core.apply import follow
from controlplane.core.identifiers import TopicPartition
from controlplane.core.observations import Heard, Observations, PartitionView
from controlplane.core.state import State
from controlplane.ports import LogReader

_LOOK_BACK_MS = 60_000
"""How far back in log time a node's last heartbeat is looked for."""


def read_state(reader: LogReader, timeout_ms: int = READ_TIMEOUT_MS) -> State:
    """The state after the last decision, folded from the whole log; an empty one before the first.

    Raises:
        LogUnavailableError: the log did not answer.
        LogContinuityError: the log is not one chain, or a record is no decision.
    """
    state = State()
    for logged in read_decisions(reader, timeout_ms):
        state = follow(state, logged.decision)
    return state


def read_observations(
    reader: LogReader, state: State, timeout_ms: int = READ_TIMEOUT_MS, framing: Framing | None = None
) -> Observations:
    """What the living nodes last said, as far as planning asks for it: of silence it says nothing.

    Raises:
        LogUnavailableError: the log did not answer.
    """
    living = {node_id for node_id, node in state.nodes.items() if node.lives}
    tail = read_last_heartbeats(reader, living, _LOOK_BACK_MS, timeout_ms, framing)
    heard = {
        (node_id, last.heartbeat.incarnation): Heard(0, last.append_time_ms, last.heartbeat)
        for node_id, last in tail.last.items()
    }
    view = PartitionView(last_tick_ms=tail.now_ms, greatest_tick_ms=tail.now_ms, heard=heard)
    return Observations(partitions={0: view}, positions={TopicPartition(HEARTBEATS, 0): 0})
