"""The events and the actions of an election."""

from dataclasses import dataclass
from typing import TypeAlias

from controlplane.core.election.contenders import Outranking
from controlplane.core.values.identifiers import ControllerId, Term
from controlplane.core.values.machine import Output, Woke


@dataclass(frozen=True, slots=True)
class Granted:
    """The store granted the lease in answer to a request of monotonic time ``asked_at_ms``."""

    term: Term
    asked_at_ms: int


@dataclass(frozen=True, slots=True)
class Renewed:
    """The store renewed the lease. ``outranked_by`` is the preferred contender with the greatest priority, if any."""

    term: Term
    asked_at_ms: int
    outranked_by: Outranking | None = None


@dataclass(frozen=True, slots=True)
class HeldByOther:
    """Another controller holds the lease, or this one with another term."""

    owner: ControllerId
    term: Term
    remaining_ms: int


@dataclass(frozen=True, slots=True)
class LeftToOther:
    """The lease is free, and the store reserves it for a preferred contender for ``wait_ms``."""

    wait_ms: int


@dataclass(frozen=True, slots=True)
class LeaseGone:
    """The store has no lease: it expired, or the store lost its data."""


@dataclass(frozen=True, slots=True)
class GivenBack:
    """The store answered the request to give the lease back."""


@dataclass(frozen=True, slots=True)
class StoreSilent:
    """The store did not answer in time."""


@dataclass(frozen=True, slots=True)
class FloorRaised:
    """The log holds this term or a greater one; the term of a lease must be greater than ``floor``."""

    floor: Term


@dataclass(frozen=True, slots=True)
class GiveBackAsked:
    """The driver asks to give the lease back if it is held, and to stand for election again after ``wait_ms``."""

    wait_ms: int


@dataclass(frozen=True, slots=True)
class ConfirmationAsked:
    """The driver asks to check now whether this controller still holds the lease."""


ElectionEvent: TypeAlias = (
    Woke
    | Granted
    | Renewed
    | HeldByOther
    | LeftToOther
    | LeaseGone
    | GivenBack
    | StoreSilent
    | FloorRaised
    | GiveBackAsked
    | ConfirmationAsked
)


@dataclass(frozen=True, slots=True)
class Acquire:
    """Ask for the lease with a term greater than ``floor``."""

    floor: Term


@dataclass(frozen=True, slots=True)
class Renew:
    """Renew the lease."""

    term: Term


@dataclass(frozen=True, slots=True)
class Release:
    """Give the lease back; no effect if this controller does not hold it with this term."""

    term: Term


ElectionAction: TypeAlias = Acquire | Renew | Release
ElectionOutput: TypeAlias = Output[ElectionAction]
