"""The lease as the store keeps it: a value, and the three requests that may change it.

The same rules as the Lua scripts of the Redis adapter; the in-memory store and the explorer run these. Expiry is judged
at each request and never removes anything: the term outlives every lease (see the scripts for the reason).
"""

from dataclasses import dataclass, field, replace
from typing import Self

from controlplane.core.values.identifiers import ControllerId, ProcessId, Term


@dataclass(frozen=True, slots=True)
class Lease:
    """What the store keeps; the times are the store's own.

    Attributes:
        owner: who was granted it last; empty when it was given back or never granted.
        process: which process of that name: another one is another contender, however it is called.
        term: the last term that was granted.
        expires_at_ms: until when it is the owner's, or since when nobody's.
        duration_ms: what it was granted or renewed for. If it ends further ahead, or is free since a time ahead, then
            the store's clock was set back: it is judged as if it had just been stored.
    """

    owner: ControllerId = ""
    process: ProcessId = ""
    term: Term = field(default=Term(0))
    expires_at_ms: int = 0
    duration_ms: int = 0

    def holder(self, now_ms: int) -> ControllerId:
        """Whose it is now; empty if nobody's."""
        return self.owner if self.remaining_ms(now_ms) > 0 else ""

    def remaining_ms(self, now_ms: int) -> int:
        """For how long it still is the owner's; 0 or less once it has run out."""
        return min(self.expires_at_ms - now_ms, self.duration_ms if self.owner else 0)

    def mended(self, now_ms: int) -> Self:
        """As a contender leaves it: ending no later than it can, also if it is looked at again."""
        return replace(self, expires_at_ms=now_ms + self.remaining_ms(now_ms))

    def is_held_by(self, now_ms: int, owner: ControllerId, process: ProcessId) -> bool:
        """Whether it is this process's now."""
        return (self.holder(now_ms), self.process) == (owner, process)

    def acquired(
        self, now_ms: int, owner: ControllerId, process: ProcessId, floor: Term, duration_ms: int
    ) -> Self | None:
        """Granted to this process under a term above ``floor`` and the last one; None while it is another's."""
        if self.holder(now_ms) and not self.is_held_by(now_ms, owner, process):
            return None
        return type(self)(owner, process, Term(max(self.term, floor) + 1), now_ms + duration_ms, duration_ms)

    def renewed(
        self, now_ms: int, owner: ControllerId, process: ProcessId, term: Term, duration_ms: int
    ) -> Self | None:
        """Prolonged; None unless it is this process's now, under this term."""
        if not self.is_held_by(now_ms, owner, process) or self.term != term:
            return None
        return replace(self, expires_at_ms=now_ms + duration_ms, duration_ms=duration_ms)

    def released(self, now_ms: int, owner: ControllerId, process: ProcessId, term: Term) -> Self | None:
        """Given back; None unless it is this process's now, under this term. The term stays."""
        if not self.is_held_by(now_ms, owner, process) or self.term != term:
            return None
        return replace(self, owner="", process="", expires_at_ms=now_ms)
