"""The bundles of one node: what it may serve by the newest table, and the calls that its service is owed.

The counterpart of :mod:`controlplane.node.holdings` for bundles. A slot is moved by one decision, and its data is
fetched afterwards; a bundle is handed off in steps, and each step is reported. What is to be done for a single bundle
is in :mod:`controlplane.node.held_bundle`; the calls are made by :mod:`controlplane.node.bundle_calls`.
"""

import threading
from itertools import count
from typing import Final

from controlplane.core.bundles.bundle import Bundle
from controlplane.core.bundles.ownership_state import OwnershipState
from controlplane.core.bundles.reports import BundleStatus
from controlplane.core.routing.replica import RoutingTable
from controlplane.core.values.identifiers import Epoch, Incarnation, NamespaceName, NodeId, ProcessId, Term
from controlplane.node.bundle_index import BundleIndex
from controlplane.node.bundle_reports import BundleReport, BundleSteps, status_of
from controlplane.node.call_line import CallLine
from controlplane.node.callbacks import Access, BundleOwnership, FencingToken
from controlplane.node.handoff_settings import HandoffSettings
from controlplane.node.held_bundle import (
    NO_HOLDING,
    AcceptedBundleRequest,
    BundleCall,
    CallKind,
    HeldBundle,
    Standing,
    Wish,
    concerns,
    goes_on,
    is_held_by,
    node_to_ask,
    wish_of,
)

_NEVER_MS: Final = 1 << 62


