"""The progress and the end of the orders of bundles that an answer gave, from the decision log."""

from collections.abc import Iterable
from typing import Final

from controlplane.core.bundles.bundle import Bundle
from controlplane.core.bundles.events import BundleOrdersEnded, BundleOrdersGiven, BundlesAssigned
from controlplane.core.bundles.orders import BundleOrder, EndedOrder, OrderOutcome
from controlplane.core.intents.events import IntentAnswered
from controlplane.core.log.events import Event
from controlplane.core.operations.bundle_texts import order_text
from controlplane.core.operations.slot_numbers import counted
from controlplane.inspection.answers import LoggedAnswer
from controlplane.inspection.bundles import step_text
from controlplane.inspection.readers import LoggedDecision

_ORDERS_SHOWN: Final = 3


class OrderProgress:
    """The orders that one answer gave, as the decisions after it record them.

    Attributes:
        standing: the orders that have not ended, by bundle id.
        ended: how the others ended, by bundle id.
        next_offset: in ``decisions``, after the last decision that was taken.
    """

    def __init__(self, answer: LoggedAnswer) -> None:
        """Begin with the answer's own decision, which may already have begun or ended orders."""
        given: list[BundleOrder] = []
        events = list(answer.logged.decision.events)
        at = events.index(answer.event)
        for event in events[:at]:
            if isinstance(event, IntentAnswered):
                given = []  # those were given by the answer before
            elif isinstance(event, BundleOrdersGiven):
                given = list(event.orders)
        self.standing: dict[str, BundleOrder] = {order.bundle_id: order for order in given}
        self.ended: dict[str, EndedOrder] = {}
        self._rows: dict[str, Bundle] = {}
        self.next_offset = answer.logged.offset + 1
        self._take_events(events[at:])

    def take(self, logged: LoggedDecision) -> None:
        """Take the next decision of the log."""
        self.next_offset = logged.offset + 1
        self._take_events(logged.decision.events)

    @property
    def failed(self) -> list[EndedOrder]:
        """The orders that failed, by bundle id."""
        return [each for _, each in sorted(self.ended.items()) if each.outcome is OrderOutcome.FAILED]

    def standing_text(self) -> str:
        """Which orders stand, and how far they are."""
        parts = [f"{bundle_id}: {self._order_text(bundle_id)}" for bundle_id in sorted(self.standing)]
        more = f"; and {len(parts) - _ORDERS_SHOWN} more" if len(parts) > _ORDERS_SHOWN else ""
        total = counted(len(self.standing) + len(self.ended), "order")
        return f"{len(self.standing)} of {total} left: {'; '.join(parts[:_ORDERS_SHOWN])}{more}"

    def end_text(self) -> str:
        """What came of the orders, once none stands any more."""
        failed = self.failed
        if not self.ended:
            return "no order was given, so none was waited for"
        if not failed:
            return f"{counted(len(self.ended), 'order')} carried out"
        details = "; ".join(f"{each.bundle_id}: {each.detail}" for each in failed[:_ORDERS_SHOWN])
        more = f"; and {len(failed) - _ORDERS_SHOWN} more" if len(failed) > _ORDERS_SHOWN else ""
        return f"{len(failed)} of {counted(len(self.ended), 'order')} failed: {details}{more}"

    def _order_text(self, bundle_id: str) -> str:
        row = self._rows.get(bundle_id)
        step = "waits for its turn" if row is None else f"is {step_text(row)}"
        return f"{order_text(self.standing[bundle_id])}, {step}"

    def _take_events(self, events: Iterable[Event]) -> None:
        for event in events:
            if isinstance(event, BundlesAssigned):
                self._rows.update({row.bundle_id: row for row in event.bundles if row.bundle_id in self.standing})
            elif isinstance(event, BundleOrdersEnded):
                for each in event.ended:
                    if self.standing.pop(each.bundle_id, None) is not None:
                        self.ended[each.bundle_id] = each
