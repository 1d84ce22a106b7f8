"""The owners of accepted writes: never two at a time, by the fencing tokens of the writes.

A node that died and came back is another owner, and has to have another token, also where the slot policy leaves the
dead in the table, as SOFARegistry does.
"""

from controlplane.core.values.identifiers import NodeId
from controlplane.node import FencingToken
from tests.simulation.invariants.verdicts import Verdicts

ONE_OWNER = "two processes accept no write under the same token, and none under an older one than was used"


class OwnershipWatch:
    """Checks every accepted write, in the order of acceptance."""

    def __init__(self, verdicts: Verdicts) -> None:
        """Nothing was accepted."""
        self._verdicts = verdicts
        self._last: dict[str, tuple[FencingToken, NodeId, object]] = {}

    def accepted(self, node_id: NodeId, process: object, key: str, token: FencingToken) -> None:
        """A process of a node has accepted a write of a key."""
        known, last_node, last_process = self._last.get(key, (token, node_id, process))
        holds = token > known or (token == known and process is last_process)
        detail = f"{node_id} accepts {key} under {tuple(token)} after {last_node} did under {tuple(known)}"
        self._verdicts.judge(ONE_OWNER, holds, detail)
        self._last[key] = token, node_id, process
