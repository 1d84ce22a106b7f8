"""Bundles through any history: whatever a leader writes, and whichever tables and calls are late or never come."""

from collections.abc import Callable, Iterator
from typing import Final

from hypothesis import given, settings
from hypothesis import strategies as st

from controlplane.core.bundles.bundle import Bundle
from controlplane.core.bundles.ownership_channel.live_rows import (
    assigned_again,
    assigning,
    freed,
    given_up,
    lost,
    opened,
    releasing,
    splitting,
    taken,
)
from controlplane.core.bundles.ownership_state import OwnershipState
from controlplane.core.bundles.reports import BundleStep
from controlplane.core.membership.node import NodeStatus
from controlplane.node.callbacks import Access
from controlplane.node.held_bundle import AcceptedBundleRequest, BundleCall, CallKind
from tests.unit.node.bundle_stories import NAMESPACE, SETTINGS, Leader, Story

NODES: Final = ("n", "n", "a")
_MOVES: Final[dict[OwnershipState, tuple[Callable[..., Bundle], ...]]] = {
    OwnershipState.FREE: (assigning, taken),
    OwnershipState.ASSIGNING: (opened, assigned_again, taken, lost),
    OwnershipState.OWNED: (releasing, taken, lost, splitting),
    OwnershipState.RELEASING: (assigning, freed, taken, lost),
    OwnershipState.SPLITTING: (given_up, taken, lost),
}
_WITH_NODE: Final = frozenset({assigning, assigned_again, taken, releasing})


class History(Story):
    """A story in which everything is drawn, with what has to be true at any time.

    Attributes:
        tenures: for each bundle the number of the present time in which it has been this node's without a break, by
            the rows that were written; 0 while it is not.
    """

    def __init__(self) -> None:
        """Two bundles, without owners."""
        super().__init__(2)
        self.tenures = dict.fromkeys(self.rows, 0)
        self._tenure = 0
        self._opened: set[int] = set()
        self._running: list[tuple[BundleCall, int]] = []
        self._requests: list[AcceptedBundleRequest] = []
        self._heard: dict[str, list[str]] = {}
        self._is_member = self._is_shown_as_member = True
        self._shown: dict[str, Bundle] = {}
        self._shown_tenures: dict[str, int] = {}

    # -- what happens ------------------------------------------------------------------------------------------------

    def move(self, data: st.DataObject) -> None:
        """Write a row of a bundle, or split it."""
        bundle_id = data.draw(st.sampled_from(sorted(self.rows)))
        row = self.rows[bundle_id]
        state = row.ownership_state
        if state is OwnershipState.SPLITTING and row.hash_range.can_split and data.draw(st.booleans()):
            tenure = self.tenures.pop(bundle_id)
            middle = (row.lower + row.upper) // 2
            self.tenures.update(dict.fromkeys(self.split(middle, bundle_id=bundle_id), tenure))
            return
        change = data.draw(st.sampled_from(_MOVES[state]))
        arguments: tuple[object, ...] = (data.draw(st.sampled_from(NODES)),) if change in _WITH_NODE else ()
        if change is splitting:
            arguments = ((), "topic_count_equally_divide")
        if change is freed and row.next_owner is not None:
            change = lost
        if change is releasing and arguments == (row.owner,):
            arguments = (None,)
        if change is assigning and state is OwnershipState.RELEASING:
            change, arguments = (freed, ()) if row.next_owner is None else (assigning, (row.next_owner,))
        Leader.write(self, change, *arguments, bundle_id=bundle_id)
        self._note_tenure(bundle_id, row)

    def _note_tenure(self, bundle_id: str, before: Bundle) -> None:
        row = self.rows[bundle_id]
        was, here = held(before), held(row)
        goes_on = was and here and (before.owner_epoch == row.owner_epoch or before.state is OwnershipState.ASSIGNING)
        if not goes_on:
            self._tenure += 1
            self.tenures[bundle_id] = self._tenure if here else 0

    def member(self, *, is_member: bool, is_seen: bool) -> None:
        """Fence or admit the node in an epoch of its own; rows that say otherwise may be written later."""
        if is_member != self._is_member:
            self._is_member = is_member
            self.status(NodeStatus.ACTIVE if is_member else NodeStatus.FENCED)
            for bundle_id, row in self.rows.items():
                self._tenure += 1
                self.tenures[bundle_id] = self._tenure if is_member and held(row) else 0
            if is_seen:
                self.show()
            else:
                self.table()

    def show(self) -> None:
        """Let the book follow the next table."""
        self.follow()
        self._shown, self._is_shown_as_member = dict(self.rows), self._is_member
        self._shown_tenures = dict(self.tenures)
        for request in self._requests:
            if request.held is not None:
                assert not request.is_void

    def call(self, data: st.DataObject) -> None:
        """Begin a call, or let one end."""
        ends_one = data.draw(st.booleans())
        if self._running and ends_one:
            self._finish(self._running.pop(data.draw(st.integers(0, len(self._running) - 1))))
            return
        call = self.book.begin(self.now_ms)
        if call is not None:
            self._begin(call)

    def request(self, data: st.DataObject) -> None:
        """Accept a request, or let one end."""
        ends_one = data.draw(st.booleans())
        if self._requests and ends_one:
            self.book.leave(self._requests.pop(0), self.now_ms)
            return
        _, request = self.book.accept(NAMESPACE, data.draw(st.integers(0, (1 << 32) - 1)))
        if request is not None:
            self._requests.append(request)

    def let_time_pass(self, data: st.DataObject) -> None:
        """Perhaps beyond a limit."""
        self.wait(data.draw(st.sampled_from([1, SETTINGS.accepted_limit_ms, SETTINGS.open_limit_ms])))

    # -- what has to be true -----------------------------------------------------------------------------------------

    def _begin(self, call: BundleCall) -> None:
        bundle_id = call.held.bundle_id
        assert all(other.held.bundle_id != bundle_id for other, _ in self._running), "in order for each bundle"
        if call.kind is CallKind.RELEASING:
            assert not any(request.held is call.held for request in self._requests), "requests come first"
        self._running.append((call, self._shown_tenures.get(bundle_id, 0)))
        heard = self._heard.setdefault(bundle_id, [])
        if call.kind is not CallKind.TOPICS:
            assert call.kind in may_follow(heard), (heard, call.kind)
            heard.append(call.kind.name)
        if call.kind is CallKind.SPLIT:
            for child in call.children:
                assert not self._heard.get(child.bundle_id)
                self._heard[child.bundle_id] = [CallKind.ASSIGNED.name]

    def _finish(self, begun: tuple[BundleCall, int]) -> None:
        call, tenure = begun
        if call.kind is CallKind.ASSIGNED:
            self._opened.add(tenure)
        self.book.finish(call, self.now_ms)

    def check(self) -> None:
        """Nothing is served that the newest followed table does not give to this node."""
        for bundle_id, row in self._shown.items():
            access = self.book.ownership(NAMESPACE, row.lower).access
            may_serve = row.owner == "n" and row.state in (OwnershipState.OWNED, OwnershipState.SPLITTING)
            if access is Access.ACCEPT:
                assert may_serve
                assert self._is_shown_as_member
                assert self._shown_tenures[bundle_id] in self._opened, "others may have had it since it was opened"
            closing = any(
                call.kind is CallKind.RELEASING and call.held.bundle_id == bundle_id for call, _ in self._running
            )
            assert not (closing and access is Access.ACCEPT)
        for report in self.book.report().steps:
            row = self._shown[report.bundle_id]
            assert report.version == row.version
            state = {
                BundleStep.RELEASED: OwnershipState.RELEASING,
                BundleStep.OPENED: OwnershipState.ASSIGNING,
                BundleStep.DIVIDED: OwnershipState.SPLITTING,
            }[report.step]
            assert row.state is state
            assert (row.next_owner if state is OwnershipState.ASSIGNING else row.owner) == "n"
            if report.step is BundleStep.RELEASED:
                assert not any(
                    request.held is not None and request.held.bundle_id == report.bundle_id
                    for request in self._requests
                )

    def settle(self) -> None:
        """Let everything end: the service stands where the newest row wants it."""
        self.show()
        for request in self._requests:
            self.book.leave(request, self.now_ms)
        self._requests = []
        while True:
            while self._running:
                self._finish(self._running.pop())
                self.check()
            call = self.book.begin(self.now_ms)
            if call is None:
                break
            self._begin(call)
            self.check()
        for bundle_id, row in self.rows.items():
            serves = self.book.ownership(NAMESPACE, row.lower).access is Access.ACCEPT
            owns = row.owner == "n" and row.state in (OwnershipState.OWNED, OwnershipState.SPLITTING)
            assert serves == (owns and self._is_member)
            asked = self._is_member and (
                (row.owner == "n" and row.state in (OwnershipState.RELEASING, OwnershipState.SPLITTING))
                or (row.next_owner == "n" and row.state is OwnershipState.ASSIGNING)
            )
            assert asked == (bundle_id in {each.bundle_id for each in self.book.report().steps})


