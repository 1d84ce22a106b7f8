"""A world whose nodes hand bundles off."""

from collections.abc import Callable, Iterable

from controlplane.core.bundles.bundle import Bundle, Namespace, equal_bundles
from controlplane.core.bundles.events import BundleOrdersEnded, BundleOrdersGiven, NamespaceCreated
from controlplane.core.bundles.orders import BundleOrder, EndedOrder
from controlplane.core.bundles.ownership_state import OwnershipState
from controlplane.core.bundles.reports import BundleStep, BundleStepReport
from controlplane.core.cluster.policy import ClusterPolicy
from controlplane.core.deciding.bundles.hand_off import repair_bundles
from controlplane.core.intents.intent import IntentKind
from controlplane.core.log.decision import CauseKind
from controlplane.core.log.draft import Draft
from controlplane.core.log.events import Event
from controlplane.core.membership.inputs import Heartbeat
from controlplane.core.membership.node import NodeRole
from controlplane.core.values.identifiers import Epoch
from tests.helpers.process_world import ProcessWorld

STEP_OF = {
    OwnershipState.RELEASING: BundleStep.RELEASED,
    OwnershipState.ASSIGNING: BundleStep.OPENED,
    OwnershipState.SPLITTING: BundleStep.DIVIDED,
}


def node_to_act(bundle: Bundle) -> str | None:
    """The node that has to do the next step of a bundle in flight."""
    return bundle.next_owner if bundle.state is OwnershipState.ASSIGNING else bundle.owner


class BundleWorld(ProcessWorld):
    """A cluster with bundles.

    Attributes:
        idle: steps that nodes do not do, by node and step: (node, *OPENED*).
        bounds: the bounds that owners find where a split names an algorithm.
        stuck: what a node reports whatever the table says, by node: its heartbeats are those of an older table.
    """

    def __init__(self, policy: ClusterPolicy | None = None) -> None:
        """A cluster without nodes."""
        super().__init__(policy or ClusterPolicy(slot_count=4))
        self.idle: set[tuple[str, BundleStep]] = set()
        self.bounds: tuple[int, ...] = ()
        self.stuck: dict[str, tuple[BundleStepReport, ...]] = {}

    def report(self, node_id: str) -> Heartbeat:
        """A heartbeat that reports each step which the node has to do, and is not kept from doing."""
        node = self.state.membership.nodes.get(node_id)
        flying = [self.state.bundles.by_id[bundle_id] for bundle_id in self.state.bundles.in_flight]
        steps = [
            BundleStepReport(each.bundle_id, each.version, step, () if each.children else self._found(step))
            for each in flying
            for step in (STEP_OF[each.ownership_state],)
            if node_to_act(each) == node_id and (node_id, step) not in self.idle
            if node is not None and node.hands_off
        ]
        return Heartbeat(
            node_id,
            self.living[node_id],
            self.now_ms,
            Epoch(self.state.epoch),
            NodeRole.DATA,
            bundle_steps=self.stuck.get(node_id, tuple(steps)),
        )

    def _found(self, step: BundleStep) -> tuple[int, ...]:
        return self.bounds if step is BundleStep.DIVIDED else ()

    def create(
        self,
        namespace: str = "kv",
        count: int = 4,
        divide: Callable[[str, int], tuple[Bundle, ...]] = equal_bundles,
    ) -> None:
        """A namespace with bundles, which nodes own at once; ``divide`` has its bounds."""
        draft = Draft(self.state)
        draft.because(CauseKind.INTENT, "test", "test")
        draft.add(NamespaceCreated(Namespace(namespace, count), divide(namespace, count)))
        repair_bundles(draft, self.observations, frozenset())
        self.commit(draft.seal(self.state.decided_at_ms, {}))

    def give(self, *orders: BundleOrder) -> None:
        """Give orders, as intents do."""
        draft = Draft(self.state)
        draft.because(CauseKind.INTENT, "test", "test")
        draft.add(BundleOrdersGiven(orders))
        self.commit(draft.seal(self.state.decided_at_ms, {}))

    def end_namespace(self, namespace: str = "kv") -> None:
        """An operator deletes a namespace. The leader may take steps in the same decision."""
        self.ask(IntentKind.DELETE_NAMESPACE.value, namespace=namespace)

    def bundle(self, number: int = 0, namespace: str = "kv") -> Bundle:
        """A bundle of a namespace, by its place in the order of ranges."""
        found = sorted((each.lower, each) for each in self.state.bundles.by_id.values() if each.namespace == namespace)
        return [each for _, each in found][number]

    def ended(self) -> list[EndedOrder]:
        """The orders that have ended so far."""
        events: Iterable[Event] = (event for decision in self.decisions for event in decision.events)
        return [each for event in events if isinstance(event, BundleOrdersEnded) for each in event.ended]
