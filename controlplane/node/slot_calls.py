"""The agent's threads that make the calls for slots, so that a service that takes its time does not stop the agent.

One thread watches the time and starts another one, which makes one call after the other and ends when none is due. A
call that hangs keeps its thread, and another thread takes its place, up to a bound.
"""

import threading
from functools import partial
from typing import Final

from controlplane.core.routing.replica import RoutingTable
from controlplane.core.session.messages import StepDone
from controlplane.node.callbacks import Changes, NodeCallbacks, tell
from controlplane.node.handoff_settings import HandoffSettings
from controlplane.node.session_thread import SessionThread
from controlplane.node.shared import Shared
from controlplane.node.slot_line import SlotCall, SlotLine
from controlplane.node.wakes import Wakes
from controlplane.ports import Threads

_HUNG: Final = "a callback for slots takes too long: these slots wait for it, and others do not"
_HUNG_RELEASING: Final = "a callback takes too long: the node says that the slots are released, without the service"


class SlotCalls:
    """Makes the calls for slots in the order of the epochs, and tells the session of slots that were released."""

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
        # Without callbacks the user's code follows the table by itself, and says itself which data it has.
        has_none = type(callbacks) is NodeCallbacks
        self._stores_by_slot = has_none or type(callbacks).on_slots_gained is not NodeCallbacks.on_slots_gained
        self._settings = settings
        self._session = session
        self._threads = threads
        self._line = SlotLine(settings)
        self._lock = threading.Lock()
        self._wakes = Wakes(threads)

    def follow(self, table: RoutingTable, changes: Changes) -> None:
        """Let the service be told what the next table changes."""
        with self._lock:
            self._line.follow(table, changes)
        self.wake()

    def wake(self) -> None:
        """Let the thread look again: the end of a call or of a request may have made a release due."""
        self._wakes.wake()

    def run(self) -> None:
        """Let calls be made until the agent is to stop; then those that are due, within a limit."""
        shared, end_at_ms = self._shared, None
        while True:
            now_ms = shared.clock.monotonic_ms()
            if end_at_ms is None and shared.stopping.is_set():
                end_at_ms = now_ms + self._settings.end_limit_ms
            if (hung := self._attend(now_ms)) is not None:
                shared.metrics.slot_callbacks_hung.inc()
                text = _HUNG_RELEASING if hung.changes.releasing else _HUNG
                slot_ids = sorted(hung.slot_ids)
                shared.logger.warning(text, slots=len(slot_ids), first_slot=slot_ids[0], epoch=hung.changes.epoch)
            release_at_ms = shared.book.attend(now_ms)
            if (due := self._begin(now_ms)) is not None:
                self._threads.thread(partial(shared.guarded, partial(self._work, due)), "node-slot").start()
            if shared.book.has_news:
                self._session.tell(StepDone())
            if end_at_ms is not None and (self._is_idle or now_ms >= end_at_ms or shared.failure is not None):
                return
            self._wakes.wait(now_ms, self._hangs_at_ms, release_at_ms, end_at_ms)

    @property
    def _is_idle(self) -> bool:
        with self._lock:
            return self._line.is_idle

    @property
    def _hangs_at_ms(self) -> int | None:
        with self._lock:
            return self._line.hangs_at_ms

    def _attend(self, now_ms: int) -> SlotCall | None:
        with self._lock:
            return self._line.attend(now_ms)

    def _begin(self, now_ms: int) -> SlotCall | None:
        """The next call to make, if one is due; the table in use is the one of that call from now on."""
        book, shared = self._shared.book, self._shared
        releasing = book.releasing()
        with self._lock:
            if releasing is not None:
                self._line.release(releasing)
            call, before = self._line.begin(now_ms), shared.table
            if call is not None:
                book.begin(call.changes)
            shared.table = self._line.table
        if shared.table is not before:
            with shared.changed:
                shared.changed.notify_all()
        return call

    def _work(self, first: SlotCall) -> None:
        """Make a call, and then others for as long as some are due."""
        call: SlotCall | None = first
        while call is not None:
            tell(self._callbacks, call.changes)
            if not self._stores_by_slot:
                for gained in call.changes.gained:
                    self._shared.book.mark_ready(gained.slot_id, gained.epoch)
            self._shared.book.finish(call.changes)
            with self._lock:
                self._line.finish(call)
            call = self._begin(self._shared.clock.monotonic_ms())
        self.wake()
