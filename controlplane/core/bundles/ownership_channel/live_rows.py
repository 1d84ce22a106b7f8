"""The rows of a bundle that is handed off in this cluster: which may follow, by the rule of the ownership channel.

Pulsar's nodes write records, and each reader judges them. Here the leader writes the rows, and judges each of them by
the same rule (``conflict.judge``) before it is committed. Every row of a bundle is in the log, so the rule is that of
the metadata store, which knows no gaps.
"""

from dataclasses import replace
from itertools import pairwise
from typing import Final

from controlplane.core.bundles.bundle import Bundle
from controlplane.core.bundles.ownership_channel.conflict import Verdict, judge
from controlplane.core.bundles.ownership_channel.record import FIRST_VERSION, OwnershipRecord, next_version
from controlplane.core.bundles.ownership_channel.states import Storage
from controlplane.core.bundles.ownership_state import OwnershipState
from controlplane.core.bundles.ranges import HashRange
from controlplane.core.values.identifiers import Epoch, NodeId
from controlplane.errors import InvariantViolationError

_SOURCE_IS_OWNER: Final = frozenset({OwnershipState.RELEASING, OwnershipState.SPLITTING})


def record_of(bundle: Bundle) -> OwnershipRecord:
    """The row as a record of Pulsar's table: its source is the node that releases, divides or has released."""
    state = bundle.ownership_state
    return OwnershipRecord(
        state=state,
        destination=bundle.owner if state is OwnershipState.OWNED else bundle.next_owner,
        source=bundle.owner if state in _SOURCE_IS_OWNER else bundle.former_owner,
        version=bundle.version,
        is_forced=bundle.is_forced,
        children=dict.fromkeys(bundle.children),
    )


def judge_rows(before: Bundle, after: Bundle) -> Verdict:
    """Whether a row may take the place of another one of its bundle."""
    return judge(record_of(before), record_of(after), Storage.METADATA_STORE)


def created(bundle: Bundle, epoch: Epoch) -> Bundle:
    """The first row of a bundle: *Free*. Pulsar has no record of a bundle that was never assigned."""
    return replace(bundle, state=OwnershipState.FREE, state_epoch=epoch, version=FIRST_VERSION)


def releasing(bundle: Bundle, next_owner: NodeId | None, epoch: Epoch) -> Bundle:
    """*Owned* to *Releasing*: the owner has to give the bundle away, to the next owner if there is one."""
    return _following(bundle, OwnershipState.RELEASING, epoch, owner=bundle.owner, next_owner=next_owner)


def freed(bundle: Bundle, epoch: Epoch) -> Bundle:
    """*Releasing* without a next owner to *Free*: the owner has released it."""
    return _following(bundle, OwnershipState.FREE, epoch, former_owner=bundle.owner)


def assigning(bundle: Bundle, next_owner: NodeId, epoch: Epoch) -> Bundle:
    """*Releasing* or *Free* to *Assigning*: the next owner has to open the bundle."""
    return _following(bundle, OwnershipState.ASSIGNING, epoch, next_owner=next_owner, former_owner=bundle.owner)


def opened(bundle: Bundle, epoch: Epoch) -> Bundle:
    """*Assigning* to *Owned*: the next owner has opened it, and serves it from this epoch on."""
    return _following(
        bundle,
        OwnershipState.OWNED,
        epoch,
        owner=bundle.next_owner,
        former_owner=bundle.former_owner,
        owner_epoch=epoch,
    )


def splitting(bundle: Bundle, children: tuple[str, ...], algorithm: str, epoch: Epoch) -> Bundle:
    """*Owned* to *Splitting*: the owner has to divide the bundle, and to find the bounds if there are no children."""
    return _following(
        bundle,
        OwnershipState.SPLITTING,
        epoch,
        owner=bundle.owner,
        owner_epoch=bundle.owner_epoch,
        children=children,
        split_algorithm=algorithm,
    )


