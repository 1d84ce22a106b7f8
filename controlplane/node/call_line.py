"""The calls for bundles that are due and in progress: which one is next, and which ones take too long."""

from controlplane.node.handoff_settings import HandoffSettings
from controlplane.node.held_bundle import URGENT_CALLS, BundleCall, CallKind, HeldBundle, Wish


class CallLine:
    """Lets calls begin in the order in which they became due, releases and splits first. Not thread-safe."""

    def __init__(self, settings: HandoffSettings) -> None:
        """Begin without calls."""
        self._settings = settings
        self._urgent: dict[str, HeldBundle] = {}
        self._others: dict[str, HeldBundle] = {}
        self._running: set[BundleCall] = set()

    def arrange(self, held: HeldBundle) -> None:
        """Put a bundle in line if a call for it is due, or take it out."""
        kind = held.next_call()
        for line, belongs in ((self._urgent, kind in URGENT_CALLS), (self._others, kind not in (None, *URGENT_CALLS))):
            if belongs:
                line.setdefault(held.bundle_id, held)
            else:
                line.pop(held.bundle_id, None)

    def first(self) -> HeldBundle | None:
        """The bundle whose call is next; None if none is due, or as many are made as may be."""
        line = self._urgent or self._others
        hung = self._hung_count
        if not line or self.is_exhausted or len(self._running) - hung >= self._settings.calls_at_once:
            return None
        return line[next(iter(line))]

    def begin(self, call: BundleCall) -> None:
        """Note that a call is made."""
        self._running.add(call)

    def end(self, call: BundleCall) -> None:
        """Note that a call has returned."""
        self._running.discard(call)

    def note_hung(self, now_ms: int) -> tuple[BundleCall, ...]:
        """The calls that have passed their limits since the last time. From now on others need not wait for them."""
        hung = tuple(call for call in self._running if not call.is_hung and now_ms >= self._limit_ms(call))
        for call in hung:
            call.is_hung = True
        return hung

    @property
    def limits_ms(self) -> list[int]:
        """When calls in progress will count as hung."""
        return [self._limit_ms(call) for call in self._running if not call.is_hung]

    @property
    def is_moving(self) -> bool:
        """Whether a call is being made that does not hang."""
        return len(self._running) > self._hung_count

    @property
    def is_exhausted(self) -> bool:
        """Whether so many calls hang that no further one is made."""
        return self._hung_count >= self._settings.hung_calls_at_most

    def give_up_at_ms(self, held: HeldBundle, since_ms: int) -> int | None:
        """When a release is reported though the service has not carried it out; None while it only waits for its turn.

        It does not wait for a turn that may never come: behind another call for the same bundle, or if calls hang in
        all threads.
        """
        if held.wish is not Wish.CLOSED:
            return None
        if held.call is not None and held.call.kind is CallKind.RELEASING:
            return self._limit_ms(held.call)
        if held.call is not None or held.after is not None or self.is_exhausted:
            return since_ms + self._settings.accepted_limit_ms + self._settings.release_limit_ms
        return None

    @property
    def _hung_count(self) -> int:
        return sum(1 for call in self._running if call.is_hung)

    def _limit_ms(self, call: BundleCall) -> int:
        is_release = call.kind is CallKind.RELEASING
        return call.began_ms + (self._settings.release_limit_ms if is_release else self._settings.open_limit_ms)
