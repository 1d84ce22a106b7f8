"""The agent's threads that make the calls for bundles, so that a service that takes its time holds nothing else up.

One thread watches the time and starts the others. Each of these makes one call after the other, and ends when none is
due. A call that hangs keeps its thread, and another thread takes its place, up to a bound.
"""

from functools import partial
from typing import Final, assert_never

from controlplane.core.session.messages import StepDone
from controlplane.node.callbacks import NodeCallbacks
from controlplane.node.handoff_settings import HandoffSettings
from controlplane.node.held_bundle import BundleCall, CallKind
from controlplane.node.session_thread import SessionThread
from controlplane.node.shared import Shared
from controlplane.node.split_bounds import split_bounds
from controlplane.node.wakes import Wakes
from controlplane.ports import Threads

_HUNG: Final = "a callback for a bundle takes too long: its bundle waits for it, and others do not"
_HUNG_RELEASING: Final = "a callback takes too long: the node says that the bundle is released, without the service"


class BundleCalls:
    """Makes the calls that the book of bundles asks for, and tells the session of steps that were done."""

    def __init__(
        self,
        shared: Shared,
        callbacks: NodeCallbacks,
        settings: HandoffSettings,
        session: SessionThread,
        threads: Threads,
    ) -> None:
        """Set up; :meth:`run` begins to make calls."""
        self._shared = shared
        self._callbacks = callbacks
        self._settings = settings
        self._session = session
        self._threads = threads
        self._wakes = Wakes(threads)
        self._end_at_ms: int | None = None

    def wake(self) -> None:
        """Let the thread look at the book: a table, the end of a call or of a request may have changed what is due."""
        self._wakes.wake()

    def end(self) -> None:
        """Let the service close every bundle while the node still is a member, and wait for it within the limit."""
        shared = self._shared
        self._begin_to_end(voids=False)
        self.wake()
        with shared.changed:
            shared.changed.wait_for(
                lambda: shared.bundles.is_empty or shared.failure, self._settings.end_limit_ms / 1_000
            )

    def run(self) -> None:
        """Let calls be made until the agent is to stop; then let the service close what it has left, within a limit."""
        shared, book = self._shared, self._shared.bundles
        stops = False
        while True:
            if not stops and shared.stopping.is_set():
                stops = True
                # Whatever the reason is, the node does not serve any more.
                self._begin_to_end(voids=True)
            now_ms, end_at_ms = shared.clock.monotonic_ms(), self._end_at_ms
            for call in book.attend(now_ms):
                shared.metrics.bundle_callbacks_hung.inc()
                text = _HUNG_RELEASING if call.kind is CallKind.RELEASING else _HUNG
                shared.logger.warning(text, callback=call.kind.value, bundle=call.held.bundle_id)
            while (due := book.begin(now_ms)) is not None:
                self._threads.thread(partial(shared.guarded, partial(self._work, due)), "node-bundle").start()
            report_at_ms = self._report(now_ms)
            if stops and end_at_ms is not None and (book.is_empty or now_ms >= end_at_ms):
                return
            self._wakes.wait(now_ms, book.look_at_ms, report_at_ms, end_at_ms if stops else None)

    def _report(self, now_ms: int) -> int | None:
        """Tell the session of steps that were done; return when, if it is better to wait for further ones."""
        report_at_ms = self._shared.bundles.report_at_ms(now_ms)
        if report_at_ms is None or now_ms < report_at_ms:
            return report_at_ms
        self._session.tell(StepDone())
        return None

    def _begin_to_end(self, *, voids: bool) -> None:
        now_ms = self._shared.clock.monotonic_ms()
        if self._end_at_ms is None:
            self._end_at_ms = now_ms + self._settings.end_limit_ms
        self._shared.bundles.end(now_ms, voids=voids)

    def _work(self, first: BundleCall) -> None:
        """Make a call, and then others for as long as some are due."""
        book, clock = self._shared.bundles, self._shared.clock
        call: BundleCall | None = first
        while call is not None:
            try:
                bounds = self._make(call)
            except BaseException:
                book.abandon(call, clock.monotonic_ms())
                raise
            has_first_news = book.finish(call, clock.monotonic_ms(), bounds)
            if book.is_empty:
                with self._shared.changed:
                    self._shared.changed.notify_all()
            call = book.begin(clock.monotonic_ms())
            # Not after each call: of a hundred bundles the other thread need not hear a hundred times.
            if has_first_news or call is None or book.has_due_call:
                self.wake()

    def _make(self, call: BundleCall) -> tuple[int, ...]:
        """Make a call; return the bounds of the parts, if it was made to find them."""
        callbacks, bundle = self._callbacks, call.bundle
        match call.kind:
            case CallKind.PREPARING:
                callbacks.on_bundle_preparing(bundle)
            case CallKind.ASSIGNED:
                callbacks.on_bundle_assigned(bundle, call.token)
            case CallKind.RELEASING:
                callbacks.on_bundle_releasing(bundle)
            case CallKind.RELEASED:
                callbacks.on_bundle_released(call.held.bundle_id, bundle if call.names_another else None)
            case CallKind.SPLIT:
                callbacks.on_bundle_split(bundle, call.children)
            case CallKind.TOPICS:
                return split_bounds(bundle, callbacks.topics_of_bundle(bundle))
            case _:
                assert_never(call.kind)
        return ()
