"""One bundle that a node has to do with: what the table wants of it, how far its service is, and which call is next.

Rows may come faster than a service opens and closes bundles, and epochs may be skipped. So nothing here follows them
step by step. The newest row says what is *wished*, the calls that have returned say where the service *stands*, and the
difference is the next call. Pure: the book of bundles holds the lock, knows the time, and makes all changes.
"""

from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from controlplane.core.bundles.bundle import Bundle
from controlplane.core.bundles.ownership_state import OwnershipState
from controlplane.core.bundles.reports import BundleStep, BundleStepReport
from controlplane.core.values.identifiers import Epoch, NodeId
from controlplane.node.callbacks import FencingToken

NO_HOLDING: Final = 0
"""Stands for the holding of a bundle that the table does not give to this node."""
_VERSIONS: Final = 1 << 64
_OPEN_STATES: Final = frozenset({OwnershipState.OWNED, OwnershipState.SPLITTING})


class Wish(Enum):
    """What the newest row wants of this node's service."""

    NOTHING = "nothing"
    """Another node owns the bundle, or it has ended."""
    PREPARED = "prepared"
    """Another node releases it, and this node is next."""
    OPEN = "open"
    """This node owns it, or opens it as the next owner."""
    CLOSED = "closed"
    """This node releases it, or has released it and no other node owns it yet."""


class Standing(Enum):
    """Where the service stands, by the calls that have returned; while it is being closed, it counts as closed."""

    UNKNOWN = "unknown"
    PREPARED = "prepared"
    OPEN = "open"
    CLOSED = "closed"


class CallKind(Enum):
    """A callback for a bundle; the value is its name."""

    PREPARING = "on_bundle_preparing"
    ASSIGNED = "on_bundle_assigned"
    RELEASING = "on_bundle_releasing"
    RELEASED = "on_bundle_released"
    SPLIT = "on_bundle_split"
    TOPICS = "topics_of_bundle"


URGENT_CALLS: Final = frozenset({CallKind.RELEASING, CallKind.SPLIT})
"""Calls for which others wait; they are made before those that wait longer."""


@dataclass(eq=False, slots=True)
class BundleCall:
    """A call in progress, or about to be made.

    Attributes:
        kind: which callback.
        held: the bundle.
        bundle: its row, as the callback gets it; the last one, if it has ended.
        names_another: whether the row names another node, which clients can ask.
        token: for ASSIGNED.
        holding: for ASSIGNED, the holding for which the bundle is opened.
        children: for SPLIT.
        began_ms: when it began.
        is_hung: whether it has taken longer than its limit.
    """

    kind: CallKind
    held: "HeldBundle"
    bundle: Bundle
    names_another: bool
    token: FencingToken
    holding: int
    children: tuple[Bundle, ...]
    began_ms: int
    is_hung: bool = False


@dataclass(eq=False, slots=True)
class AcceptedBundleRequest:
    """A request that the service was allowed to serve, until it ends.

    Attributes:
        hashed: the hash of its key.
        held: the bundle; after a split the child that holds the hash. None once the request has ended.
        is_void: whether the right to serve it has ended before it did.
    """

    hashed: int
    held: "HeldBundle | None"
    is_void: bool = False


