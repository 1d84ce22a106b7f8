"""The owners of accepted writes: never two at a time, by the fencing tokens of the writes.

A node that died and came back is another owner, and has to have another token. Where the slot policy may leave the dead
in the table, as SOFARegistry does, it may find its former slots there under the former token: its former process is
gone, or has fenced itself, by then. What counts is the policy that admitted it: the next takes nothing from it. Each
admission has one heir, the first process of the node that accepts a write after it.
"""

from collections.abc import Callable
from typing import Final

from controlplane.core.log.decision import Decision
from controlplane.core.log.state import State
from controlplane.core.membership.events import NodeAdmitted
from controlplane.core.values.identifiers import NodeId
from controlplane.node import FencingToken
from tests.simulation.invariants.verdicts import Verdicts

ONE_OWNER = "two nodes accept no write under the same token, and none under an older one than was used"

_NOBODY_YET: Final = object()


class OwnershipWatch:
    """Checks every accepted write, in the order of acceptance."""

    def __init__(self, verdicts: Verdicts, dead_may_hold: Callable[[State], bool]) -> None:
        """Nothing was accepted; ``dead_may_hold`` says whether a node that is admitted may find its former slots."""
        self._verdicts = verdicts
        self._dead_may_hold = dead_may_hold
        self._heirs: dict[NodeId, object] = {}
        self._last: dict[str, tuple[FencingToken, NodeId, object]] = {}

    def see(self, before: State, decision: Decision, after: State) -> None:
        """Record the former slots that each admitted node may find."""
        for event in decision.events:
            if isinstance(event, NodeAdmitted):
                node_id = event.node.node_id
                self._heirs.pop(node_id, None)
                if self._dead_may_hold(before) or self._dead_may_hold(after):
                    self._heirs[node_id] = _NOBODY_YET

    def accepted(self, node_id: NodeId, process: object, key: str, token: FencingToken) -> None:
        """A process of a node has accepted a write of a key."""
        known, last_node, last_process = self._last.get(key, (token, node_id, process))
        if self._heirs.get(node_id) is _NOBODY_YET:
            self._heirs[node_id] = process
        same = process is last_process or (node_id == last_node and self._heirs.get(node_id) is process)
        holds = token > known or (token == known and same)
        detail = f"{node_id} accepts {key} under {tuple(token)} after {last_node} did under {tuple(known)}"
        self._verdicts.judge(ONE_OWNER, holds, detail)
        self._last[key] = token, node_id, process
