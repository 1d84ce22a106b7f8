"""The rows, ended orders and evidence that one decision adds for bundles, phase by phase."""

from collections import Counter
from collections.abc import Iterable

from controlplane.core.bundles.bundle import Bundle
from controlplane.core.bundles.events import (
    BundleOrdersEnded,
    BundleOrdersGiven,
    BundlesAssigned,
    BundleSplit,
    NamespaceDeleted,
)
from controlplane.core.bundles.orders import BundleOrder, BundleOrderKind, EndedOrder, OrderOutcome
from controlplane.core.bundles.ownership_channel.live_rows import children_of, range_names
from controlplane.core.bundles.ownership_state import OwnershipState
from controlplane.core.deciding.bundles.placement import FewestBundles
from controlplane.core.deciding.consent import Consents
from controlplane.core.deciding.observations import Observations
from controlplane.core.log.decision import CauseKind
from controlplane.core.log.draft import Draft
from controlplane.core.log.state import State
from controlplane.core.membership.node import Node
from controlplane.core.values.identifiers import Epoch, NamespaceName, NodeId

_MOVES = frozenset({BundleOrderKind.TRANSFER, BundleOrderKind.UNLOAD, BundleOrderKind.RELIEVE})


class BundleRound:
    """One decision's work on bundles.

    Rows are added in phases, because a bundle may take several steps in one decision: the row of the next step follows
    from that of the phase before.
    """

    def __init__(self, draft: Draft, observations: Observations) -> None:
        """Begin without rows. The draft holds the decision's changes of members and orders already."""
        self.draft = draft
        self.observations = observations
        self.consents = Consents(draft.state, observations)
        # Found once: it takes a look at every node.
        self._owner_ids = draft.state.membership.owner_ids
        self.placement = FewestBundles(draft.state.bundles, self._owner_ids)
        self._rows: dict[str, Bundle] = {}
        self._ended: dict[str, EndedOrder] = {}
        self._done: Counter[str] = Counter()
        self._notes: list[str] = []
        self._freed: list[str] = []
        self._maybe_over: set[NamespaceName] = set()

    @property
    def state(self) -> State:
        """The state with the phases so far."""
        return self.draft.state

    @property
    def epoch(self) -> Epoch:
        """The epoch of the rows."""
        return self.draft.epoch

    def node(self, node_id: NodeId | None) -> Node | None:
        """The node with this name; None without a name, or for one that is forgotten."""
        return self.state.membership.nodes.get(node_id) if node_id is not None else None

    def may_own(self, node_id: NodeId | None) -> bool:
        """Whether a node is to own bundles."""
        return node_id in self._owner_ids

    def is_ending(self, bundle: Bundle) -> bool:
        """Whether the bundle's namespace is being deleted."""
        return self.state.bundles.namespaces[bundle.namespace].is_ending

    def put(self, row: Bundle, what: str) -> None:
        """Add the next row of a bundle, at most one in a phase; ``what`` is counted in the decision's cause."""
        self._rows[row.bundle_id] = row
        self._done[what] += 1

    def note(self, sentence: str) -> None:
        """Add a sentence to the decision's cause, for what an operator has to know of a single bundle."""
        self._notes.append(sentence)

    def has_row(self, bundle_id: str) -> bool:
        """Whether the present phase has a row of a bundle."""
        return bundle_id in self._rows

    def end_order(self, bundle_id: str, outcome: OrderOutcome, detail: str) -> None:
        """End a bundle's order, if one stands."""
        order = self.state.bundles.orders.get(bundle_id)
        if order is not None:
            self._ended[bundle_id] = EndedOrder(bundle_id, outcome, detail)
            if order.kind is BundleOrderKind.END:
                self._maybe_over.add(self.state.bundles.by_id[bundle_id].namespace)

    def end_move(self, bundle_id: str, owner: NodeId) -> None:
        """End a bundle's order to move, if one stands: a node owns it from this phase on."""
        order = self.state.bundles.orders.get(bundle_id)
        if order is None or order.kind not in _MOVES:
            return
        if order.destination in (None, owner):
            self.end_order(bundle_id, OrderOutcome.DONE, f"{owner} owns it")
        else:
            self.end_order(bundle_id, OrderOutcome.FAILED, f"{order.destination} did not take it: {owner} owns it")

    def end_phase(self) -> None:
        """Add the phase's events. Nodes that are to own nothing are relieved of what they own after it."""
        rows, ended = self._rows, self._ended
        self._rows, self._ended = {}, {}
        if rows:
            self.draft.add(BundlesAssigned(tuple(row for _, row in sorted(rows.items()))))
            self._freed += [each.bundle_id for each in rows.values() if each.state is OwnershipState.FREE]
        if ended:
            self._done["orders ended"] += len(ended)
            self.draft.add(BundleOrdersEnded(tuple(each for _, each in sorted(ended.items()))))
        if rows or ended:
            self.relieve(sorted({*rows, *ended}))

    def take_freed(self) -> list[Bundle]:
        """The bundles that earlier phases have freed, each once."""
        freed, self._freed = self._freed, []
        return [self.state.bundles.by_id[bundle_id] for bundle_id in freed]

    def split(self, bundle_id: str, bounds: tuple[int, ...]) -> None:
        """Replace a bundle by its parts. Its order ends; to call between phases."""
        bundle = self.state.bundles.by_id[bundle_id]
        self.end_order(bundle_id, OrderOutcome.DONE, f"split into {', '.join(range_names(bundle, bounds))}")
        self.end_phase()
        children = children_of(bundle, bounds, self.epoch)
        self.draft.add(BundleSplit(bundle_id, children))
        self._done["split"] += 1
        self.relieve(child.bundle_id for child in children)

    def relieve(self, bundle_ids: Iterable[str]) -> None:
        """Order that those of the bundles leave their owners which are to own nothing, unless an order stands."""
        image = self.state.bundles
        orders = [
            BundleOrder(bundle_id, BundleOrderKind.RELIEVE)
            for bundle_id in bundle_ids
            if (bundle := image.by_id[bundle_id]).ownership_state is OwnershipState.OWNED
            and not self.may_own(bundle.owner)
            and bundle_id not in image.orders
            and not self.is_ending(bundle)
        ]
        if orders:
            self._done["to relieve"] += len(orders)
            self.draft.add(BundleOrdersGiven(tuple(orders)))

    def finish(self) -> None:
        """End namespaces of which no bundle is left to release, and say what was done, as the decision's cause."""
        ending = self._maybe_over
        for bundle_id in self.state.bundles.orders:
            if not ending:
                break
            ending.discard(self.state.bundles.by_id[bundle_id].namespace)
        bundle_ids: dict[NamespaceName, list[str]] = {name: [] for name in ending}
        for bundle in self.state.bundles.by_id.values() if ending else ():
            if bundle.namespace in ending:
                bundle_ids[bundle.namespace].append(bundle.bundle_id)
        for name in sorted(ending):
            self.draft.add(NamespaceDeleted(name, tuple(bundle_ids[name])))
            self.note(f"namespace {name} has ended")
        done = [f"{count} {what}" for what, count in sorted(self._done.items())]
        if done or self._notes:
            evidence = "; ".join([*done, *self._notes])
            self.draft.because(CauseKind.BUNDLES_HANDED_OFF, self.state.log_id, evidence)
