"""What a state remembers of plans: the one that is being carried out, and what balancing moved lately."""

from dataclasses import dataclass

from controlplane.core.values.identifiers import Incarnation, NodeId, Seq, SlotId


@dataclass(frozen=True, slots=True)
class PlanInFlight:
    """A plan of which rows are left.

    Attributes:
        plan_id: the seq of the decision that made and proved it.
        made_at_ms: log time of that.
        not_before_ms: log time before which nothing of it is due but emergencies and orders.
    """

    plan_id: Seq
    made_at_ms: int
    not_before_ms: int


@dataclass(frozen=True, slots=True)
class Departure:
    """A replica that a living node gave up because it was planned so.

    Attributes:
        slot_id: of which slot.
        node_id: by whom.
        incarnation: by which process of that name.
        left_at_ms: log time.
    """

    slot_id: SlotId
    node_id: NodeId
    incarnation: Incarnation
    left_at_ms: int
