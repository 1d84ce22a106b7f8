"""Verifies a decision log: that it is one chain, and that each decision does what it says and proves it.

The verification folds the log as every reader does. It checks each planned slot table by the certificate's verifier. A
slot policy without certificates that has to decide as another system does is checked by deciding again, and one whose
table follows from names and weights by finding its holders again. The nodes that may hold slots are derived without the
planner's code, so that a planner that leaves a node out is detected.
"""

from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from controlplane.core.cluster.events import FeatureLevelRaised
from controlplane.core.cluster.policy import FEATURE_LEVEL
from controlplane.core.log.apply import apply_decision
from controlplane.core.log.decision import CauseKind, Decision
from controlplane.core.log.row_changes import changed_rows
from controlplane.core.log.state import State
from controlplane.core.membership.events import renewed_by
from controlplane.core.slots.certificate import Certificate
from controlplane.core.slots.events import PlanDropped, SlotsAssigned
from controlplane.core.slots.minimal.contract import PlacementProblem, PlacementRules
from controlplane.core.slots.policies import BUILT_IN_POLICIES
from controlplane.core.slots.policies.sofa import POLICY_NAME as SOFA
from controlplane.core.slots.policy_contract import CERTIFYING_POLICIES, SlotPolicies
from controlplane.core.slots.proof.verify import verify
from controlplane.core.slots.table import Slot, empty_table
from controlplane.core.values.identifiers import Epoch, NodeId, Seq
from controlplane.core.verification.hashed_tables import hashed_table_complaints
from controlplane.core.verification.holders import (
    active_exclusions,
    active_pins,
    expected_owners,
    holders,
    immovable,
)
from controlplane.core.verification.invariants import check, check_step, dead_may_hold, owner_problems, slot_problems
from controlplane.core.verification.order_verification import (
    has_to_be_proven,
    order_complaints,
    pause_complaints,
    planned_from,
    split_table,
    survivor_complaints,
    survivors_of,
    taken_last_copies,
)
from controlplane.core.verification.right_verification import right_complaints
from controlplane.core.verification.sofa_ticks import tick_complaints
from controlplane.errors import InvariantViolationError, LogContinuityError, StopError


@dataclass(frozen=True, slots=True)
class Complaint:
    """A violation by one decision, as a sentence."""

    seq: Seq
    epoch: Epoch
    sentence: str


class LogVerification:
    """Verifies a log from its first decision on, one decision after the other.

    Args:
        policies: the known slot policies, by name. They do not plan; they say only what their tables may contain.

    Attributes:
        state: the state after the last decision that continued the log.
        decisions: number of decisions checked.
        certificates: number of decisions that carried a certificate.
        broken: whether the log cannot be continued, so that the rest cannot be checked.
        unknown_slot_policies: names of unknown slot policies in the log. Their tables must contain no dead node, which
            is more than some policies promise.
    """

    def __init__(self, policies: SlotPolicies = BUILT_IN_POLICIES) -> None:
        """Start before the first decision."""
        self._policies = policies
        self.unknown_slot_policies: set[str] = set()
        self.state = State()
        self.decisions = 0
        self.certificates = 0
        self.broken = False

    def check(self, decision: Decision) -> list[Complaint]:
        """Check the next decision of the log and return the complaints; none if it is right.

        Raises:
            InvariantViolationError: the log is already broken (a defect of the caller).
        """
        if self.broken:
            raise InvariantViolationError("the log is broken: what follows cannot be checked")
        before = self.state
        self.decisions += 1
        self.certificates += decision.certificate is not None
        try:
            after = apply_decision(before, decision)
        except StopError as error:
            self.broken = True
            return [Complaint(decision.seq, decision.epoch, str(error))]
        self.state = after
        self.unknown_slot_policies |= {after.cluster.policy.slot_policy} - self._policies.keys()
        sentences = _invariant_complaints(lambda: check_step(before, decision, after, self._policies))
        sentences += _field_complaints(before, decision, after)
        sentences += _number_complaints(before, decision, after)
        sentences += right_complaints(before, decision)
        sentences += order_complaints(before, decision, after)
        dead_may_stay = dead_may_hold(after, self._policies)
        sentences += _plan_complaints(before, decision, after, dead_may_stay=dead_may_stay)
        sentences += _waiting_complaints(before, decision, after, dead_may_stay=dead_may_stay)
        return [Complaint(decision.seq, decision.epoch, sentence) for sentence in sentences]

    def break_off(self, error: LogContinuityError) -> Complaint:
        """End the verification at a record from which the log cannot be read further."""
        self.broken = True
        return Complaint(Seq(self.state.seq + 1), self.state.epoch, str(error))

    def check_end(self, undecoded: str = "") -> list[Complaint]:
        """Check the state at the end of the log, and the record behind it.

        Args:
            undecoded: description and place of a record behind the last decision that has the key of the next decision
                and cannot be decoded; empty if there is none.
        """
        sentences = _invariant_complaints(lambda: check(self.state, self._policies)) if self.decisions else []
        complaints = [Complaint(self.state.seq, self.state.epoch, sentence) for sentence in sentences]
        if undecoded:
            following = Seq(self.state.seq + 1)
            sentence = (
                f"a record behind the last decision has the key of decision {following} and cannot be decoded "
                f"({undecoded}): it is that decision, damaged, or a foreign record. If decision {following} is "
                "committed behind it, the record was foreign: verify again then"
            )
            complaints.append(Complaint(following, self.state.epoch, sentence))
        return complaints


