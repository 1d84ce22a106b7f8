"""The default slot policy: exact balance with certified least movement."""

from collections.abc import Mapping

from controlplane.core.placement.contract import PlacementProblem, PlacementRules
from controlplane.core.placement.minimal import POLICY_NAME, plan
from controlplane.core.slot_policy import SlotAnswer, SlotRequest
from controlplane.errors import ConfigurationError


class MinimalPolicy:
    """See :mod:`controlplane.core.placement.minimal`."""

    name = POLICY_NAME
    interval_ms = None

    def check_options(self, options: Mapping[str, str]) -> None:
        """See :class:`controlplane.core.slot_policy.SlotPolicy`."""
        if options:
            raise ConfigurationError(f"slot_policy_options: {', '.join(sorted(options))}: minimal has no options")

    def plan(self, request: SlotRequest) -> SlotAnswer:
        """See :class:`controlplane.core.slot_policy.SlotPolicy`."""
        planned = plan(
            PlacementProblem(
                request.held,
                request.nodes,
                PlacementRules(
                    request.policy.replica_count,
                    request.policy.zone_rule,
                    request.policy.replicas_per_zone,
                    request.policy.tolerance_percent,
                ),
                request.epoch,
                request.ready,
                request.pins,
                request.exclusions,
            )
        )
        return SlotAnswer(planned.slots, planned.certificate)
