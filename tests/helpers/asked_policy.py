"""A slot policy that plans like the default one and records its requests."""

from collections.abc import Mapping
from dataclasses import replace

from controlplane.core.slots.policies.minimal import MinimalPolicy
from controlplane.core.slots.policy_contract import OrderKind, SlotAnswer, SlotPolicies, SlotPolicy, SlotRequest
from controlplane.errors import ConfigurationError


class AskedPolicy(SlotPolicy):
    """Records every request, and plans without pins and exclusions, so that only the request shows them."""

    supported_orders = frozenset(OrderKind)

    def __init__(self, name: str = "minimal", *, dead_may_hold: bool = False) -> None:
        """Known under a name."""
        self.name = name
        self.dead_may_hold = dead_may_hold
        self.requests: list[SlotRequest] = []

    @property
    def last(self) -> SlotRequest:
        """The last request."""
        return self.requests[-1]

    def check_options(self, options: Mapping[str, str]) -> None:
        """Know one option."""
        if options.keys() - {"pace"}:
            raise ConfigurationError(f"{self.name} knows only pace")

    def plan(self, request: SlotRequest) -> SlotAnswer:
        """The default policy's plan, with its proof under its name only."""
        self.requests.append(request)
        answer = MinimalPolicy().plan(request)
        return answer if self.name == MinimalPolicy.name else replace(answer, certificate=None)


def asked_policies(*policies: AskedPolicy) -> SlotPolicies:
    """These policies by name."""
    return {policy.name: policy for policy in policies}
