"""Whole decision logs: verification, and forged logs with valid digests."""

from collections.abc import Sequence
from dataclasses import replace

from controlplane.core.log.apply import apply_all, stamp
from controlplane.core.log.carried_out import carried_out
from controlplane.core.log.decision import Decision
from controlplane.core.log.events import Event
from controlplane.core.log.state import State
from controlplane.core.slots.policies import BUILT_IN_POLICIES
from controlplane.core.slots.policy_contract import SlotPolicies
from controlplane.core.values.identifiers import Epoch
from controlplane.core.verification.log_verification import LogVerification


def complaints_of(decisions: Sequence[Decision], policies: SlotPolicies = BUILT_IN_POLICIES) -> list[str]:
    """All complaints about a log, by a verifier that knows these slot policies."""
    verification = LogVerification(policies)
    found = []
    for decision in decisions:
        found += verification.check(decision)
        if verification.broken:
            break
    else:
        found += verification.check_end()
    return [f"seq {each.seq}, epoch {each.epoch}: {each.sentence}" for each in found]


def resealed(decisions: Sequence[Decision], before: State | None = None) -> list[Decision]:
    """The same decisions with matching digests, as in a careful forgery."""
    state, found = before or State(), []
    for decision in decisions:
        chained = replace(decision, previous_digest=state.last_digest, state_digest="")
        stamped = stamp(apply_all(state, chained.events), chained)
        found.append(chained.with_state_digest(stamped.digest()))
        state = replace(stamped, last_digest=found[-1].digest())
    return found


def with_last(decisions: list[Decision], events: tuple[Event, ...]) -> list[Decision]:
    """The log with other events in the last decision, and everything else in it as it has to be."""
    before = apply_all(State(), [event for decision in decisions[:-1] for event in decision.events])
    numbers = carried_out(before, apply_all(before, events), events)
    forged = replace(
        decisions[-1],
        events=events,
        epoch=Epoch(decisions[-2].epoch + 1),
        moves_carried_out=numbers.moves,
        leader_changes_carried_out=numbers.leader_changes,
        moves_left=numbers.moves_left,
    )
    return resealed([*decisions[:-1], forged])
