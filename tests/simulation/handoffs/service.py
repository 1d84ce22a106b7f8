"""A service whose callbacks raise or hang where a test says so."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from controlplane.core.bundles.bundle import Bundle
from controlplane.core.routing.replica import RoutingTable
from controlplane.core.values.identifiers import NodeId
from controlplane.node import FencingToken, SlotChanged, SlotGained, SlotLost, TopicLoad
from tests.simulation.service import SimulatedService

HANGS_MS: Final = 15_000
"""Longer than every limit of a handoff, those of agents included."""


class Manner(Enum):
    """What a callback does once; the value is its name. The call after it does as it should."""

    RAISES = "raises"
    HANGS = "hangs"


@dataclass
class Misconduct:
    """Which services misbehave, and how.

    Attributes:
        manners: by node and name of the callback, until it is called.
        met: the callbacks that have done so.
        never_ready: nodes that do not get ready in the slots that they gain.
    """

    manners: dict[tuple[NodeId, str], Manner] = field(default_factory=dict)
    met: list[tuple[NodeId, str]] = field(default_factory=list)
    never_ready: set[NodeId] = field(default_factory=set)


class CallbackError(Exception):
    """What a callback raises."""


class ScriptedService(SimulatedService):
    """The service of one process."""

    def __init__(self, misconduct: Misconduct, *service: object) -> None:
        """``service`` as for :class:`SimulatedService`."""
        super().__init__(*service)  # type: ignore[arg-type]  # passed on as they are
        self._misconduct = misconduct

    def on_slots_gained(self, gained: Sequence[SlotGained]) -> None:
        """See :meth:`controlplane.node.callbacks.NodeCallbacks.on_slots_gained`."""
        self._meet("on_slots_gained")
        super().on_slots_gained(gained)

    def on_slots_changed(self, changed: Sequence[SlotChanged]) -> None:
        """See :meth:`controlplane.node.callbacks.NodeCallbacks.on_slots_changed`."""
        self._meet("on_slots_changed")
        super().on_slots_changed(changed)

    def on_slots_lost(self, lost: Sequence[SlotLost]) -> None:
        """See :meth:`controlplane.node.callbacks.NodeCallbacks.on_slots_lost`."""
        self._meet("on_slots_lost")
        super().on_slots_lost(lost)

    def on_bundle_preparing(self, bundle: Bundle) -> None:
        """See :meth:`controlplane.node.callbacks.NodeCallbacks.on_bundle_preparing`."""
        self._meet("on_bundle_preparing")
        super().on_bundle_preparing(bundle)

    def on_bundle_assigned(self, bundle: Bundle, token: FencingToken) -> None:
        """See :meth:`controlplane.node.callbacks.NodeCallbacks.on_bundle_assigned`."""
        self._meet("on_bundle_assigned")
        super().on_bundle_assigned(bundle, token)

    def on_bundle_releasing(self, bundle: Bundle) -> None:
        """See :meth:`controlplane.node.callbacks.NodeCallbacks.on_bundle_releasing`."""
        # A bundle that is being closed for longer than agents wait is known to be open in two services.
        self.closing_ms = HANGS_MS if self._is_to("on_bundle_releasing", Manner.HANGS) else 0
        self._meet("on_bundle_releasing")
        self.closing_ms = 0
        super().on_bundle_releasing(bundle)

    def on_bundle_released(self, bundle_id: str, bundle: Bundle | None) -> None:
        """See :meth:`controlplane.node.callbacks.NodeCallbacks.on_bundle_released`."""
        self._meet("on_bundle_released")
        super().on_bundle_released(bundle_id, bundle)

    def on_bundle_split(self, parent: Bundle, children: Sequence[Bundle]) -> None:
        """See :meth:`controlplane.node.callbacks.NodeCallbacks.on_bundle_split`."""
        # The topics of the parts are open already; what a service does late is to file them.
        super().on_bundle_split(parent, children)
        self._meet("on_bundle_split")

    def topics_of_bundle(self, bundle: Bundle) -> Sequence[TopicLoad]:
        """See :meth:`controlplane.node.callbacks.NodeCallbacks.topics_of_bundle`."""
        self._meet("topics_of_bundle")
        return super().topics_of_bundle(bundle)

    def _settle_in(self, table: RoutingTable) -> None:
        gained, is_idle = self._gained, self.node_id in self._misconduct.never_ready
        if is_idle:
            self._gained = {}
        super()._settle_in(table)
        if is_idle:
            self._gained = gained

    def _is_to(self, callback: str, manner: Manner) -> bool:
        return self._misconduct.manners.get((self.node_id, callback)) is manner

    def _meet(self, callback: str) -> None:
        place = self.node_id, callback
        manner = self._misconduct.manners.pop(place, None)
        if manner is not None:
            self._misconduct.met.append(place)
        if manner is Manner.RAISES:
            raise CallbackError(f"{callback} of {self.node_id} fails")
        if manner is Manner.HANGS:
            self._machine.scheduler.sleep(HANGS_MS)
