"""The default slot policy: exact balance with certified least movement."""

from collections.abc import Mapping
from dataclasses import replace
from operator import attrgetter

from controlplane.core.slots.certificate import Certificate
from controlplane.core.slots.minimal.contract import PlacementProblem, PlacementRules, Plan
from controlplane.core.slots.minimal.planner import POLICY_NAME, plan
from controlplane.core.slots.policy_contract import OrderKind, SlotAnswer, SlotPolicy, SlotRequest
from controlplane.core.slots.survivors import rows_of_survivors, stranded_texts
from controlplane.core.slots.table import Slot
from controlplane.errors import ConfigurationError


class MinimalPolicy(SlotPolicy):
    """See :mod:`controlplane.core.slots.minimal.planner`."""

    name = POLICY_NAME
    supported_orders = frozenset(OrderKind)

    def check_options(self, options: Mapping[str, str]) -> None:
        """See :class:`controlplane.core.slots.policy_contract.SlotPolicy`."""
        if options:
            raise ConfigurationError(f"slot_policy_options: {', '.join(sorted(options))}: minimal has no options")

    def plan(self, request: SlotRequest) -> SlotAnswer:
        """See :class:`controlplane.core.slots.policy_contract.SlotPolicy`; a slot that no node may hold stays."""
        stranded = request.stranded
        if not stranded:
            planned = plan(_problem(request, request.held))
            return SlotAnswer(planned.slots, planned.certificate)
        kept_ids = {slot.slot_id for slot in stranded}
        # The problem is about the other slots: a table without stranded slots is complete for the planner.
        rest = tuple(slot for slot in request.held if slot.slot_id not in kept_ids)
        planned = plan(_problem(request, rest)) if rest else Plan((), _nothing_to_prove(request))
        kept = rows_of_survivors(stranded, request.living, request.ready, request.epoch, spread=True)
        shortfalls = (*stranded_texts(stranded, request.living), *planned.certificate.shortfalls)
        return SlotAnswer(
            tuple(sorted((*planned.slots, *kept), key=attrgetter("slot_id"))),
            replace(planned.certificate, shortfalls=shortfalls),
        )


def _problem(request: SlotRequest, rows: tuple[Slot, ...]) -> PlacementProblem:
    """The problem of placing these slots of the table."""
    known = {slot.slot_id for slot in rows}
    return PlacementProblem(
        rows,
        request.nodes,
        PlacementRules(
            request.policy.replica_count,
            request.policy.zone_rule,
            request.policy.replicas_per_zone,
            request.policy.tolerance_percent,
        ),
        request.epoch,
        request.ready,
        tuple(pin for pin in request.pins if pin.slot_id in known),
        tuple(each for each in request.exclusions if each.slot_id in known),
    )


def _nothing_to_prove(request: SlotRequest) -> Certificate:
    """The certificate of a plan without slots: nothing moves, and every price and share is zero."""
    prices = dict.fromkeys(sorted(request.living), 0)
    return Certificate(
        policy=POLICY_NAME,
        moved=0,
        least_moved=0,
        leader_changes=0,
        least_leader_changes=0,
        node_prices=prices,
        leader_prices=prices,
        lost_slots=(),
        ready_heirs=(),
        node_shares=dict.fromkeys(request.owner_ids, "0"),
    )
