"""Plans in the state: the plan in flight, and the recent departures."""

from dataclasses import dataclass

from controlplane.core.values.identifiers import Incarnation, NodeId, Seq, SlotId


@dataclass(frozen=True, slots=True)
class PlanInFlight:
    """A plan with rows that are not carried out yet.

    Attributes:
        plan_id: the seq of the decision that made and proved it.
        made_at_ms: log time of that decision.
        not_before_ms: log time before which only emergencies and orders are due.
    """

    plan_id: Seq
    made_at_ms: int
    not_before_ms: int


@dataclass(frozen=True, slots=True)
class Departure:
    """A replica that a living node gave up by plan.

    Attributes:
        slot_id: the slot.
        node_id: the node that gave it up.
        incarnation: the incarnation of the node at that time.
        left_at_ms: log time.
    """

    slot_id: SlotId
    node_id: NodeId
    incarnation: Incarnation
    left_at_ms: int