def _invariant_complaints(check_now: Callable[[], None]) -> list[str]:
    try:
        check_now()
    except InvariantViolationError as error:
        return [str(error)]
    return []


def _field_complaints(before: State, decision: Decision, after: State) -> list[str]:
    """Contradictions between a decision's fields and its effect."""
    republished = any(cause.kind is CauseKind.TABLE_REPUBLISHED for cause in decision.causes)
    epoch = before.epoch + bool(republished or changed_rows(before, after, decision.events))
    feature_level = after.cluster.feature_level or FEATURE_LEVEL
    fingerprint = after.cluster.policy.fingerprint()
    return [
        sentence
        for holds, sentence in (
            (decision.causes, "it has no cause"),
            (
                decision.epoch == epoch,
                f"its epoch is {decision.epoch}, by the rows that it changes it has to be {epoch}",
            ),
            (decision.controller_id == after.leader, f"{decision.controller_id!r} decided, {after.leader!r} leads"),
            (
                not before.log_id
                or before.cluster.feature_level == after.cluster.feature_level
                or _is_raised(decision, after),
                f"feature level {after.cluster.feature_level} after {before.cluster.feature_level}, without its event",
            ),
            (decision.feature_level == feature_level, f"feature level {decision.feature_level}, not {feature_level}"),
            (
                decision.policy_fingerprint == fingerprint,
                f"policy {decision.policy_fingerprint} in the decision, {fingerprint} in the log",
            ),
        )
        if not holds
    ]


def _is_raised(decision: Decision, after: State) -> bool:
    """Whether an event raises the level, as opposed to a term that opens with another level."""
    raised = [event.feature_level for event in decision.events if isinstance(event, FeatureLevelRaised)]
    return raised[-1:] == [after.cluster.feature_level]


def _number_complaints(before: State, decision: Decision, after: State) -> list[str]:
    """Contradictions between a decision's numbers and the whole tables before and after it."""
    first = _begun(before, after)
    if len(split_table(first, decision)) != len(after.slots.table):
        return []  # the table before is unknown, which another check reports
    pairs: list[tuple[Slot, Slot]] = []
    if renewed_by(decision.events) or after.slots.table is not before.slots.table:
        pairs = list(zip(planned_from(first, decision, after), after.slots.table, strict=True))
    counted = {
        "moves_carried_out": sum(len(set(new.replicas).difference(old.replicas)) for old, new in pairs),
        "leader_changes_carried_out": sum(old.leader != new.leader for old, new in pairs),
        "moves_left": sum(
            len(set(planned.replicas).difference(after.slots.table[slot_id].replicas))
            for slot_id, planned in after.slots.planned.items()
            if 0 <= slot_id < len(after.slots.table)
        ),
    }
    return [
        f"its {name} is {claimed}, by the tables before and after it has to be {number}"
        for name, number in counted.items()
        if (claimed := getattr(decision, name)) != number
    ]


