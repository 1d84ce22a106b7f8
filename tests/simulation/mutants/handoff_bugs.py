"""Bugs in handoffs of slots and bundles, and where each shows."""

from typing import Final

from tests.simulation.mutants.handoff_scenes import (
    a_bundle_leaves_and_comes_back_unseen,
    a_leader_dies_while_orders_stand,
    a_leader_reads_no_more_when_it_has_released,
    a_next_owner_dies,
    a_next_owner_does_not_open_a_bundle,
    a_process_is_replaced_and_relieved,
    a_release_is_taken_back,
    a_release_is_taken_back_and_asked_for_again,
    a_service_does_not_close_its_bundles,
    an_owner_finds_no_bounds,
    an_owner_reads_nothing_of_its_release,
    bundles_are_split,
    bundles_move_in_a_quiet_cluster,
    requests_outlast_a_release,
    services_take_their_time,
)
from tests.simulation.mutants.mutant import Mutant

_LEADER: Final = (
    Mutant(
        "takes slots by one row from leaders that could release them",
        "controlplane.core.slots.handoffs:goes_by_handoff",
        "return planned.leader != now.leader",
        "return False",
        scene=bundles_move_in_a_quiet_cluster,
    ),
    Mutant(
        "takes bundles from a node that drains, whatever that says",
        "controlplane.core.deciding.consent:why_released",
        "if node is None or not node.lives:",
        'if node is None or node.status.value != "active":',
        scene=services_take_their_time,
    ),
    Mutant(
        "takes what a leader said of an earlier release for what it says of this one",
        "controlplane.core.deciding.slot_witness:witness_of",
        "says_so = (slot_id, since) in said[node_id]",
        "says_so = slot_id in {each for each, _ in said[node_id]}",
        scene=a_release_is_taken_back_and_asked_for_again,
        seed=45,
    ),
    Mutant(
        "forgets that a process took the place of another one: lets it speak for that one",
        "controlplane.core.deciding.admission:_join",
        "_replaced_epoch(draft, known) if hands_off",
        "Epoch(0) if hands_off",
        scene=a_process_is_replaced_and_relieved,
    ),
    Mutant(
        "waits for the release of a bundle from the moment at which its owner became that",
        "controlplane.core.deciding.bundles.steps:Steps._release",
        "node, bundle.state_epoch, says_so",
        "node, bundle.owner_epoch, says_so",
        scene=an_owner_reads_nothing_of_its_release,
    ),
    Mutant(
        "waits for the release of a slot from the first tick that it remembers",
        "controlplane.core.deciding.slot_witness:witness_of",
        "node, since, says_so",
        "node, Epoch(0), says_so",
        scene=an_owner_reads_nothing_of_its_release,
    ),
    Mutant(
        "dates no row: its ticks name no table",
        "controlplane.service.ticker:Ticker.name",
        "self._read = seq, table_epoch",
        "self._read = seq, Epoch(0)",
        scene=an_owner_reads_nothing_of_its_release,
    ),
    Mutant(
        "takes a follower that reads the table for one that has the data",
        "controlplane.core.deciding.slot_witness:witness_of",
        "report.table_epoch >= since and (slot_id, node_id) in ready",
        "report.table_epoch >= since",
        scene=services_take_their_time,
    ),
    Mutant(
        "makes a node the owner of a bundle before it has opened it",
        "controlplane.core.deciding.bundles.steps:Steps._assign",
        "elif node is not None and self._report(node, bundle, BundleStep.OPENED) is not None:",
        "elif node is not None:",
        scene=services_take_their_time,
    ),
    Mutant(
        "counts the time of a next owner from the beginning of the former one",
        "controlplane.core.deciding.bundles.steps:Steps._is_over",
        "passed_ms(node.node_id, bundle.state_epoch)",
        "passed_ms(node.node_id, bundle.owner_epoch)",
        scene=a_next_owner_does_not_open_a_bundle,
    ),
    Mutant(
        "waits without end for the bounds of a split",
        "controlplane.core.deciding.bundles.steps:Steps._divide",
        "elif node is not None and self._is_over(node, bundle):",
        "elif False:",
        scene=an_owner_finds_no_bounds,
    ),
    Mutant(
        "leaves a bundle to a next owner that is dead",
        "controlplane.core.deciding.bundles.hand_off:repair_bundles",
        "if holder is None or not holder.may_hold:",
        "if not is_assigning and (holder is None or not holder.may_hold):",
        scene=a_next_owner_dies,
    ),
    Mutant(
        "forgets with a new term what is ordered for bundles",
        "controlplane.core.log.apply:_apply_to_cluster",
        "state = replace(state, term=event.term, leader=event.controller_id)",
        "orders = state.bundles.orders\n"
        "        forgotten = replace(state.bundles, orders=orders.drop(list(orders)))\n"
        "        state = replace(state, term=event.term, leader=event.controller_id, bundles=forgotten)",
        scene=a_leader_dies_while_orders_stand,
    ),
    Mutant(
        "begins no order where no limit is set",
        "controlplane.core.deciding.bundles.begin:Beginning.begin",
        "if most else len(image.orders)",
        "if most else 0",
        scene=bundles_move_in_a_quiet_cluster,
    ),
    Mutant(
        "loses a part of a bundle that is split",
        "controlplane.core.deciding.bundles.bundle_round:BundleRound.split",
        "children = children_of(bundle, bounds, self.epoch)",
        "children = children_of(bundle, bounds, self.epoch)[:-1]",
        scene=bundles_are_split,
    ),
)
"""Of leaders."""

