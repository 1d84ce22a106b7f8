"""The built-in slot policies, known to every controller."""

from typing import Final

from controlplane.core.cluster.policy import ClusterPolicy
from controlplane.core.slots.policies.minimal import MinimalPolicy
from controlplane.core.slots.policies.rendezvous import RendezvousPolicy
from controlplane.core.slots.policies.ring import RingPolicy
from controlplane.core.slots.policies.sofa import SofaPolicy
from controlplane.core.slots.policy_contract import SlotPolicies, SlotPolicy
from controlplane.core.slots.table import Slot
from controlplane.errors import ConfigurationError, ControlPlaneError, UnknownSlotPolicyError

_BUILT_IN: Final = (MinimalPolicy(), SofaPolicy(), RingPolicy(), RendezvousPolicy())

BUILT_IN_POLICIES: Final[SlotPolicies] = {policy.name: policy for policy in _BUILT_IN}


def slot_policy(policies: SlotPolicies, name: str) -> SlotPolicy:
    """The slot policy with this name.

    Raises:
        UnknownSlotPolicyError: this process does not know it.
    """
    found = policies.get(name)
    if found is None:
        raise UnknownSlotPolicyError(
            f"slot policy {name!r} is not known here; known are {', '.join(sorted(policies))}. A controller "
            "is given another one's file with --slot-policy-file, and so is a command that looks ahead"
        )
    return found


def check_slot_policy(policies: SlotPolicies, policy: ClusterPolicy, slots: tuple[Slot, ...] = ()) -> None:
    """Check that a controller with these slot policies could decide under a cluster's policy.

    Args:
        policies: the slot policies that the controller knows.
        policy: the cluster's policy.
        slots: the table from which the slot policy would have to continue, if it is to replace another one.

    Raises:
        UnknownSlotPolicyError: this controller does not know the slot policy.
        ConfigurationError: the slot policy refuses its options, or the table.
    """
    chosen = slot_policy(policies, policy.slot_policy)
    checked = "its options"
    try:
        chosen.check_options(policy.slot_policy_options)
        checked = "the table"
        chosen.check_table(slots, policy)
    except ControlPlaneError:
        raise
    except Exception as error:
        raise ConfigurationError(f"slot policy {chosen.name!r} failed to check {checked}: {error!r}") from error
