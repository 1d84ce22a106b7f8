"""Goes on with the bundles in flight: takes the steps that their nodes report, and ends those whose time is over."""

from controlplane.core.bundles.bundle import Bundle
from controlplane.core.bundles.orders import BundleOrderKind, OrderOutcome
from controlplane.core.bundles.ownership_channel.live_rows import (
    assigned_again,
    assigning,
    freed,
    given_up,
    lost,
    opened,
)
from controlplane.core.bundles.ownership_state import OwnershipState
from controlplane.core.bundles.ranges import inner_bounds, range_of_name
from controlplane.core.bundles.reports import BundleStep, BundleStepReport
from controlplane.core.cluster.policy import MAX_BUNDLES_PER_NAMESPACE
from controlplane.core.deciding.bundles.bundle_round import BundleRound
from controlplane.core.membership.node import Node
from controlplane.core.values.identifiers import Epoch, NodeId
from controlplane.errors import ConfigurationError


class Steps:
    """The steps of one decision."""

    def __init__(self, work: BundleRound) -> None:
        """Add rows to this round."""
        self._work = work
        self._reports: dict[NodeId, tuple[Epoch, dict[str, BundleStepReport]]] = {}

    def take(self) -> None:
        """Take every step that is due. The cost is that of the bundles in flight."""
        work = self._work
        splits = []
        for bundle_id, state in work.state.bundles.in_flight.items():
            bundle = work.state.bundles.by_id[bundle_id]
            if state is OwnershipState.RELEASING:
                self._release(bundle)
            elif state is OwnershipState.ASSIGNING:
                self._assign(bundle)
            elif bounds := self._divide(bundle):
                splits.append((bundle_id, bounds))
        work.end_phase()
        for bundle_id, bounds in splits:
            work.split(bundle_id, bounds)
        self._assign_freed()
        work.end_phase()
        self._open_without_handoff()
        work.end_phase()

    def _release(self, bundle: Bundle) -> None:
        """*Releasing* goes on when its owner certainly serves it no more."""
        work, node = self._work, self._work.node(bundle.owner)
        says_so = self._report(node, bundle, BundleStep.RELEASED) is not None
        why = work.consents.why_released(node, bundle.state_epoch, says_so=says_so)
        if not why:
            return
        if not says_so:
            work.note(f"{bundle.bundle_id} is taken: {why}")
        if bundle.next_owner is None:
            work.put(freed(bundle, work.epoch), "released")
        elif work.may_own(bundle.next_owner) and not work.is_ending(bundle):
            work.put(assigning(bundle, bundle.next_owner, work.epoch), "released")
        else:
            work.put(lost(bundle, work.epoch), "released")

    def _assign(self, bundle: Bundle) -> None:
        """*Assigning* goes on when its next owner has opened it, has not within its time, or is to own nothing."""
        work, node = self._work, self._work.node(bundle.next_owner)
        if work.is_ending(bundle):
            work.put(lost(bundle, work.epoch), "not assigned")
        elif node is not None and self._report(node, bundle, BundleStep.OPENED) is not None:
            self._open(bundle, node.node_id)
        elif node is not None and not work.may_own(node.node_id):
            self._assign_again(bundle, node, "is to own no bundles any more")
        elif node is not None and self._is_over(node, bundle):
            self._assign_again(bundle, node, f"did not open it within {self._limit}")

    def _assign_again(self, bundle: Bundle, node: Node, why: str) -> None:
        """Assign a bundle to another node than its next owner, if there is one."""
        work = self._work
        other = work.placement.choose(rather_not=node.node_id)
        if other is not None and other != node.node_id:
            work.note(f"{bundle.bundle_id} goes to {other}: {node.node_id} {why}")
            work.put(assigned_again(bundle, other, work.epoch), "assigned again")

    def _divide(self, bundle: Bundle) -> tuple[int, ...]:
        """The inner bounds if a *Splitting* bundle is to be split now; empty otherwise."""
        work, node = self._work, self._work.node(bundle.owner)
        if work.is_ending(bundle):
            self._give_up(bundle, "its namespace is being deleted")
        elif node is not None and (report := self._report(node, bundle, BundleStep.DIVIDED)) is not None:
            if bundle.children:
                return tuple(range_of_name(name).lower for name in bundle.children[1:])
            problem = _bounds_problem(bundle, report.bounds)
            if not problem:
                return report.bounds
            self._give_up(bundle, f"{node.node_id} finds {problem}, by {bundle.split_algorithm}")
        elif node is not None and self._is_over(node, bundle):
            self._give_up(bundle, f"{node.node_id} did not divide it within {self._limit}")
        return ()

    def _give_up(self, bundle: Bundle, why: str) -> None:
        """Leave a bundle whole. An order to end, which has taken the place of that to split, stands on."""
        work = self._work
        work.put(given_up(bundle, work.epoch), "not split")
        order = work.state.bundles.orders.get(bundle.bundle_id)
        if order is not None and order.kind is BundleOrderKind.SPLIT:
            work.end_order(bundle.bundle_id, OrderOutcome.FAILED, f"not split: {why}")

    def _open(self, bundle: Bundle, owner: NodeId) -> None:
        self._work.put(opened(bundle, self._work.epoch), "opened")
        self._work.end_move(bundle.bundle_id, owner)

    def _assign_freed(self) -> None:
        """Assign what was released without a next owner, rather not to the node that has released it."""
        work = self._work
        for bundle in work.take_freed():
            if work.is_ending(bundle):
                work.end_order(bundle.bundle_id, OrderOutcome.DONE, "released for good")
                continue
            chosen = work.placement.choose(rather_not=bundle.former_owner)
            if chosen is not None:
                work.put(assigning(bundle, chosen, work.epoch), "assigned")

    def _open_without_handoff(self) -> None:
        """Let next owners own at once that take part in no handoffs, because they report no opening."""
        work = self._work
        for bundle_id, state in work.state.bundles.in_flight.items():
            bundle = work.state.bundles.by_id[bundle_id]
            node = work.node(bundle.next_owner)
            if state is OwnershipState.ASSIGNING and node is not None and not node.hands_off:
                self._open(bundle, node.node_id)

    @property
    def _limit(self) -> str:
        return f"{self._work.state.cluster.policy.handoff_limit_ms} ms of log time"

    def _is_over(self, node: Node, bundle: Bundle) -> bool:
        """Whether the time for a step is over, by the clock of the node's partition."""
        passed_ms = self._work.consents.passed_ms(node.node_id, bundle.state_epoch)
        return passed_ms >= self._work.state.cluster.policy.handoff_limit_ms

    def _report(self, node: Node | None, bundle: Bundle, step: BundleStep) -> BundleStepReport | None:
        """The node's report that it has done a step for this very row; None without one.

        Versions begin again in a namespace that takes the name of a deleted one, so that the heartbeat has to be one of
        a node that has read the row.
        """
        if node is None:
            return None
        if node.node_id not in self._reports:
            beat = self._work.observations.latest_heartbeat(node.node_id, node.incarnation)
            steps = {} if beat is None else {each.bundle_id: each for each in beat.bundle_steps}
            self._reports[node.node_id] = Epoch(0) if beat is None else beat.table_epoch, steps
        has_read, steps = self._reports[node.node_id]
        report = steps.get(bundle.bundle_id)
        if report is None or has_read < bundle.state_epoch:
            return None
        return report if (report.version, report.step) == (bundle.version, step) else None


def _bounds_problem(bundle: Bundle, bounds: tuple[int, ...]) -> str:
    """What is wrong with the bounds that an owner has found, in few words; empty if they divide its bundle."""
    if not bounds:
        return "no bounds"
    if len(bounds) >= MAX_BUNDLES_PER_NAMESPACE:  # an operator is refused as many, too
        return f"{len(bounds)} bounds, and one split makes {MAX_BUNDLES_PER_NAMESPACE} parts at most"
    try:
        divides = inner_bounds(bundle.hash_range, 0, bounds) == bounds
    except ConfigurationError:
        divides = False
    return "" if divides else f"bounds {list(bounds)!r:.80}, which do not divide it"
