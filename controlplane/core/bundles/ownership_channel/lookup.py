"""Who owns a bundle, as a node answers it from its table (Pulsar's getOwnerAsync).

A look-up that cannot be answered yet is deferred. It is answered by the next record of the bundle that settles the
ownership (:func:`answer_after_record`), or at its deadline (:func:`answer_at_deadline`). All look-ups of one bundle
share one deferral: the caller keeps the deadline and hands it in again.
"""

from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, TypeAlias

from controlplane.core.bundles.ownership_channel.record import OwnershipRecord, state_of
from controlplane.core.bundles.ownership_state import OwnershipState


@dataclass(frozen=True, slots=True)
class Asker:
    """The node that answers from its table.

    Attributes:
        node_id: the node.
        live_nodes: the nodes in the registry, as it sees them.
        is_registered: it is in the registry itself. If not, it has probably lost the metadata store, and what it knows
            of others says nothing: it answers as well as it can, without checking owners.
    """

    node_id: str
    live_nodes: AbstractSet[str]
    is_registered: bool = True


class Owner(NamedTuple):
    """The bundle's owner, or the node that is about to be.

    Attributes:
        node_id: the node.
        is_checked: whether it was found in the registry.
    """

    node_id: str
    is_checked: bool


class NoOwner(NamedTuple):
    """The bundle has no owner."""


class Deferral(Enum):
    """Why there is no answer yet."""

    CHANGING = "changing"
    """The ownership is changing, and this node is about to be the owner."""
    OWNER_LOST = "owner-lost"
    """The owner is not in the registry. The leader finds another one."""


class Deferred(NamedTuple):
    """The answer comes later: at ``until_ms`` at the latest, by the asker's clock."""

    until_ms: int
    cause: Deferral


class Refusal(Enum):
    """Why there is no answer at all."""

    DELETED = "deleted"
    """The bundle was divided and is no more."""
    TIMED_OUT = "timed-out"
    """The ownership was still changing at the deadline."""
    OWNER_LOST = "owner-lost"
    """The owner that was found at last is not in the registry."""
    DISABLED = "disabled"
    """The asker is shutting down."""


class Refused(NamedTuple):
    """The look-up fails; a client asks again."""

    cause: Refusal


Answer: TypeAlias = Owner | NoOwner | Deferred | Refused


def look_up(
    record: OwnershipRecord | None, asker: Asker, now_ms: int, in_flight_ms: int, waiting_until_ms: int | None = None
) -> Answer:
    """The owner of a bundle.

    Args:
        record: the bundle's record; None without one.
        asker: the node that answers.
        now_ms: its clock.
        in_flight_ms: how long an answer may be deferred.
        waiting_until_ms: the deadline of a look-up of this bundle that is deferred already; None without one.
    """
    state = state_of(record)
    if state is OwnershipState.DELETED:
        return Refused(Refusal.DELETED)
    if record is None or state in {OwnershipState.INIT, OwnershipState.FREE}:
        return NoOwner()
    node_id = record.source if state is OwnershipState.SPLITTING else record.destination
    # Clients go to a destination elsewhere in any case and wait there. A deferral here could block the unload itself.
    goes_elsewhere = state in {OwnershipState.ASSIGNING, OwnershipState.RELEASING} and node_id != asker.node_id
    if goes_elsewhere or not asker.is_registered:
        return NoOwner() if node_id is None else Owner(node_id, is_checked=False)
    return wait_for_owner(record, asker, now_ms, in_flight_ms, waiting_until_ms)


def wait_for_owner(
    record: OwnershipRecord | None, asker: Asker, now_ms: int, in_flight_ms: int, waiting_until_ms: int | None = None
) -> Owner | Deferred:
    """The settled owner if it lives, otherwise a deferral. A request for an assignment waits like this."""
    settled = _settled(record)
    lives = isinstance(settled, Owner) and settled.node_id in asker.live_nodes
    if isinstance(settled, Owner) and lives and waiting_until_ms is None:
        return Owner(settled.node_id, is_checked=True)
    until_ms = now_ms + in_flight_ms if waiting_until_ms is None else waiting_until_ms
    is_lost = isinstance(settled, Owner) and not lives
    return Deferred(until_ms, Deferral.OWNER_LOST if is_lost else Deferral.CHANGING)


def answer_after_record(
    record: OwnershipRecord | None, asker: Asker, *, was_taken: bool = True, is_disabled: bool = False
) -> Owner | NoOwner | Refused | None:
    """What deferred look-ups of a bundle are answered after one of its records was read; None if they go on waiting.

    Args:
        record: the bundle's record in the table now.
        asker: the node that answers.
        was_taken: whether the record that was read is the one in the table. If it was refused, only an owner is an
            answer: the asker may have published the refused one and lost against another node.
        is_disabled: the asker is shutting down: look-ups end, unless the record takes a bundle from it by force.
    """
    if is_disabled and not (record is not None and record.is_forced):
        return Refused(Refusal.DISABLED)
    match state_of(record):
        case OwnershipState.OWNED if record is not None and record.destination is not None:
            return _checked(_settled(record), asker)
        case OwnershipState.DELETED if was_taken:
            return Refused(Refusal.DELETED)
        case OwnershipState.INIT | OwnershipState.FREE if was_taken:
            return NoOwner()
        case _:
            return None


def answer_at_deadline(record: OwnershipRecord | None, asker: Asker) -> Owner | NoOwner | Refused:
    """What deferred look-ups of a bundle are answered at their deadline: the settled owner of now, if there is one."""
    return _checked(_settled(record), asker)


def _settled(record: OwnershipRecord | None) -> Owner | NoOwner | None:
    """Who owns the bundle without any doubt; None while that is changing (Pulsar's getOwnerNow)."""
    match state_of(record):
        case OwnershipState.INIT | OwnershipState.FREE:
            return NoOwner()
        case OwnershipState.OWNED if record is not None and record.destination is not None:
            return Owner(record.destination, is_checked=False)
        case OwnershipState.SPLITTING if record is not None and record.source is not None:
            return Owner(record.source, is_checked=False)
        case _:
            return None


def _checked(settled: Owner | NoOwner | None, asker: Asker) -> Owner | NoOwner | Refused:
    if settled is None:
        return Refused(Refusal.TIMED_OUT)
    if isinstance(settled, NoOwner):
        return settled
    lives = settled.node_id in asker.live_nodes
    return Owner(settled.node_id, is_checked=True) if lives else Refused(Refusal.OWNER_LOST)
