"""How long a step of a handoff, and an order, may stand in virtual time while a leader is fit.

Nothing waits for ever: neither for a node that does not do its step, nor for other orders, nor because a leader has
gone.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from controlplane.core.bundles.bundle import Bundle
from controlplane.core.bundles.events import BundleOrdersEnded, BundleOrdersGiven, BundlesAssigned
from controlplane.core.bundles.ownership_state import OwnershipState
from controlplane.core.log.decision import Decision
from controlplane.core.log.state import State
from controlplane.node import HandoffSettings
from tests.helpers.fencing_bounds import COMMIT_MS, SLOWEST_CLOCK, Bounds
from tests.simulation.invariants.bounds import LOOK_EVERY_MS, BoundsWatch
from tests.simulation.invariants.consent import CLOCK_SHARE, ConsentWatch
from tests.simulation.invariants.log_watch import LogWatch
from tests.simulation.invariants.verdicts import Verdicts
from tests.simulation.network import Network
from tests.simulation.world import World

RELEASED_IN_TIME: Final = "a node that reads the table has released a bundle when its own limits are over"
TAKEN_IN_TIME: Final = "a bundle that its owner does not release goes on when the owner has certainly stopped"
STEP_IN_TIME: Final = "a bundle that is not opened or divided goes on after the policy's limit"
BEGUN_IN_TIME: Final = "an order for a bundle begins as soon as there is room for it"
GIVEN_ITS_TIME: Final = "a node that is to own bundles has the policy's limit for opening one, before another is chosen"
TO_MEMBERS: Final = "no bundle is left to a next owner that is no member"
WITHOUT_HANDOFF: Final = "a bundle whose next owner is lost has another owner at once: it waits for no further handoff"
ORDERS_KEPT: Final = "an order for a bundle stands until an event says what came of it"
_SLACK_MS: Final = 3 * COMMIT_MS


@dataclass
class HandoffBoundsWatch:
    """Counts at intervals."""

    world: World
    log: LogWatch
    verdicts: Verdicts
    bounds: BoundsWatch
    consent: ConsentWatch
    _standing: set[str] = field(default_factory=set)
    _assigned_at_ms: dict[tuple[str, int], int] = field(default_factory=dict)
    _waited_ms: dict[tuple[str, str, int], int] = field(default_factory=dict)

    def see(self, before: State, decision: Decision, after: State) -> None:
        """A decision was committed."""
        for event in decision.events:
            if isinstance(event, BundlesAssigned):
                self._see_rows(event.bundles, before, decision, after)
            elif isinstance(event, BundleOrdersGiven):
                self._standing |= {each.bundle_id for each in event.orders}
            elif isinstance(event, BundleOrdersEnded):
                self._standing -= {each.bundle_id for each in event.ended}
        kept = after.bundles.orders.keys()
        text = f"after decision {decision.seq} there are orders {sorted(kept)}, by events {sorted(self._standing)}"
        self.verdicts.judge(ORDERS_KEPT, self._standing == kept, text)
        for bundle_id, state in after.bundles.in_flight.items():
            if state is OwnershipState.ASSIGNING:
                node = after.membership.nodes.get(after.bundles.by_id[bundle_id].next_owner or "")
                text = f"decision {decision.seq} leaves {bundle_id} to {node and node.node_id}"
                self.verdicts.judge(TO_MEMBERS, node is not None and node.may_hold, text)
        for bundle_id, state in before.bundles.in_flight.items():
            former = before.bundles.by_id[bundle_id]
            node = after.membership.nodes.get(former.next_owner or "")
            if state is OwnershipState.ASSIGNING and (node is None or not node.may_hold):
                waits = after.bundles.in_flight.get(bundle_id) is OwnershipState.ASSIGNING
                text = f"decision {decision.seq} lets {bundle_id} wait, whose next owner {former.next_owner} is lost"
                self.verdicts.judge(WITHOUT_HANDOFF, not waits, text)

    def _see_rows(self, rows: Iterable[Bundle], before: State, decision: Decision, after: State) -> None:
        """Note when nodes were told to open bundles, and judge where others are told."""
        now_ms = self.world.scheduler.now_ms
        for row in rows:
            former = before.bundles.by_id.get(row.bundle_id)
            if row.state is not OwnershipState.ASSIGNING:
                continue
            self._assigned_at_ms[row.bundle_id, row.version] = now_ms
            if former is None or former.state is not OwnershipState.ASSIGNING:
                continue
            name = former.next_owner or ""
            node, now = before.membership.nodes[name], after.membership.nodes.get(name)
            if now is None or not now.may_hold or node.incarnation != now.incarnation:
                continue
            passed_ms = now_ms - self._assigned_at_ms[row.bundle_id, former.version]
            is_wanted = name in after.membership.owner_ids
            holds = not is_wanted or passed_ms >= CLOCK_SHARE * after.cluster.policy.handoff_limit_ms
            text = f"decision {decision.seq} takes {row.bundle_id} from {name} after {passed_ms} ms"
            self.verdicts.judge(GIVEN_ITS_TIME, holds, text)

    def look(self) -> None:
        """Count the time since the last look for all that waits, if it counts."""
        bundles = self.log.state.bundles
        if not (bundles.in_flight or bundles.orders):
            self._waited_ms.clear()
            return
        if not self.bounds.leader_is_fit:
            return
        policy = self.log.state.cluster.policy
        flying = [each for each in bundles.by_id.values() if each.ownership_state.is_in_flight]
        has_room = not policy.bundle_moves_in_flight or len(flying) < policy.bundle_moves_in_flight
        settings = HandoffSettings()
        waits: dict[tuple[str, str, int], int] = {}
        for row in flying:
            if row.state is OwnershipState.RELEASING:
                waits[TAKEN_IN_TIME, row.bundle_id, row.version] = self._longest_release_ms
                if self._reads(row):
                    own_ms = settings.accepted_limit_ms + settings.release_limit_ms
                    waits[RELEASED_IN_TIME, row.bundle_id, row.version] = own_ms
            elif len(self.log.state.membership.owner_ids) > 1:
                waits[STEP_IN_TIME, row.bundle_id, row.version] = policy.handoff_limit_ms
        for bundle_id in bundles.orders:
            row = bundles.by_id[bundle_id]
            is_barred = row.owner is not None and self.consent.waits_for_former_process(row.owner, self.log.state)
            if has_room and not row.ownership_state.is_in_flight and not is_barred:
                waits[BEGUN_IN_TIME, bundle_id, row.version] = 0
        self._waited_ms = {each: self._waited_ms.get(each, 0) + LOOK_EVERY_MS for each in waits}
        for (invariant, bundle_id, version), bound_ms in waits.items():
            waited_ms = self._waited_ms[invariant, bundle_id, version]
            row = bundles.by_id[bundle_id]
            text = f"{bundle_id}, {row.ownership_state.value} of {row.owner} to {row.next_owner}, for {waited_ms} ms"
            self.verdicts.judge(invariant, waited_ms <= bound_ms / SLOWEST_CLOCK + _SLACK_MS, text)

    @property
    def _longest_release_ms(self) -> int:
        return Bounds(cluster=self.log.state.cluster, tick_ms=self.world.setting.tick_interval_ms).unsaid_release_ms

    def _reads(self, row: Bundle) -> bool:
        """Whether the owner's process runs, reaches everything, and has read that it has to release a bundle."""
        name = row.owner or ""
        agent, machine = self.world.agents.get(name), self.world.machines.get(name)
        if agent is None or machine is None or not machine.runs or name in self.world.started_twice:
            return False
        return machine.network == Network() and agent.table is not None and agent.table.epoch >= row.state_epoch
