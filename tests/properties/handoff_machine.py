"""What happens to nodes in random histories of handoffs, of slots as of bundles."""

from typing import Generic, TypeVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from controlplane.core.cluster.policy import ClusterPolicy
from controlplane.core.deciding.consent import release_bound_ms
from tests.helpers.process_world import ProcessWorld

NODES = ("n1", "n2", "n3", "n4")
LONG_ENOUGH_MS = release_bound_ms(ClusterPolicy().silence_limit_ms) + 5_000
"""Time within which every handoff ends that nodes carry out: a release may wait for a former process."""

AnyWorld = TypeVar("AnyWorld", bound=ProcessWorld)


class HandoffMachine(RuleBasedStateMachine, Generic[AnyWorld]):
    """Nodes, their faults, orders for them, and time. A subclass begins with its world, and adds what it moves.

    Attributes:
        world: the cluster; missing until the machine has begun.
    """

    world: AnyWorld

    def living_node(self, pick: int) -> str:
        """One of the nodes whose process runs; there has to be one."""
        return sorted(self.world.living)[pick % len(self.world.living)]

    @rule(node=st.sampled_from(NODES), hands_off=st.sampled_from([True, True, True, False]))
    def start(self, node: str, hands_off: bool) -> None:
        """A process begins, perhaps beside a former one of the node."""
        self.world.start(node, hands_off=hands_off)

    @precondition(lambda self: self.world.living)
    @rule(pick=st.integers(0, 3))
    def die(self, pick: int) -> None:
        """A process ends without a word."""
        self.world.die(self.living_node(pick))

    @precondition(lambda self: self.world.living)
    @rule(pick=st.integers(0, 3), kind=st.sampled_from(["drain_node", "undrain_node", "exclude_node", "include_node"]))
    def order_node(self, pick: int, kind: str) -> None:
        """An operator drains or excludes a node, or takes it back."""
        self.world.ask(kind, node=self.living_node(pick))

    @rule(elapsed_ms=st.sampled_from([100, 300, 1_000, 3_000]))
    def go(self, elapsed_ms: int) -> None:
        """Time passes."""
        self.world.go(elapsed_ms)
