"""The slot policies that every controller knows."""

from typing import Final

from controlplane.core.policy import Policy
from controlplane.core.slot_policies.minimal import MinimalPolicy
from controlplane.core.slot_policies.sofa import SofaPolicy
from controlplane.core.slot_policy import SlotPolicies, SlotPolicy
from controlplane.errors import ConfigurationError, ControlPlaneError, UnknownSlotPolicyError

_BUILT_IN: Final = (MinimalPolicy(), SofaPolicy())

BUILT_IN_POLICIES: Final[SlotPolicies] = {policy.name: policy for policy in _BUILT_IN}


def slot_policy(policies: SlotPolicies, name: str) -> SlotPolicy:
    """The policy of that name.

    Raises:
        UnknownSlotPolicyError: this controller does not know it.
    """
    found = policies.get(name)
    if found is None:
        raise UnknownSlotPolicyError(
            f"slot policy {name!r} is not known here; known are {', '.join(sorted(policies))}. Start this controller "
            "with the policy's file, or choose another policy"
        )
    return found


def check_slot_policy(policies: SlotPolicies, policy: Policy) -> None:
    """Refuse a cluster's policy under which a controller that knows these slot policies could not decide.

    Raises:
        UnknownSlotPolicyError: this controller does not know the slot policy.
        ConfigurationError: the slot policy refuses its options.
    """
    chosen = slot_policy(policies, policy.slot_policy)
    try:
        chosen.check_options(policy.slot_policy_options)
    except ControlPlaneError:
        raise
    except Exception as error:
        raise ConfigurationError(f"slot policy {chosen.name!r} failed to check its options: {error!r}") from error
