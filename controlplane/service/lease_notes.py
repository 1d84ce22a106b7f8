"""What the keeper of the lease notes in the lease store beside the lease, whenever the store has just answered.

The leader notes how far the log reaches. A contender notes when Kafka last acknowledged one of its ticks, and when it
last answered about the partition of which it has not answered for the longest. A leader that misses something reads
that: if Kafka answers no contender, another leader could not commit, or see what stands in that partition, either.
"""

from collections.abc import Callable
from typing import Final

import structlog

from controlplane.core.log.log_mark import LogMark
from controlplane.core.values.identifiers import ControllerId
from controlplane.errors import ConfigurationError, LeaseStoreUnavailableError
from controlplane.ports import NOTHING_NOTED, Clock, ContenderNote, LeaseStore

NOTED_EVERY_MS: Final = 1_000
"""Least time between two notes of a kind."""
_MARKED_AGAIN_MS: Final = 30_000
"""Time after which a leader writes the same mark again: a store that failed over to an older copy may have lost it."""
_ASKS_AFTER_MS: Final = 1_000
"""Time without an acknowledgement after which a leader asks whether contenders have one. Usual acknowledgements take
milliseconds."""
_ASKS_FOR_PARTITIONS_AFTER_MS: Final = 3_000
"""The same for an answer about each partition. Kafka is asked every 2 s."""

_log = structlog.get_logger(__name__)


class LeaseNotes:
    """The notes of one controller. :meth:`exchange` runs in the keeper's thread; the others are thread-safe."""

    def __init__(
        self,
        store: LeaseStore,
        clock: Clock,
        controller_id: ControllerId,
        since_acknowledged_ms: Callable[[], int],
        longest_unanswered_ms: Callable[[], int | None],
    ) -> None:
        """Begin without a note.

        Args:
            store: used by the keeper's thread alone.
            clock: monotonic time.
            controller_id: of this controller.
            since_acknowledged_ms: milliseconds since Kafka last acknowledged a tick of this controller.
            longest_unanswered_ms: milliseconds since it last answered about the partition for which that is longest;
                None before it has answered about each once.
        """
        self._store = store
        self._clock = clock
        self._controller_id = controller_id
        self._since_acknowledged_ms = since_acknowledged_ms
        self._longest_unanswered_ms = longest_unanswered_ms
        self._mark: LogMark | None = None
        self._written: LogMark | None = None
        self._marked_at_ms = self._noted_at_ms = clock.monotonic_ms()
        self._is_taken = True
        self._needs_contenders = False
        self._contender_at_ms: int | None = None
        self._contender_unanswered_at_ms: int | None = None

    def mark(self, mark: LogMark) -> None:
        """Note how far the log is known to reach, with one of the next exchanges and at most once a second."""
        self._mark = mark

    def ask_for_contenders(self, *, needed: bool) -> None:
        """Read contenders' notes with each exchange while they are needed, also if Kafka answers this leader."""
        self._needs_contenders = needed

    def contender_acknowledged_at_ms(self) -> int | None:
        """Monotonic time at which Kafka last acknowledged a contender's tick; None if no contender has noted it."""
        return self._contender_at_ms

    def contender_unanswered_ms(self) -> int | None:
        """Time for which Kafka has not answered a contender about one of its partitions, and the age of its note.

        None if no contender has noted it.
        """
        at_ms = self._contender_unanswered_at_ms
        return None if at_ms is None else self._clock.monotonic_ms() - at_ms

    def exchange(self, *, holds_lease: bool) -> None:
        """Write and read what is due. The store has just answered; what it does not take now is due a second later."""
        now_ms = self._clock.monotonic_ms()
        try:
            has_marked = self._write_mark_if_due(now_ms, holds_lease=holds_lease)
            has_asked = self._read_contenders_if_due(now_ms) if holds_lease else self._write_note_if_due(now_ms)
        except (LeaseStoreUnavailableError, ConfigurationError) as error:
            self._learn(now_ms, NOTHING_NOTED)
            self._tell(is_taken=False, why=str(error))
        else:
            if has_marked or has_asked:
                self._tell(is_taken=True)

    def _write_mark_if_due(self, now_ms: int, *, holds_lease: bool) -> bool:
        mark = self._mark
        again_ms = _MARKED_AGAIN_MS if holds_lease and mark is self._written else NOTED_EVERY_MS
        is_due = mark is not self._written or holds_lease
        if mark is None or not is_due or now_ms - self._marked_at_ms < again_ms:
            return False
        self._marked_at_ms = now_ms
        self._store.write_mark(mark)
        self._written = mark
        return True

    def _read_contenders_if_due(self, now_ms: int) -> bool:
        unanswered_ms = self._longest_unanswered_ms()
        lacks_answer = unanswered_ms is None or unanswered_ms >= _ASKS_FOR_PARTITIONS_AFTER_MS
        is_due = lacks_answer or self._needs_contenders or self._since_acknowledged_ms() >= _ASKS_AFTER_MS
        self._learn(now_ms, self._store.read_note(self._controller_id) if is_due else NOTHING_NOTED)
        return is_due

    def _write_note_if_due(self, now_ms: int) -> bool:
        if now_ms - self._noted_at_ms < NOTED_EVERY_MS:
            return False
        self._noted_at_ms = now_ms
        self._store.write_note(self._controller_id, self._since_acknowledged_ms(), self._longest_unanswered_ms())
        return True

    def _tell(self, *, is_taken: bool, why: str = "") -> None:
        """Log changes only: a store that denies a key denies it ten times a second."""
        if is_taken == self._is_taken:
            return
        self._is_taken = is_taken
        if is_taken:
            _log.info("the lease store takes and shows notes again")
        else:
            _log.warning("nothing can be noted in the lease store", error=why)

    def _learn(self, now_ms: int, note: ContenderNote) -> None:
        acknowledged_ms, unanswered_ms = note
        self._contender_at_ms = None if acknowledged_ms is None else now_ms - acknowledged_ms
        self._contender_unanswered_at_ms = None if unanswered_ms is None else now_ms - unanswered_ms