def _plan_complaints(before: State, decision: Decision, after: State, *, dead_may_stay: bool) -> list[str]:
    """Violations of what the slot policy proves or promises of the ownership after the decision.

    If the dead may stay in the table, the invariants check that no dead node is given a slot.
    """
    if len(after.slots.table) != len(split_table(before, decision)):
        return []  # the table before is unknown, which another check reports
    if after.slots.paused and dead_may_stay:
        renewed = renewed_by(decision.events)
        kept = tuple(
            replace(slot, leader_epoch=decision.epoch) if slot.leader in renewed else slot
            for slot in split_table(before, decision)
        )
        sentence = "while reconciliation is paused, more changes than the leader epochs of renewed leaders, or less"
        return [sentence] if after.slots.table != kept else []
    if after.slots.paused:
        return [
            *owner_problems(after, tuple(after.bundles.by_id.values())),
            *pause_complaints(before, decision, after),
        ]
    if after.cluster.policy.slot_policy == SOFA:
        return [
            *owner_problems(after, tuple(after.bundles.by_id.values())),
            *tick_complaints(before, decision, after, expected_owners(after)),
        ]
    if _only_continues(before, decision):
        return [*owner_problems(after, tuple(after.bundles.by_id.values())), *_step_complaints(before, decision)]
    if decision.certificate is None:
        uncertified = [type(event).__name__ for event in decision.events if has_to_be_proven(event)]
        if after.cluster.policy.slot_policy in CERTIFYING_POLICIES:
            return [f"{name} without a certificate" for name in dict.fromkeys(uncertified)]
        holders_left = () if dead_may_stay else slot_problems(after, after.slots.table)
        owners = [*holders_left, *owner_problems(after, tuple(after.bundles.by_id.values()))]
        promised = [*taken_last_copies(before, decision, after), *hashed_table_complaints(decision, after)]
        return [*owners, *promised] if uncertified else []
    return [
        *owner_problems(after, tuple(after.bundles.by_id.values())),
        *_plan_in_flight_complaints(decision, after),
        *_proof_complaints(before, decision, after, decision.certificate),
    ]


def _waiting_complaints(before: State, decision: Decision, after: State, *, dead_may_stay: bool) -> list[str]:
    """Rows that change although they wait for their planned row, and emergencies that wait.

    The plan's proof concerns the planned rows. Only this check looks at the rows that are used in the meantime.
    """
    if after.slots.plan is None:
        return []
    assigned = {slot.slot_id for event in decision.events if isinstance(event, SlotsAssigned) for slot in event.slots}
    called_for = any(has_to_be_proven(event) for event in decision.events)
    table = split_table(_begun(before, after), decision)
    if len(table) != len(after.slots.table):
        return []  # the table before is unknown, which another check reports
    survivors = survivors_of(decision, after)
    found = []
    for slot_id, planned in after.slots.planned.items():
        if not 0 <= slot_id < len(table):
            found.append(f"slot {slot_id} waits for its planned row, the table has {len(table)} slots")
            continue
        row = after.slots.table[slot_id]
        if slot_id in assigned and not _may_wait_in(row, table[slot_id], planned, survivors):
            found.append(f"slot {slot_id} waits for its planned row, and changes meanwhile to {row.replicas}")
        elif (
            called_for
            and not dead_may_stay
            and not survivors.issuperset({row.leader, *row.replicas} - {*planned.followers})
        ):
            found.append(f"slot {slot_id} waits for its planned row, although not all of {row.replicas} have it")
        elif called_for and not dead_may_stay and _lacks_followers(row, planned):
            found.append(f"slot {slot_id} waits for its planned row without followers of {planned.followers}")
    return found


