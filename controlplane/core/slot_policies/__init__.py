"""The slot policies that every controller knows."""

from typing import Final

from controlplane.core.slot_policies.minimal import MinimalPolicy
from controlplane.core.slot_policy import SlotPolicies, SlotPolicy
from controlplane.errors import UnknownSlotPolicyError

_BUILT_IN: Final = (MinimalPolicy(),)

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