def children_of(bundle: Bundle, bounds: tuple[int, ...], epoch: Epoch) -> tuple[Bundle, ...]:
    """The bundles that take the place of one, *Owned* by its owner under its token.

    Args:
        bundle: the bundle.
        bounds: the inner bounds of its parts, ascending between its own.
        epoch: of their rows.
    """
    deleted = _following(bundle, OwnershipState.DELETED, epoch, former_owner=bundle.owner)
    return tuple(
        replace(
            deleted,
            lower=lower,
            upper=upper,
            owner=bundle.owner,
            owner_epoch=bundle.owner_epoch,
            former_owner=None,
            state=OwnershipState.OWNED,
            version=FIRST_VERSION,
            parent=bundle.hash_range.name,
        )
        for lower, upper in pairwise((bundle.lower, *bounds, bundle.upper))
    )


def taken(bundle: Bundle, owner: NodeId, epoch: Epoch) -> Bundle:
    """Any state to *Owned*, forced: the node owns the bundle at once, because another one is lost."""
    former = bundle.former_owner if bundle.owner is None else bundle.owner
    former = None if former == owner else former
    return _following(
        bundle, OwnershipState.OWNED, epoch, owner=owner, former_owner=former, owner_epoch=epoch, is_forced=True
    )


def assigned_again(bundle: Bundle, next_owner: NodeId, epoch: Epoch) -> Bundle:
    """*Assigning* to *Assigning*, forced: another node has to open it, because the former one did not."""
    return _following(
        bundle,
        OwnershipState.ASSIGNING,
        epoch,
        next_owner=next_owner,
        former_owner=bundle.former_owner,
        is_forced=True,
    )


def given_up(bundle: Bundle, epoch: Epoch) -> Bundle:
    """*Splitting* to *Owned*, forced: the bundle stays whole and with its owner, under its token."""
    return _following(
        bundle, OwnershipState.OWNED, epoch, owner=bundle.owner, owner_epoch=bundle.owner_epoch, is_forced=True
    )


def lost(bundle: Bundle, epoch: Epoch) -> Bundle:
    """Any state to *Free*, forced: no node may own it."""
    former = bundle.former_owner if bundle.owner is None else bundle.owner
    return _following(bundle, OwnershipState.FREE, epoch, former_owner=former, is_forced=True)


def _following(  # noqa: PLR0913 - the fields of a row, all by name
    bundle: Bundle,
    state: OwnershipState,
    epoch: Epoch,
    *,
    owner: NodeId | None = None,
    next_owner: NodeId | None = None,
    former_owner: NodeId | None = None,
    owner_epoch: Epoch | None = None,
    children: tuple[str, ...] = (),
    split_algorithm: str = "",
    is_forced: bool = False,
) -> Bundle:
    """The next row of a bundle.

    Raises:
        InvariantViolationError: the rule refuses it.
    """
    before = record_of(bundle)
    row = Bundle(
        bundle.namespace,
        bundle.lower,
        bundle.upper,
        owner,
        state=state,
        next_owner=next_owner,
        former_owner=former_owner,
        owner_epoch=bundle.owner_epoch if owner_epoch is None else owner_epoch,
        state_epoch=epoch,
        version=next_version(before),
        is_forced=is_forced,
        children=children,
        split_algorithm=split_algorithm,
        parent=bundle.parent,
    )
    verdict = judge(before, record_of(row), Storage.METADATA_STORE)
    if verdict.keeps:
        message = (
            f"bundle {bundle.bundle_id} cannot go from {bundle.ownership_state.value} to {state.value}: {verdict.value}"
        )
        raise InvariantViolationError(message)
    return row


def range_names(bundle: Bundle, bounds: tuple[int, ...]) -> tuple[str, ...]:
    """The names of the ranges into which inner bounds divide a bundle."""
    return tuple(HashRange(*each).name for each in pairwise((bundle.lower, *bounds, bundle.upper)))