def held(row: Bundle) -> bool:
    """Whether a row gives a bundle to this node."""
    return (row.next_owner if row.state is OwnershipState.ASSIGNING else row.owner) == "n"


def may_follow(heard: list[str]) -> Iterator[CallKind]:
    """The calls for a bundle that make sense after those that its service has heard."""
    last = heard[-1] if heard else CallKind.RELEASED.name
    return iter(
        {
            "PREPARING": (CallKind.ASSIGNED, CallKind.RELEASED),
            "ASSIGNED": (CallKind.RELEASING, CallKind.SPLIT),
            "RELEASING": (CallKind.ASSIGNED, CallKind.RELEASED),
            "RELEASED": (CallKind.PREPARING, CallKind.ASSIGNED),
            "SPLIT": (),
        }[last]
    )


@given(st.data())
@settings(max_examples=2 * settings().max_examples)
def test_no_history_lets_a_node_serve_what_is_not_its_own(data: st.DataObject) -> None:
    """And every opened bundle is closed before it is released, with one call at a time, wherever it goes."""
    history = History()
    for _ in range(data.draw(st.integers(0, 30))):
        happens = data.draw(
            st.sampled_from(["move", "move", "show", "show", "call", "call", "request", "time", "member"])
        )
        match happens:
            case "move":
                history.move(data)
                if data.draw(st.booleans()):
                    history.table()
            case "show":
                history.show()
            case "call":
                history.call(data)
            case "request":
                history.request(data)
            case "time":
                history.let_time_pass(data)
            case _:
                history.member(is_member=data.draw(st.integers(0, 3)) > 0, is_seen=data.draw(st.booleans()))
        history.check()
    history.settle()
