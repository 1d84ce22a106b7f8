"""The lease as a value in the lease store, and the three requests that change it.

The Lua scripts of the Redis adapter implement the same rules; the in-memory store and the exploration use this module.
Expiry is computed at each request and removes nothing, because the term must outlive every lease (the scripts say why).
"""

from dataclasses import dataclass, field, replace
from typing import Self

from controlplane.core.values.identifiers import ControllerId, ProcessId, Term


@dataclass(frozen=True, slots=True)
class Lease:
    """The value in the lease store. Times are the store's.

    Attributes:
        owner: the controller to which the lease was last granted; empty if it was given back or never granted.
        process: the owner's process. Another process of the same name is another contender.
        term: the last term that was granted.
        expires_at_ms: the time at which the owner's lease expires; without an owner, the time at which it became free.
        duration_ms: the duration for which it was last granted or renewed. If more than that is left, or the lease
            became free in the future, then the store's clock was set back. The lease then counts as just stored.
    """

    owner: ControllerId = ""
    process: ProcessId = ""
    term: Term = field(default=Term(0))
    expires_at_ms: int = 0
    duration_ms: int = 0

    def holder(self, now_ms: int) -> ControllerId:
        """The controller that holds the lease now; empty if it is free."""
        return self.owner if self.remaining_ms(now_ms) > 0 else ""

    def remaining_ms(self, now_ms: int) -> int:
        """The time until the lease expires; 0 or less if it is free."""
        return min(self.expires_at_ms - now_ms, self.duration_ms if self.owner else 0)

    def mended(self, now_ms: int) -> Self:
        """The lease with an expiry of ``duration_ms`` from now at the latest.

        Every request for the lease stores it, so that a clock that was set back prolongs a lease only once.
        """
        return replace(self, expires_at_ms=now_ms + self.remaining_ms(now_ms))

    def is_held_by(self, now_ms: int, owner: ControllerId, process: ProcessId) -> bool:
        """Whether this process of this controller holds the lease now."""
        return (self.holder(now_ms), self.process) == (owner, process)

    def acquired(
        self, now_ms: int, owner: ControllerId, process: ProcessId, floor: Term, duration_ms: int
    ) -> Self | None:
        """The lease granted to this process, its term above ``floor`` and the last one; None while another holds it."""
        if self.holder(now_ms) and not self.is_held_by(now_ms, owner, process):
            return None
        return type(self)(owner, process, Term(max(self.term, floor) + 1), now_ms + duration_ms, duration_ms)

    def renewed(
        self, now_ms: int, owner: ControllerId, process: ProcessId, term: Term, duration_ms: int
    ) -> Self | None:
        """The lease renewed; None unless this process holds it with this term."""
        if not self.is_held_by(now_ms, owner, process) or self.term != term:
            return None
        return replace(self, expires_at_ms=now_ms + duration_ms, duration_ms=duration_ms)

    def released(self, now_ms: int, owner: ControllerId, process: ProcessId, term: Term) -> Self | None:
        """The lease given back, with its term kept; None unless this process holds it with this term."""
        if not self.is_held_by(now_ms, owner, process) or self.term != term:
            return None
        return replace(self, owner="", process="", expires_at_ms=now_ms)
