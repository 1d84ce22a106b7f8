"""The check of a decision log from outside: is it one chain, does every decision say what it does, and prove it?

Folds the log as every reader does, and judges each planned slot table by the certificate's verifier, or, where the slot
policy gives no certificate but has to decide as another system does, by deciding again. Who may hold slots is found out
here again, apart from the planner's code: a planner that left a node out must not be believed.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from controlplane.core.apply import follow
from controlplane.core.decision import CauseKind, Decision
from controlplane.core.events import (
    NodeAdmitted,
    NodeDraining,
    NodeFenced,
    NodeOrdered,
    NodeRemoved,
    NodeUndrained,
    PolicyChanged,
    ReconciliationResumed,
    SlotsAssigned,
    SlotsExcluded,
    SlotsIncluded,
    SlotsPinned,
    SlotsUnpinned,
)
from controlplane.core.identifiers import Epoch, Seq
from controlplane.core.invariants import check, check_step, owner_problems, slot_problems
from controlplane.core.membership import Node, NodeStatus
from controlplane.core.order_verification import (
    awake_exclusions,
    awake_pins,
    order_complaints,
    pause_complaints,
    planned_from,
    split_table,
)
from controlplane.core.placement.contract import PlacementNode, PlacementProblem, PlacementRules
from controlplane.core.placement.verify import verify
from controlplane.core.policy import FEATURE_LEVEL
from controlplane.core.publishing import changed_rows
from controlplane.core.records import NodeRole
from controlplane.core.slot_policies.sofa import POLICY_NAME as SOFA
from controlplane.core.slot_policies.sofa_ticks import tick_complaints
from controlplane.core.state import State
from controlplane.errors import InvariantViolationError, LogContinuityError, StopError

_CALL_FOR_A_PLAN = (
    NodeAdmitted,
    NodeDraining,
    NodeUndrained,
    NodeFenced,
    NodeRemoved,
    NodeOrdered,
    SlotsPinned,
    SlotsUnpinned,
    SlotsExcluded,
    SlotsIncluded,
    ReconciliationResumed,
    PolicyChanged,
    SlotsAssigned,
)
"""After these it has to be proven that nothing, or nothing more, had to move."""

_CERTIFYING_POLICIES = frozenset({"minimal"})
"""The slot policies that prove every plan; a plan of another one without a certificate only has to be legal."""


@dataclass(frozen=True, slots=True)
class Complaint:
    """What is wrong with one decision, in a sentence."""

    seq: Seq
    epoch: Epoch
    sentence: str


class LogVerification:
    """Judges a log from its first decision on, one decision after the other.

    Attributes:
        state: after the last decision that continued the log.
        decisions: how many were judged.
        certificates: how many of them carried a certificate.
        broken: whether the log does not go on; what follows cannot be judged.
    """

    def __init__(self) -> None:
        """Begin before the first decision."""
        self.state = State()
        self.decisions = 0
        self.certificates = 0
        self.broken = False

    def judge(self, decision: Decision) -> list[Complaint]:
        """What is wrong with the next decision of the log; nothing if it is right.

        Raises:
            InvariantViolationError: the log was found to be broken before (a defect of the caller).
        """
        if self.broken:
            raise InvariantViolationError("the log is broken: what follows cannot be judged")
        before = self.state
        self.decisions += 1
        self.certificates += decision.certificate is not None
        try:
            after = follow(before, decision)
        except StopError as error:
            self.broken = True
            return [Complaint(decision.seq, decision.epoch, str(error))]
        self.state = after
        sentences = _invariant_complaints(lambda: check_step(before, decision, after))
        sentences += _field_complaints(before, decision, after)
        sentences += order_complaints(before, decision, after)
        sentences += _plan_complaints(before, decision, after)
        return [Complaint(decision.seq, decision.epoch, sentence) for sentence in sentences]

    def break_off(self, error: LogContinuityError) -> Complaint:
        """The log cannot be read any further."""
        self.broken = True
        return Complaint(Seq(self.state.seq + 1), self.state.epoch, str(error))

    def judge_end(self) -> list[Complaint]:
        """What is wrong with the whole state to which the log has led."""
        sentences = _invariant_complaints(lambda: check(self.state)) if self.decisions else []
        return [Complaint(self.state.seq, self.state.epoch, sentence) for sentence in sentences]


def _invariant_complaints(check_now: Callable[[], None]) -> list[str]:
    try:
        check_now()
    except InvariantViolationError as error:
        return [str(error)]
    return []


def _field_complaints(before: State, decision: Decision, after: State) -> list[str]:
    """What the decision says of itself against what it does."""
    republished = any(cause.kind is CauseKind.TABLE_REPUBLISHED for cause in decision.causes)
    epoch = before.epoch + bool(republished or changed_rows(before, after, decision.events))
    feature_level = after.feature_level or FEATURE_LEVEL
    fingerprint = after.policy.fingerprint()
    return [
        sentence
        for holds, sentence in (
            (decision.causes, "it has no cause"),
            (
                decision.epoch == epoch,
                f"its epoch is {decision.epoch}, by the rows that it changes it has to be {epoch}",
            ),
            (decision.controller_id == after.leader, f"{decision.controller_id!r} decided, {after.leader!r} leads"),
            (decision.feature_level == feature_level, f"feature level {decision.feature_level}, not {feature_level}"),
            (
                decision.policy_fingerprint == fingerprint,
                f"policy {decision.policy_fingerprint} in the decision, {fingerprint} in the log",
            ),
        )
        if not holds
    ]


def _plan_complaints(before: State, decision: Decision, after: State) -> list[str]:
    """What is wrong with who owns what after the decision, by what its slot policy proves or promises."""
    if len(after.slots) != len(split_table(before, decision)):
        return []  # what the table begins with is not known, and has been complained of
    if after.paused and after.policy.slot_policy == SOFA:
        changed = after.slots != split_table(before, decision)
        return ["the table changes while reconciliation is paused"] if changed else []
    if after.paused:
        return [*owner_problems(after, tuple(after.bundles.values())), *pause_complaints(before, decision, after)]
    if after.policy.slot_policy == SOFA:
        nodes = sorted(node.node_id for node in holders(after) if node.weight > 0)
        return [
            *owner_problems(after, tuple(after.bundles.values())),
            *tick_complaints(before, decision, after, nodes),
        ]
    if _only_continues(before, decision):
        return [*owner_problems(after, tuple(after.bundles.values())), *_step_complaints(before, decision)]
    if decision.certificate is None:
        uncertified = [type(event).__name__ for event in decision.events if isinstance(event, _CALL_FOR_A_PLAN)]
        if after.policy.slot_policy in _CERTIFYING_POLICIES:
            return [f"{name} without a certificate" for name in dict.fromkeys(uncertified)]
        owners = [*slot_problems(after, after.slots), *owner_problems(after, tuple(after.bundles.values()))]
        return owners if uncertified else []
    planned = after.planned
    return [
        *owner_problems(after, tuple(after.bundles.values())),
        *_plan_in_flight_complaints(decision, after),
        *verify(
            _problem(before, decision, after),
            [planned.get(slot.slot_id, slot) for slot in after.slots],
            decision.certificate,
        ),
    ]


def _only_continues(before: State, decision: Decision) -> bool:
    """Whether a decision plans nothing, and carries out some of what was planned and proven before."""
    called_for = [event for event in decision.events if isinstance(event, _CALL_FOR_A_PLAN)]
    return (
        decision.certificate is None
        and before.plan is not None
        and bool(called_for)
        and all(isinstance(event, SlotsAssigned) for event in called_for)
    )


def _step_complaints(before: State, decision: Decision) -> list[str]:
    """The rows that are assigned have to be rows of the plan, with nothing changed but leader epochs."""
    rows = [slot for event in decision.events if isinstance(event, SlotsAssigned) for slot in event.slots]
    left = before.planned
    return [
        f"slot {slot.slot_id} is assigned otherwise than the plan in flight says"
        for slot in rows
        if (planned := left.get(slot.slot_id)) is None
        or (planned.leader, planned.followers) != (slot.leader, slot.followers)
    ]


def _plan_in_flight_complaints(decision: Decision, after: State) -> list[str]:
    if after.plan is None or after.plan.plan_id == decision.seq:
        return []
    return [f"it plans, and leaves the plan of decision {after.plan.plan_id} in flight"]


def _problem(before: State, decision: Decision, after: State) -> PlacementProblem:
    """What the planner had to be asked; who was ready is only in the certificate."""
    policy = after.policy
    return PlacementProblem(
        planned_from(before, decision, after),
        tuple(holders(after)),
        PlacementRules(policy.replica_count, policy.zone_rule, policy.replicas_per_zone, policy.tolerance_percent),
        decision.epoch,
        pins=awake_pins(after),
        exclusions=awake_exclusions(after),
    )


def holders(state: State) -> Iterator[PlacementNode]:
    """Data nodes that live, with the weights and zones that operators said, if they did.

    Draining ones are given nothing unless there is no other, and excluded ones nothing unless there are not even those:
    slots are not left to nobody.
    """
    data = [node for node in state.nodes.values() if node.role is NodeRole.DATA]
    groups: dict[tuple[bool, bool], list[Node]] = {}
    for node in data:
        if node.status in (NodeStatus.ACTIVE, NodeStatus.DRAINING):
            excluded = state.order(node.node_id).excluded
            # All excluded ones are of one group, whether they drain or not.
            groups.setdefault((excluded, not excluded and node.status is NodeStatus.DRAINING), []).append(node)
    for place, group in enumerate(groups[key] for key in sorted(groups)):
        for node in group:
            order = state.order(node.node_id)
            weight = node.weight if order.weight is None else order.weight
            zone = node.zone if order.zone is None else order.zone
            yield PlacementNode(node.node_id, 0 if place else weight, node.capacity, zone)
