"""A state to and from its plain form: what snapshots hold, and what ``--format json`` shows."""

from controlplane.core.plain import Plain, from_plain, to_plain
from controlplane.core.state import State, entries_digest
from controlplane.errors import LogContinuityError


def state_to_plain(state: State) -> Plain:
    """The plain form of a whole state."""
    return to_plain(state)


def state_from_plain(plain: Plain) -> State:
    """The state of a plain form, checked against the digest that it carries.

    Raises:
        InvalidInputError: a field is missing or has another type.
        LogContinuityError: the entries do not have the digest that stands beside them: the snapshot is damaged.
    """
    state = from_plain(State, plain)
    if entries_digest(state) != state.entries_digest:
        message = f"snapshot of seq {state.seq} is damaged: its entries do not have the digest that it names"
        raise LogContinuityError(message)
    return state
