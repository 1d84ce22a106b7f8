"""Decision logs as somebody may have altered them."""

from collections.abc import Sequence
from dataclasses import replace

from controlplane.core.apply import apply_all, stamp
from controlplane.core.decision import Decision
from controlplane.core.state import State


def resealed(decisions: Sequence[Decision]) -> list[Decision]:
    """The same decisions with digests that fit: what a forger does who knows how."""
    state, found = State(), []
    for decision in decisions:
        chained = replace(decision, previous_digest=state.last_digest, state_digest="")
        stamped = stamp(apply_all(state, chained.events), chained)
        found.append(chained.with_state_digest(stamped.digest()))
        state = replace(stamped, last_digest=found[-1].digest())
    return found