class BundleBook:
    """The bundles of one node. Thread-safe: one thread passes tables, others ask, report, and make the calls."""

    def __init__(self, node_id: NodeId, process_id: ProcessId = "", settings: HandoffSettings | None = None) -> None:
        """Begin without a table and without bundles."""
        self._node_id = node_id
        self._process_id = process_id
        self._settings = settings or HandoffSettings()
        self._lock = threading.Lock()
        self._table: RoutingTable | None = None
        self._index = BundleIndex()
        self._was_member = False
        self._has_ended = False
        self._holdings = count(NO_HOLDING + 1)
        self._held: dict[str, HeldBundle] = {}
        self._line = CallLine(self._settings)
        self._leaving: dict[str, HeldBundle] = {}
        self._steps = BundleSteps()
        self._look_at_ms = _NEVER_MS
        self._statuses: tuple[BundleStatus, ...] | None = ()

    @property
    def is_empty(self) -> bool:
        """Whether no bundle is noted any more: the service has closed all of them, and was told what came of them."""
        with self._lock:
            return not self._held

    def count(self) -> int:
        """The number of bundles that the node owns, opens, or has released without another owner in the table yet."""
        with self._lock:
            return sum(1 for held in self._held.values() if held.wish in (Wish.OPEN, Wish.CLOSED))

    # -- tables ------------------------------------------------------------------------------------------------------

    def follow(self, table: RoutingTable, incarnation: Incarnation, now_ms: int) -> None:
        """Take the next table, at monotonic time ``now_ms``; the node is a member only under ``incarnation``.

        From here on requests are answered by it. If epochs were skipped and the node's own row was written meanwhile,
        every holding ends: the node may have been fenced in between.
        """
        with self._lock:
            before, self._table = self._table, table
            row = table.nodes.get(self._node_id)
            is_member = row is not None and row.is_of(incarnation, self._process_id) and row.status.lives
            is_skipped = before is not None and table.epoch > before.epoch + 1
            is_interrupted = is_skipped and before is not None and before.nodes.get(self._node_id) is not row
            looks_at_all = is_interrupted or is_member != self._was_member
            self._was_member = is_member
            changed = self._index.follow(table.bundles)
            ended = [self._held[key] for key, each in changed.items() if each is None and key in self._held]
            for parent in ended:
                self._split(parent, changed, may_go_on=is_member and not is_interrupted, is_skipped=is_skipped)
            if looks_at_all:
                changed = {**self._index.rows, **{key: None for key, each in changed.items() if each is None}}
            for bundle_id, bundle in changed.items():
                held = self._held.get(bundle_id)
                if held is None and (bundle is None or not is_member or not concerns(bundle, self._node_id)):
                    continue
                if held is None and bundle is not None and not self._has_ended:
                    held = self._held[bundle_id] = HeldBundle(bundle_id, bundle)
                if held is not None:
                    may_go_on = is_member and not is_interrupted
                    self._take(held, bundle, is_member=is_member, may_go_on=may_go_on, is_skipped=is_skipped)
                    self._settle(held, now_ms)
            self._statuses = None

    def end(self, now_ms: int, *, voids: bool) -> None:
        """Let the service close everything, whatever later tables say.

        Args:
            now_ms: monotonic time.
            voids: whether the right to serve has ended as well, so that accepted requests are not waited for.
        """
        with self._lock:
            self._has_ended = True
            for held in list(self._held.values()):
                held.wish = Wish.NOTHING
                if voids:
                    held.holding = NO_HOLDING
                self._settle(held, now_ms)

    def _take(
        self, held: HeldBundle, row: Bundle | None, *, is_member: bool, may_go_on: bool, is_skipped: bool
    ) -> None:
        """Note the newest row of a bundle; None if it has ended."""
        before, had, had_ended = held.known, held.holding, held.has_ended
        held.has_ended = row is None
        held.known = row or before
        held.holding = NO_HOLDING
        wish = Wish.NOTHING
        if row is not None and is_member:
            wish = wish_of(row, self._node_id)
            if is_held_by(row, self._node_id):
                was_there = had != NO_HOLDING and may_go_on and not had_ended
                keeps = was_there and goes_on(before, row, is_skipped=is_skipped)
                held.holding = had if keeps else next(self._holdings)
                if not keeps:
                    held.gained_epoch = self._epoch
        held.wish = Wish.NOTHING if self._has_ended else wish
        if row is not before:
            held.is_given_up, held.leaves_since_ms = False, None

    def _split(
        self, parent: HeldBundle, changed: dict[str, Bundle | None], *, may_go_on: bool, is_skipped: bool
    ) -> None:
        """Let the bundles that lie in the range of one that has ended take its place, if they are its parts.

        That is certain if one of them still is this node's under the parent's owner epoch. Then all of them have come
        out of the bundle that is open here, and requests go on without a gap.
        """
        before, parts = parent.known, self._index.within(parent.known)
        heirs = [
            each
            for each in parts
            if may_go_on and is_held_by(each, self._node_id) and goes_on(before, each, is_skipped=is_skipped)
        ]
        if parent.children or not parts:
            return
        opened = parent.opened if parent.has_right and heirs and before.state is not OwnershipState.ASSIGNING else None
        for row in parts:
            bundle_id = row.bundle_id
            if bundle_id in self._held or (opened is None and not concerns(row, self._node_id)):
                continue
            child = self._held[bundle_id] = HeldBundle(bundle_id, row, after=parent)
            parent.parts.append(child)
            if row in heirs:
                child.holding, child.gained_epoch = parent.holding, parent.gained_epoch
            if opened is not None:
                child.standing, child.opened = Standing.OPEN, opened
            changed.setdefault(bundle_id, row)
        if opened is not None:
            parent.children = tuple(parts)
            for request in parent.accepted:
                child = self._held[next(row.bundle_id for row in parts if row.lower <= request.hashed < row.end)]
                request.held = child
                child.accepted.add(request)
            parent.accepted = set()

    def _settle(self, held: HeldBundle, now_ms: int) -> None:
        """Note everywhere what follows from a change of a bundle, unless nothing was left to be noted of it."""
        bundle_id = held.bundle_id
        if self._held.get(bundle_id) is not held:
            return
        if held.accepted and not held.has_right:
            _void(held)
        if held.is_leaving:
            if held.leaves_since_ms is None:
                held.leaves_since_ms = now_ms
                self._look_soon(now_ms)
            # A release that hangs for another row already, or for this row under another wish, is over its limit.
            give_up_at_ms = self._line.give_up_at_ms(held, held.leaves_since_ms)
            if give_up_at_ms is not None and not held.is_given_up:
                self._look_at_ms = min(self._look_at_ms, give_up_at_ms)
            self._leaving[bundle_id] = held
        else:
            held.leaves_since_ms = None
            self._leaving.pop(bundle_id, None)
        self._steps.note(bundle_id, held.step(), now_ms)
        self._line.arrange(held)
        self._statuses = None
        if held.is_done:
            del self._held[bundle_id]
        if held.is_quiet:
            parts, held.parts = held.parts, []
            for part in parts:
                part.after = None
                self._settle(part, now_ms)

    # -- requests ----------------------------------------------------------------------------------------------------

    def ownership(self, namespace: NamespaceName, hashed: int) -> BundleOwnership:
        """Whether the node owns the bundle of a hash and has opened it; the session decides if it may serve at all."""
        with self._lock:
            return self._ownership(namespace, hashed)

    def accept(self, namespace: NamespaceName, hashed: int) -> tuple[BundleOwnership, AcceptedBundleRequest | None]:
        """The same answer, with the noted request if it is accepted. :meth:`leave` has to follow."""
        with self._lock:
            answer = self._ownership(namespace, hashed)
            if answer.access is not Access.ACCEPT or answer.bundle is None:
                return answer, None
            held = self._held[answer.bundle.bundle_id]
            request = AcceptedBundleRequest(hashed, held)
            held.accepted.add(request)
            return answer, request

    def leave(self, request: AcceptedBundleRequest, now_ms: int) -> bool:
        """Note the end of a request; return whether a release may have waited for it."""
        with self._lock:
            held, request.held = request.held, None
            if held is None:
                return False
            held.accepted.discard(request)
            is_awaited = held.has_to_close and not held.accepted
            if is_awaited:
                self._settle(held, now_ms)
            return is_awaited

    def _ownership(self, namespace: NamespaceName, hashed: int) -> BundleOwnership:
        row = self._index.at(namespace, hashed)
        if row is None:
            # A hash without a bundle, in a namespace that has some, is a namespace that is being created or deleted.
            access = Access.MOVED if self._table is None or namespace in self._table.namespaces else Access.UNSUPPORTED
            return BundleOwnership(access, FencingToken(self._term, Epoch(0)), self._epoch, None, None)
        held = self._held.get(row.bundle_id)
        access, ask, since_epoch = Access.MOVED, node_to_ask(row, self._node_id), row.owner_epoch
        if held is not None and held.serves:
            access, ask = Access.ACCEPT, self._node_id
        elif held is not None and held.wish in (Wish.OPEN, Wish.PREPARED):
            access, ask = Access.MIGRATING, self._node_id
        if held is not None and held.holding != NO_HOLDING:
            since_epoch = since_epoch or held.gained_epoch
        node = None if ask is None or self._table is None else self._table.nodes.get(ask)
        addresses = () if node is None else node.addresses
        return BundleOwnership(access, FencingToken(self._term, since_epoch), self._epoch, row, ask, addresses)

    @property
    def _term(self) -> Term:
        return Term(0) if self._table is None else self._table.term

    @property
    def _epoch(self) -> Epoch:
        return Epoch(0) if self._table is None else self._table.epoch

    # -- heartbeats --------------------------------------------------------------------------------------------------

    @property
    def has_news(self) -> bool:
        """Whether a step was done that no heartbeat has reported."""
        return self._steps.has_news

    def report_at_ms(self, now_ms: int) -> int | None:
        """When to report steps that were done: now, unless further ones may be done in a moment; None without news."""
        with self._lock:
            due_at_ms = self._steps.due_at_ms
            return due_at_ms if due_at_ms is None or self._line.is_moving else now_ms

    def report(self) -> BundleReport:
        """The contents of a heartbeat; made anew only after a change, for a heartbeat must not cost what bundles do."""
        with self._lock:
            if self._statuses is None:
                owned = (
                    each for each in self._held.values() if each.known.owner == self._node_id and not each.has_ended
                )
                self._statuses = tuple(sorted(status_of(each) for each in owned))
            return BundleReport(self._statuses, self._steps.report())

    # -- calls -------------------------------------------------------------------------------------------------------

    @property
    def has_due_call(self) -> bool:
        """Whether a further call may begin."""
        with self._lock:
            return self._line.first() is not None

    def begin(self, now_ms: int) -> BundleCall | None:
        """The next call to make; None if none is due, or as many are made as may be. :meth:`finish` has to follow."""
        with self._lock:
            held = self._line.first()
            kind = None if held is None else held.next_call()
            if held is None or kind is None:
                return None
            call = held.call = self._call(kind, held, now_ms)
            if kind is CallKind.RELEASING:
                held.standing, held.opened = Standing.CLOSED, NO_HOLDING
            self._line.begin(call)
            self._look_soon(now_ms)
            self._settle(held, now_ms)
            return call

    def _call(self, kind: CallKind, held: HeldBundle, now_ms: int) -> BundleCall:
        since_epoch = held.known.owner_epoch or held.gained_epoch
        if held.known.state is OwnershipState.ASSIGNING:
            since_epoch = held.known.state_epoch
        names_another = not held.has_ended and node_to_ask(held.known, self._node_id) is not None
        token = FencingToken(self._term, since_epoch)
        return BundleCall(kind, held, held.known, names_another, token, held.holding, held.children, now_ms)

    def finish(self, call: BundleCall, now_ms: int, bounds: tuple[int, ...] = ()) -> bool:
        """Note that a call has returned, for ``topics_of_bundle`` with the bounds that follow from it.

        Returns:
            Whether there are news now and were none before.
        """
        with self._lock:
            had_news = self._steps.has_news
            held = call.held
            held.call = None
            self._line.end(call)
            match call.kind:
                case CallKind.PREPARING:
                    held.standing = Standing.PREPARED
                case CallKind.ASSIGNED:
                    held.standing, held.opened = Standing.OPEN, call.holding
                case CallKind.RELEASING:
                    held.standing = Standing.CLOSED
                case CallKind.RELEASED | CallKind.SPLIT:
                    held.standing, held.children = Standing.UNKNOWN, ()
                case CallKind.TOPICS:
                    held.divided = call.bundle.version, bounds
            self._settle(held, now_ms)
            return self._steps.has_news and not had_news

    def abandon(self, call: BundleCall, now_ms: int) -> None:
        """Note that a call has failed: nothing is known of the bundle's service any more, so no other call follows."""
        with self._lock:
            held = call.held
            held.call, held.standing, held.children = None, Standing.UNKNOWN, ()
            held.wish, held.holding = Wish.NOTHING, NO_HOLDING
            self._line.end(call)
            self._settle(held, now_ms)

    @property
    def look_at_ms(self) -> int:
        """When :meth:`attend` is to be called again at the latest."""
        with self._lock:
            return self._look_at_ms

    def attend(self, now_ms: int) -> tuple[BundleCall, ...]:
        """Let the time pass: void requests and give up releases that were waited for long enough, note hung calls.

        Bundles are looked through only when a limit may have passed, because every end of a request may bring a look.

        Returns:
            The calls that have passed their limits since the last time.
        """
        with self._lock:
            if now_ms < self._look_at_ms:
                return ()
            self._look_at_ms = _NEVER_MS
            hung = self._line.note_hung(now_ms)
            wakes = self._line.limits_ms
            for held in list(self._leaving.values()):
                since_ms = now_ms if held.leaves_since_ms is None else held.leaves_since_ms
                void_at_ms = since_ms + self._settings.accepted_limit_ms
                give_up_at_ms = self._line.give_up_at_ms(held, since_ms)
                if give_up_at_ms is not None and now_ms >= give_up_at_ms:
                    held.is_given_up = True
                if held.accepted and (held.is_given_up or now_ms >= void_at_ms):
                    _void(held)
                self._settle(held, now_ms)
                wakes += [void_at_ms] if held.accepted else []
                wakes += [give_up_at_ms] if give_up_at_ms is not None and not held.is_given_up else []
            self._look_at_ms = min([self._look_at_ms, *wakes])
            return hung

    def _look_soon(self, now_ms: int) -> None:
        """Let :meth:`attend` look at the bundles before any limit passes whose time begins now."""
        self._look_at_ms = min(self._look_at_ms, now_ms + self._settings.shortest_limit_ms)


def _void(held: HeldBundle) -> None:
    for request in held.accepted:
        request.is_void, request.held = True, None
    held.accepted = set()
