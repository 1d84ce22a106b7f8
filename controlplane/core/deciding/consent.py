"""When what a node has to release may be given to another one: its consent, or proof that it serves it no more.

A node that has read that it has to release something accepts nothing for it any more. When all that it had accepted has
ended or was voided, it says so in a heartbeat. A node that says nothing may have been cut off from the table: it serves
by the last table that it knows to be whole, for as long as that is valid, and a client or broker may answer it from an
old table for a while. Beyond that time no consent is waited for. ``docs/explanation/fencing.md`` names what the time
does not cover.
"""

from typing import Final

from controlplane.core.deciding.observations import Observations
from controlplane.core.log.state import State
from controlplane.core.membership.node import Node
from controlplane.core.session.node_session import TABLE_GOOD_FOR_AT_LEAST_MS
from controlplane.core.session.silence import valid_for_ms
from controlplane.core.values.identifiers import Epoch, NodeId

METADATA_REFRESH_MS: Final = 10_000
"""The interval at which nodes ask Kafka for the leaders of the table's partitions (see decision 0028)."""


def release_bound_ms(silence_limit_ms: int) -> int:
    """The log time after which a node that is told to release something has certainly stopped to serve it.

    It is the validity of a reading of the table by a node's clock that is a tenth slow, and the time after which the
    node has found a broker that knows the table, if the one that it reads from was deposed.
    """
    valid_ms = max(valid_for_ms(silence_limit_ms, 0), TABLE_GOOD_FOR_AT_LEAST_MS)
    # By a clock that is a tenth slow, it lasts 10/9 of its time.
    return -(-valid_ms * 10 // 9) + METADATA_REFRESH_MS


def has_former_process(state: State, observations: Observations, node: Node) -> bool:
    """Whether another process of the node, whose place this one took, may still serve what the node owned then.

    The present process cannot say for that one that it has stopped.
    """
    if not node.replaced_epoch:
        return False
    passed_ms = observations.home_of(node.node_id).since_epoch_ms(node.replaced_epoch)
    return passed_ms < release_bound_ms(state.cluster.silence_limit_ms)


def why_released(state: State, observations: Observations, node: Node | None, since: Epoch, *, says_so: bool) -> str:
    """Why a node certainly serves no more what the table of an epoch tells it to release; empty while it may serve it.

    Args:
        state: the state.
        observations: what was read.
        node: the node; None if it is forgotten.
        since: the epoch whose table tells it to release.
        says_so: whether its latest heartbeat says that it has released it.
    """
    if node is None or not node.lives:
        return f"its owner is {node.status.value if node is not None else 'forgotten'}"
    if says_so and not has_former_process(state, observations, node):
        return f"{node.node_id} says so"
    bound_ms = release_bound_ms(state.cluster.silence_limit_ms)
    passed_ms = observations.home_of(node.node_id).since_epoch_ms(since)
    return f"{node.node_id} has said nothing for {bound_ms} ms of log time" if passed_ms >= bound_ms else ""


class Consents:
    """These answers for one decision, each found once for a node and an epoch.

    An answer may cost what the remembered ticks do, and many bundles of few nodes are released at the same time.
    """

    def __init__(self, state: State, observations: Observations) -> None:
        """Begin without answers. ``state`` says the silence limit; nodes are arguments."""
        self._state = state
        self._observations = observations
        self._former: dict[NodeId, bool] = {}
        self._passed_ms: dict[tuple[NodeId, Epoch], int] = {}
        self._whys: dict[tuple[NodeId, Epoch, bool], str] = {}

    def has_former_process(self, node: Node) -> bool:
        """As :func:`has_former_process`."""
        if node.node_id not in self._former:
            self._former[node.node_id] = has_former_process(self._state, self._observations, node)
        return self._former[node.node_id]

    def why_released(self, node: Node | None, since: Epoch, *, says_so: bool) -> str:
        """As :func:`why_released`."""
        if node is None:
            return why_released(self._state, self._observations, None, since, says_so=says_so)
        key = node.node_id, since, says_so
        if key not in self._whys:
            self._whys[key] = why_released(self._state, self._observations, node, since, says_so=says_so)
        return self._whys[key]

    def passed_ms(self, node_id: NodeId, since: Epoch) -> int:
        """The log time in the partition of a node's heartbeats since the first tick there that names an epoch."""
        key = node_id, since
        if key not in self._passed_ms:
            self._passed_ms[key] = self._observations.home_of(node_id).since_epoch_ms(since)
        return self._passed_ms[key]