_AGENT: Final = (
    Mutant(
        "accepts requests for a slot that it has released",
        "controlplane.node.holdings:HoldingBook._ownership",
        "if self._releases.is_releasing(slot_id):",
        "if False:",
        scene=a_leader_reads_no_more_when_it_has_released,
    ),
    Mutant(
        "refuses requests for a slot that it need not release any more",
        "controlplane.node.slot_releases:SlotReleases.follow",
        "if known is not None:",
        "if known is not None and not leads:",
        scene=a_release_is_taken_back,
    ),
    Mutant(
        "notes no request that it accepts for a slot: releases it under that",
        "controlplane.node.holdings:HoldingBook.accept",
        "self._releases.accept(answer.slot_id)",
        "AcceptedSlotRequest({answer.slot_id})",
        scene=requests_outlast_a_release,
    ),
    Mutant(
        "closes a bundle under the requests that it has accepted",
        "controlplane.node.held_bundle:HeldBundle.next_call",
        "return None if self.accepted else CallKind.RELEASING",
        "return CallKind.RELEASING",
        scene=requests_outlast_a_release,
    ),
    Mutant(
        "waits without end for a request for a bundle that it has to release",
        "controlplane.node.held_bundles:BundleBook.attend",
        "if held.accepted and (held.is_given_up or now_ms >= void_at_ms):",
        "if held.accepted and held.is_given_up:",
        scene=requests_outlast_a_release,
    ),
    Mutant(
        "says that it has released a bundle while its service closes it",
        "controlplane.node.held_bundle:HeldBundle.step",
        "closed = self.call is None and self.standing is not Standing.OPEN",
        "closed = self.standing is not Standing.OPEN",
        scene=services_take_their_time,
    ),
    Mutant(
        "waits without end for a service that does not close a bundle",
        "controlplane.node.call_line:CallLine.give_up_at_ms",
        "return self._limit_ms(held.call)",
        "return None",
        scene=a_service_does_not_close_its_bundles,
    ),
    Mutant(
        "leaves what it has done to its next heartbeat",
        "controlplane.node.bundle_calls:BundleCalls._report",
        "report_at_ms = self._shared.bundles.report_at_ms(now_ms)",
        "report_at_ms = None",
        scene=bundles_move_in_a_quiet_cluster,
    ),
    Mutant(
        "takes a bundle that has come back for one that was never away",
        "controlplane.node.held_bundle:goes_on",
        "return before.owner_epoch == after.owner_epoch and after.state is not OwnershipState.ASSIGNING",
        "return True",
        scene=a_bundle_leaves_and_comes_back_unseen,
    ),
    Mutant(
        "opens the parts of a bundle anew that it has open",
        "controlplane.node.held_bundles:BundleBook._split",
        "child.standing, child.opened = Standing.OPEN, opened",
        "pass",
        scene=bundles_are_split,
    ),
    Mutant(
        "tells its service nothing of the parts of a bundle",
        "controlplane.node.held_bundles:BundleBook._split",
        "parent.children = tuple(parts)",
        "pass",
        scene=bundles_are_split,
    ),
)
"""Of agents."""

MUTANTS: Final = (*_LEADER, *_AGENT)
