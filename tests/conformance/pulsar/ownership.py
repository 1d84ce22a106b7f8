"""Recorded answers about the ownership channel: the states that may follow, and which of two records counts."""

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any, Final

from controlplane.core.bundles.ownership_channel.conflict import Verdict, judge
from controlplane.core.bundles.ownership_channel.record import OwnershipRecord
from controlplane.core.bundles.ownership_channel.states import NEXT_STATES, Storage
from controlplane.core.bundles.ownership_state import OwnershipState


def record(given: Sequence[Any] | None) -> OwnershipRecord | None:
    """``[state, destination, source, version, force]``, or null."""
    if given is None:
        return None
    state, destination, source, version, force = given
    return OwnershipRecord(OwnershipState(state), destination, source, version, is_forced=force)


def conflict(given: Mapping[str, Any]) -> object:
    """A letter for each of the records that are read: K(ept), T(aken) or N(othing to compare with)."""
    present, storage = record(given["from"]), Storage(given["storage"])
    return "".join(_letter(judge(present, record(each), storage)) for each in given["to"])


def _letter(verdict: Verdict) -> str:
    if verdict is Verdict.NO_OWNER:
        return "N"
    return "K" if verdict.keeps else "T"


def transitions(_given: Mapping[str, Any]) -> object:
    """The valid pairs of each storage in the order of the states, and the groups of states."""
    pairs = {
        storage.value: [
            f"{state.value}>{following.value}"
            for state, following in product(OwnershipState, OwnershipState)
            if following in NEXT_STATES[storage][state]
        ]
        for storage in Storage
    }
    in_flight = [state.value for state in OwnershipState if state.is_in_flight]
    return {**pairs, "in_flight": in_flight, "active": [state.value for state in OwnershipState if state.is_active]}


OPERATIONS: Final[Mapping[str, Callable[[Any], object]]] = {"conflict": conflict, "transitions": transitions}
