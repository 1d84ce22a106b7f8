"""Scripts in which nodes are gone for so long that they are forgotten."""

from dataclasses import replace
from typing import Final

from controlplane.codec.inputs import encode_input
from controlplane.config import MEMBERSHIP
from controlplane.core.membership.inputs import NodeJoined
from controlplane.core.membership.node import NodeRole, NodeStatus
from tests.simulation.invariants.verdicts import BrokenInvariantError
from tests.simulation.script import USUAL, Script, begun

NEVER_AGAIN: Final = "a node that was forgotten comes back, and with an incarnation that it never had"
FORGETFUL: Final = replace(
    USUAL, policy=replace(USUAL.policy, forget_nodes_after_ms=30_000, positions_interval_ms=4_000)
)


def let_node_be_forgotten(script: Script) -> int:
    """Let node n4 stand still until the cluster has forgotten it; return the incarnation that it had."""
    former = script.state.membership.nodes["n4"].incarnation
    script.pause("n4", 45_000)
    script.go_on(44_000)
    if "n4" in script.state.membership.nodes:
        raise BrokenInvariantError("a node that is gone for long is forgotten", str(script.state.membership.nodes))
    return former


def a_node_stands_still_until_it_is_forgotten() -> None:
    """Its process goes on then, and still has its incarnation."""
    script = begun(FORGETFUL)
    former = let_node_be_forgotten(script)
    script.go_on(6_000)
    node = script.state.membership.nodes.get("n4")
    if node is None or node.status is not NodeStatus.ACTIVE or node.incarnation <= former:
        raise BrokenInvariantError(NEVER_AGAIN, f"it had {former}, and the cluster knows {node}")
    script.judge_end()


def a_name_comes_back_as_it_was() -> None:
    """A join of the forgotten process arrives late: with its incarnation, it would have a token of its former life."""
    script = begun(FORGETFUL)
    joined = NodeJoined("n4", let_node_be_forgotten(script), NodeRole.DATA, (), "", 1, 0, "1", 0)
    script.world.send(MEMBERSHIP, "n4", encode_input(joined))
    script.go_on(900)
    if (node := script.state.membership.nodes.get("n4")) is not None:
        raise BrokenInvariantError(NEVER_AGAIN, f"it was admitted as {node}")
    script.go_on(6_000)
    script.judge_end()
