"""The events of the decision log: one immutable value per kind of change. Only events change a state.

An event carries its consequences as data (the new rows, the log time), so that applying it needs no rule and no clock.
Each subject defines its own events; this module forms their union.
"""

from typing import Final, TypeAlias, get_args

from controlplane.core.bundles.events import BundleEvent
from controlplane.core.cluster.events import ClusterEvent
from controlplane.core.intents.events import IntentEvent
from controlplane.core.membership.events import MembershipEvent
from controlplane.core.slots.events import SlotEvent

Event: TypeAlias = ClusterEvent | MembershipEvent | SlotEvent | BundleEvent | IntentEvent

EVENT_TYPES: Final[tuple[type[Event], ...]] = get_args(Event)
"""Every member of :data:`Event`, for the codec and for exhaustiveness tests."""