def _may_wait_in(row: Slot, before: Slot, planned: Slot, survivors: AbstractSet[NodeId]) -> bool:
    """Whether a slot may have this row until its planned one: as before, or with new followers in the place of dead.

    The new ones are those that the planned row names, and no more than it has replicas.
    """
    if row == before:
        return True
    left = survivors & {*before.followers}
    added = {*row.followers} - left
    return (
        replace(row, followers=()) == replace(before, followers=())
        and left <= {*row.followers}
        and added.issubset(planned.followers)
        and (not added or len(row.replicas) <= len(planned.replicas))
    )


def _lacks_followers(row: Slot, planned: Slot) -> bool:
    """Whether a row that waits has fewer replicas than its planned row, and not all of the followers named there."""
    return len(row.replicas) < len(planned.replicas) and not set(row.replicas).issuperset(planned.followers)


def _begun(before: State, after: State) -> State:
    """The state before a decision; before the first decision, with the empty table that it starts with."""
    if before.slots.table:
        return before
    return replace(before, slots=before.slots.with_rows(empty_table(len(after.slots.table))))


def _proof_complaints(before: State, decision: Decision, after: State, certificate: Certificate) -> Iterator[str]:
    """Violations by a plan: slots that no other node may hold have to stay; the plan for the rest has to be proven."""
    planned = after.slots.planned
    rows = [planned.get(slot.slot_id, slot) for slot in after.slots.table]
    table = planned_from(before, decision, after)
    staying = immovable(after, table)
    kept = [row for row in rows if row.slot_id in staying]
    yield from survivor_complaints(before, decision, kept, after, "which no other node may hold")
    placed = [row for row in rows if row.slot_id not in staying]
    if placed:
        problem = _problem(decision, after, tuple(slot for slot in table if slot.slot_id not in staying))
        yield from verify(problem, placed, certificate)
    elif any((certificate.moved, certificate.least_moved, certificate.leader_changes, certificate.lost_slots)):
        yield "certificate: it reports moves, but no node may be given a slot"


def _only_continues(before: State, decision: Decision) -> bool:
    """Whether a decision plans nothing, and only carries out rows that were planned and proven before."""
    called_for = [event for event in decision.events if has_to_be_proven(event)]
    return (
        decision.certificate is None
        and before.slots.plan is not None
        and bool(called_for)
        # A decision that drops a plan has made a new one, even without a certificate: a refresh may plan at any time.
        and not any(isinstance(event, PlanDropped) for event in decision.events)
        and all(isinstance(event, SlotsAssigned) for event in called_for)
    )


def _step_complaints(before: State, decision: Decision) -> list[str]:
    """Assigned rows that differ from the plan in flight in more than leader epochs."""
    rows = [slot for event in decision.events if isinstance(event, SlotsAssigned) for slot in event.slots]
    left = before.slots.planned
    return [
        f"slot {slot.slot_id} is assigned a row that differs from the plan in flight"
        for slot in rows
        if (planned := left.get(slot.slot_id)) is None
        or (planned.leader, planned.followers) != (slot.leader, slot.followers)
    ]


def _plan_in_flight_complaints(decision: Decision, after: State) -> list[str]:
    if after.slots.plan is None or after.slots.plan.plan_id == decision.seq:
        return []
    return [f"it plans, and leaves the plan of decision {after.slots.plan.plan_id} in flight"]


def _problem(decision: Decision, after: State, rows: tuple[Slot, ...]) -> PlacementProblem:
    """The planner's problem for these rows. Readiness is recorded in the certificate only."""
    policy = after.cluster.policy
    known = {slot.slot_id for slot in rows}
    return PlacementProblem(
        rows,
        tuple(holders(after)),
        PlacementRules(policy.replica_count, policy.zone_rule, policy.replicas_per_zone, policy.tolerance_percent),
        decision.epoch,
        pins=tuple(pin for pin in active_pins(after) if pin.slot_id in known),
        exclusions=tuple(each for each in active_exclusions(after) if each.slot_id in known),
    )
