"""Who accepted writes under which token: no two owners at a time, judged by the tokens that the writes carry.

A node that died and came back is another owner, and has to have another token. Where the slot policy may leave the dead
in the table, as SOFARegistry does, it may find its former slots there under the former token: its former process is
gone, or has fenced itself, by then.
"""

from collections.abc import Callable

from controlplane.core.identifiers import NodeId
from controlplane.node import FencingToken
from tests.simulation.invariants.verdicts import Verdicts

ONE_OWNER = "two nodes accept no write under the same token, and none under an older one than was used"


class OwnershipWatch:
    """Judges every accepted write, in the order in which they were accepted."""

    def __init__(self, verdicts: Verdicts, dead_may_hold: Callable[[], bool]) -> None:
        """Nothing was accepted; ``dead_may_hold`` is asked where a node comes back under the same token."""
        self._verdicts = verdicts
        self._dead_may_hold = dead_may_hold
        self._last: dict[str, tuple[FencingToken, NodeId, object]] = {}

    def accepted(self, node_id: NodeId, process: object, key: str, token: FencingToken) -> None:
        """A process of a node has accepted a write of a key."""
        known, last_node, last_process = self._last.get(key, (token, node_id, process))
        same = process is last_process or (node_id == last_node and self._dead_may_hold())
        holds = token > known or (token == known and same)
        detail = f"{node_id} accepts {key} under {tuple(token)} after {last_node} did under {tuple(known)}"
        self._verdicts.judge(ONE_OWNER, holds, detail)
        self._last[key] = token, node_id, process
