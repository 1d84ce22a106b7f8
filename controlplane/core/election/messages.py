"""What an election is told, and what it asks its driver to do."""

from dataclasses import dataclass
from typing import TypeAlias

from controlplane.core.election.contenders import Outranking
from controlplane.core.values.identifiers import ControllerId, Term
from controlplane.core.values.machine import Output, Woke


@dataclass(frozen=True, slots=True)
class Granted:
    """The store granted the lease."""

    term: Term
    asked_at_ms: int


@dataclass(frozen=True, slots=True)
class Renewed:
    """The store prolonged the lease; ``outranked_by`` is the most preferred contender above us, if there is one."""

    term: Term
    asked_at_ms: int
    outranked_by: Outranking | None = None


@dataclass(frozen=True, slots=True)
class HeldByOther:
    """The store names another holder, or ourselves under another term."""

    owner: ControllerId
    term: Term
    remaining_ms: int


@dataclass(frozen=True, slots=True)
class LeftToOther:
    """The lease is free, and the store leaves it to a preferred contender for ``wait_ms``."""

    wait_ms: int


@dataclass(frozen=True, slots=True)
class LeaseGone:
    """The store knows no lease: it ran out, or the store lost its data."""


@dataclass(frozen=True, slots=True)
class GivenBack:
    """The store has heard that we give the lease back."""


@dataclass(frozen=True, slots=True)
class StoreSilent:
    """The store did not answer in time."""


@dataclass(frozen=True, slots=True)
class FloorRaised:
    """The log holds this term or a higher one: our own has to be above it."""

    floor: Term


@dataclass(frozen=True, slots=True)
class GiveBackAsked:
    """We are to give the lease back if it is ours, and to stand again after ``wait_ms``."""

    wait_ms: int


@dataclass(frozen=True, slots=True)
class ConfirmationAsked:
    """Somebody needs to know now whether the lease is still ours."""


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
    """Ask for the lease with a term above ``floor``."""

    floor: Term


@dataclass(frozen=True, slots=True)
class Renew:
    """Prolong the lease."""

    term: Term


@dataclass(frozen=True, slots=True)
class Release:
    """Give the lease back; nothing if it is another's, or ours under another term."""

    term: Term


ElectionAction: TypeAlias = Acquire | Renew | Release
ElectionOutput: TypeAlias = Output[ElectionAction]