@dataclass(eq=False, slots=True)
class HeldBundle:
    """What the book notes of a bundle.

    A *holding* is a time in which the table gives the bundle to this node without a break, from *Assigning* or *Owned*
    to the end of *Releasing*. A bundle that is lost and gained again is another holding, and has to be opened again.

    Attributes:
        bundle_id: the bundle.
        known: its newest row; the last one, if it has ended.
        has_ended: whether the table has no row of it any more.
        wish: see :class:`Wish`.
        holding: the present holding.
        gained_epoch: of the table in which the present holding began.
        standing: see :class:`Standing`.
        opened: the holding for which the service has opened it, until the service has to close it.
        call: the call in progress.
        accepted: requests that were accepted and have not ended.
        leaves_since_ms: since when the service has to close it; None if it has not.
        is_given_up: whether the release was waited for long enough.
        children: the bundles that took its place while it was open.
        after: a bundle that this one is a part of, whose calls come first.
        parts: the bundles that wait for this one.
        divided: the version of the row for which the service was asked for its topics, and the bounds that were found.
    """

    bundle_id: str
    known: Bundle
    has_ended: bool = False
    wish: Wish = Wish.NOTHING
    holding: int = NO_HOLDING
    gained_epoch: Epoch = Epoch(0)  # noqa: RUF009 - an integer
    standing: Standing = Standing.UNKNOWN
    opened: int = NO_HOLDING
    call: BundleCall | None = None
    accepted: set[AcceptedBundleRequest] = field(default_factory=set)
    leaves_since_ms: int | None = None
    is_given_up: bool = False
    children: tuple[Bundle, ...] = ()
    after: "HeldBundle | None" = None
    parts: "list[HeldBundle]" = field(default_factory=list)
    divided: tuple[int, tuple[int, ...]] | None = None

    @property
    def has_right(self) -> bool:
        """Whether requests that were accepted may still be served."""
        return self.standing is Standing.OPEN and self.opened == self.holding != NO_HOLDING

    @property
    def serves(self) -> bool:
        """Whether requests are accepted. Not as the next owner: only the row *Owned* says that the former one ended."""
        return self.has_right and self.wish is Wish.OPEN and self.known.ownership_state in _OPEN_STATES

    @property
    def has_to_close(self) -> bool:
        """Whether the service has opened it and is not wished to have it open, or not without opening it again."""
        if self.children:
            return False
        return self.standing is Standing.OPEN and not (self.wish is Wish.OPEN and self.opened == self.holding)

    @property
    def is_leaving(self) -> bool:
        """Whether the service is being closed, or has to be, so that time counts."""
        if self.has_to_close:
            return True
        is_closed = self.call is None and self.standing is not Standing.OPEN
        return self._releases and not is_closed and not self.is_given_up

    @property
    def is_quiet(self) -> bool:
        """Whether the service has nothing of it, so that its parts need not wait."""
        return self.call is None and self.standing is Standing.UNKNOWN and not self.children

    @property
    def is_done(self) -> bool:
        """Whether nothing is to be noted of it any more."""
        if not self.is_quiet:
            return False
        return self.wish is Wish.NOTHING or (self.wish is Wish.CLOSED and not self._releases)

    def next_call(self) -> CallKind | None:
        """The call that is due now; None while nothing is, or while another call or accepted requests come first."""
        if self.call is not None or self.after is not None:
            return None
        if self.children:
            return CallKind.SPLIT
        if self.has_to_close:
            return None if self.accepted else CallKind.RELEASING
        if self.standing is Standing.OPEN:
            return CallKind.TOPICS if self._lacks_bounds else None
        if self.wish is Wish.OPEN:
            return CallKind.ASSIGNED
        if self.wish is Wish.CLOSED:
            return None
        if self.wish is Wish.PREPARED and self.standing is not Standing.CLOSED:
            return CallKind.PREPARING if self.standing is Standing.UNKNOWN else None
        return CallKind.RELEASED if self.standing is not Standing.UNKNOWN else None

    def step(self) -> BundleStepReport | None:
        """What heartbeats say of the bundle: the step that its row asks of this node, once it is done."""
        row, state = self.known, self.known.state
        if self._releases:
            closed = self.call is None and self.standing is not Standing.OPEN
            done = closed or self.is_given_up
            return BundleStepReport(self.bundle_id, row.version, BundleStep.RELEASED) if done else None
        if self.wish is not Wish.OPEN or not self.has_right or state is None:
            return None
        if state is OwnershipState.ASSIGNING:
            return BundleStepReport(self.bundle_id, row.version, BundleStep.OPENED)
        if state is not OwnershipState.SPLITTING or self._lacks_bounds:
            return None
        bounds = () if self.divided is None or row.children else self.divided[1]
        return BundleStepReport(self.bundle_id, row.version, BundleStep.DIVIDED, bounds)

    @property
    def _releases(self) -> bool:
        return self.wish is Wish.CLOSED and self.known.ownership_state is OwnershipState.RELEASING

    @property
    def _lacks_bounds(self) -> bool:
        row = self.known
        if row.state is not OwnershipState.SPLITTING or row.children:
            return False
        return self.divided is None or self.divided[0] != row.version


def wish_of(row: Bundle, node_id: NodeId) -> Wish:
    """What a row wants of a node."""
    state = row.ownership_state
    if state in _OPEN_STATES:
        return Wish.OPEN if row.owner == node_id else Wish.NOTHING
    if state is OwnershipState.ASSIGNING:
        return Wish.OPEN if row.next_owner == node_id else Wish.CLOSED
    if state is OwnershipState.RELEASING:
        if row.owner == node_id:
            return Wish.CLOSED
        return Wish.PREPARED if row.next_owner == node_id else Wish.NOTHING
    return Wish.CLOSED if state is OwnershipState.FREE else Wish.NOTHING


def is_held_by(row: Bundle, node_id: NodeId) -> bool:
    """Whether a row gives the bundle to a node, as its owner or as the next one that opens it."""
    if row.ownership_state is OwnershipState.ASSIGNING:
        return row.next_owner == node_id
    return row.owner == node_id


def concerns(row: Bundle, node_id: NodeId) -> bool:
    """Whether a node that notes nothing of a bundle has to do something for this row."""
    return is_held_by(row, node_id) or wish_of(row, node_id) is Wish.PREPARED


def goes_on(before: Bundle, after: Bundle, *, is_skipped: bool) -> bool:
    """Whether a bundle was this node's without a break between two of its rows that both give it to this node.

    The owner epoch tells, because each owner has one of its own; who has owned the bundle since before feature level 3
    has 0. There is none yet while the bundle is *Assigning*; then no other row may lie between. Rows of before that
    level have none at all.

    Args:
        before: the row before.
        after: the row now.
        is_skipped: whether tables between the two were not seen.
    """
    if before is after:
        return True
    if before.state is None or after.state is None:
        return not is_skipped
    if before == after:
        return True
    if before.state is OwnershipState.ASSIGNING:
        return (after.version - before.version) % _VERSIONS == 1
    return before.owner_epoch == after.owner_epoch and after.state is not OwnershipState.ASSIGNING


def node_to_ask(row: Bundle, node_id: NodeId) -> NodeId | None:
    """The node that has the bundle next, or has it now; None if that is this node itself, or there is none."""
    found = row.next_owner or row.owner
    return None if found == node_id else found
