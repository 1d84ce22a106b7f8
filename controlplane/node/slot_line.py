"""The calls for slots that are due and in progress: which one is next, and which ones take too long."""

from collections import deque
from dataclasses import dataclass
from typing import NamedTuple

from controlplane.core.routing.replica import RoutingTable
from controlplane.core.values.identifiers import SlotId
from controlplane.node.callbacks import Changes
from controlplane.node.handoff_settings import HandoffSettings


@dataclass(eq=False, slots=True)
class SlotCall:
    """The calls for the changes of one epoch, or for some of its slots.

    Attributes:
        changes: what is reported.
        slot_ids: the slots that it is about.
        began_ms: monotonic time of its beginning.
        is_hung: whether it has passed its limit.
    """

    changes: Changes
    slot_ids: frozenset[SlotId]
    began_ms: int
    is_hung: bool = False


class _Change(NamedTuple):
    """Changes that were not reported; ``table`` is the one that makes them, None if no table does."""

    table: RoutingTable | None
    changes: Changes


class SlotLine:
    """Lets calls begin one at a time, in the order in which they became due. Not thread-safe.

    A call that hangs holds up what is due for its own slots. The others go on without it.

    Attributes:
        table: the table of the newest call that has begun, or of a later one that changed nothing.
    """

    def __init__(self, settings: HandoffSettings) -> None:
        """Begin without a table and without calls."""
        self._settings = settings
        self._news: deque[_Change] = deque()
        self._behind: list[Changes] = []
        self._running: SlotCall | None = None
        self._hung: list[SlotCall] = []
        self.table: RoutingTable | None = None

    def follow(self, table: RoutingTable, changes: Changes) -> None:
        """Take the next table, with what it changes."""
        self._news.append(_Change(table, changes))

    def release(self, changes: Changes) -> None:
        """Let slots be released before later tables are told of."""
        self._news.appendleft(_Change(None, changes))

    def begin(self, now_ms: int) -> SlotCall | None:
        """The next call; None if none is due, one is made now, or too many hang. :meth:`finish` has to follow."""
        if self._running is not None or len(self._hung) >= self._settings.hung_calls_at_most:
            return None
        waits: set[SlotId] = set().union(*(call.slot_ids for call in self._hung))
        self._running = self._next_behind(waits, now_ms) or self._next_due(waits, now_ms)
        return self._running

    def _next_behind(self, waits: set[SlotId], now_ms: int) -> SlotCall | None:
        for place, changes in enumerate(self._behind):
            free, rest = changes.apart(waits)
            if slot_ids := free.slot_ids:
                self._behind[place : place + 1] = [rest] if rest.slot_ids else []
                return SlotCall(free, slot_ids, now_ms)
            waits |= rest.slot_ids
        return None

    def _next_due(self, waits: set[SlotId], now_ms: int) -> SlotCall | None:
        while self._news:
            table, changes = self._news.popleft()
            self.table = table or self.table
            free, rest = changes.apart(waits)
            if rest.slot_ids:
                self._behind.append(rest)
                waits |= rest.slot_ids
            if slot_ids := free.slot_ids:
                return SlotCall(free, slot_ids, now_ms)
        return None

    def finish(self, call: SlotCall) -> None:
        """Note that a call has returned."""
        if call is self._running:
            self._running = None
        else:
            self._hung.remove(call)

    def attend(self, now_ms: int) -> SlotCall | None:
        """The call that has just passed its limit, if one has. From now on only its own slots wait for it."""
        call, due_ms = self._running, self.hangs_at_ms
        if call is None or due_ms is None or now_ms < due_ms:
            return None
        call.is_hung, self._running = True, None
        self._hung.append(call)
        return call

    @property
    def hangs_at_ms(self) -> int | None:
        """When the call in progress will count as hung; None if none is made."""
        call, settings = self._running, self._settings
        if call is None:
            return None
        return call.began_ms + (settings.release_limit_ms if call.changes.releasing else settings.open_limit_ms)

    @property
    def is_idle(self) -> bool:
        """Whether nothing is due or in progress, but calls that hang and what waits for them."""
        return self._running is None and not self._news
