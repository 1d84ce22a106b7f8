"""Tables of bundles written by hand, row by row as a leader writes them, and a book that follows them."""

from collections.abc import Callable
from dataclasses import replace

from controlplane.core.bundles.bundle import Bundle, equal_bundles
from controlplane.core.bundles.ownership_channel.live_rows import children_of, splitting, taken
from controlplane.core.bundles.ownership_state import OwnershipState
from controlplane.core.bundles.reports import BundleStep
from controlplane.core.cluster.policy import HashFunction
from controlplane.core.cluster.rows import TableSettings
from controlplane.core.membership.node import NodeRole, NodeStatus
from controlplane.core.membership.rows import NodeRow
from controlplane.core.routing.replica import RoutingTable
from controlplane.core.values.identifiers import Epoch, Seq, Term
from controlplane.node.callbacks import Access, BundleOwnership
from controlplane.node.handoff_settings import HandoffSettings
from controlplane.node.held_bundle import AcceptedBundleRequest, BundleCall, CallKind
from controlplane.node.held_bundles import BundleBook

INCARNATION = 7
NAMESPACE = "kv"
SETTINGS = HandoffSettings(
    accepted_limit_ms=100, release_limit_ms=1_000, open_limit_ms=3_000, calls_at_once=2, hung_calls_at_most=3
)
WHOLE = equal_bundles(NAMESPACE, 1)[0].bundle_id
"""The only bundle of most stories."""


class Leader:
    """Writes the rows of one namespace, and of the nodes ``n``, ``a`` and ``b``.

    Attributes:
        rows: the bundles by id, as they are in the next table.
        epoch: of the last table.
    """

    def __init__(self, count: int = 1, *, has_handoffs: bool = True) -> None:
        """Begin with bundles that are *Free*."""
        self.epoch = 0
        self.term = Term(1)
        self._settings = TableSettings(4, 2, HashFunction.CRC32C, 2_500, feature_level=3 if has_handoffs else 2)
        rows = equal_bundles(NAMESPACE, count)
        if has_handoffs:
            rows = tuple(replace(each, state=OwnershipState.FREE, version=1, state_epoch=Epoch(1)) for each in rows)
        self.rows = {each.bundle_id: each for each in rows}
        self._nodes = {
            name: NodeRow(name, INCARNATION, NodeRole.DATA, NodeStatus.ACTIVE, (), "", 1, "") for name in "nab"
        }

    def write(self, change: Callable[..., Bundle], *args: object, bundle_id: str = WHOLE) -> None:
        """Write the row that follows by a function of ``live_rows``, for the next table."""
        self.rows[bundle_id] = change(self.rows[bundle_id], *args, Epoch(self.epoch + 1))

    def own(self, bundle_id: str, owner: str | None) -> None:
        """Write a row of before feature level 3."""
        self.rows[bundle_id] = replace(self.rows[bundle_id], owner=owner)

    def split(self, *bounds: int, bundle_id: str = WHOLE) -> list[str]:
        """Let children take the place of a bundle; return their ids. It need not have been *Splitting* before."""
        parent = self.rows.pop(bundle_id)
        if parent.state is not OwnershipState.SPLITTING:
            parent = splitting(parent, (), "", parent.state_epoch)
        children = children_of(parent, bounds, Epoch(self.epoch + 1))
        self.rows.update({child.bundle_id: child for child in children})
        return [child.bundle_id for child in children]

    def status(self, status: NodeStatus, node_id: str = "n") -> None:
        """Write a node's row, which is another object even if it says the same."""
        self._nodes[node_id] = replace(self._nodes[node_id], status=status)

    def table(self) -> RoutingTable:
        """The next table."""
        self.epoch += 1
        return RoutingTable(
            term=self.term,
            epoch=Epoch(self.epoch),
            seq=Seq(self.epoch),
            log_id="log",
            settings=self._settings,
            slots=(),
            nodes=dict(self._nodes),
            bundles=dict(sorted(self.rows.items())),
            namespaces={},
            digest="",
        )


class Story(Leader):
    """A leader, and the book of node ``n`` beside it.

    Attributes:
        book: the book.
        now_ms: its time.
        made: the calls that were made, in order.
    """

    def __init__(self, count: int = 1, *, has_handoffs: bool = True, settings: HandoffSettings = SETTINGS) -> None:
        super().__init__(count, has_handoffs=has_handoffs)
        self.book = BundleBook("n", settings=settings)
        self.now_ms = 1_000
        self.made: list[BundleCall] = []

    def write(self, change: Callable[..., Bundle], *args: object, bundle_id: str = WHOLE) -> None:
        """Write a row, and let the book follow a table with it."""
        super().write(change, *args, bundle_id=bundle_id)
        self.follow()

    def write_unseen(self, change: Callable[..., Bundle], *args: object, bundle_id: str = WHOLE) -> None:
        """Write a row in a table that the book does not see."""
        super().write(change, *args, bundle_id=bundle_id)
        self.table()

    def follow(self) -> None:
        """Let the book follow the next table."""
        self.book.follow(self.table(), INCARNATION, self.now_ms)

    def begin(self) -> BundleCall:
        """Begin the call that is due."""
        call = self.book.begin(self.now_ms)
        assert call is not None, "no call is due"
        self.made.append(call)
        return call

    def run(self) -> list[str]:
        """Make all calls that are due, one after the other; return them as words."""
        before = len(self.made)
        while (call := self.book.begin(self.now_ms)) is not None:
            self.made.append(call)
            self.book.finish(call, self.now_ms)
        return [say(call) for call in self.made[before:]]

    def wait(self, milliseconds: int) -> tuple[BundleCall, ...]:
        """Let time pass; return the calls that hang since."""
        self.now_ms += milliseconds
        return self.book.attend(self.now_ms)

    def asked(self, hashed: int = 0) -> BundleOwnership:
        """The answer for a hash."""
        return self.book.ownership(NAMESPACE, hashed)

    def access(self, hashed: int = 0) -> Access:
        """The access to a hash."""
        return self.asked(hashed).access

    def accept(self, hashed: int = 0) -> AcceptedBundleRequest:
        """A request that is accepted."""
        _, call = self.book.accept(NAMESPACE, hashed)
        assert call is not None
        return call

    def steps(self) -> list[BundleStep]:
        """The steps that a heartbeat reports, each for the newest row."""
        steps = self.book.report().steps
        assert all(each.version == self.rows[each.bundle_id].version for each in steps)
        return [each.step for each in steps]


def owning() -> Story:
    """A node that has been given the only bundle, and has opened it."""
    story = Story()
    story.write(taken, "n")
    story.run()
    return story


def say(call: BundleCall) -> str:
    """A call in words: what, of which range, and for a release the node that is named."""
    bundle = call.bundle
    words = f"{call.kind.name.lower()} {bundle.lower >> 28:x}-{bundle.end >> 28:x}"
    if call.kind is CallKind.RELEASED:
        return f"{words} {bundle.next_owner or bundle.owner if call.names_another else None}"
    if call.kind is CallKind.SPLIT:
        return f"{words} at {' '.join(f'{child.lower >> 28:x}' for child in call.children[1:])}"
    return words
