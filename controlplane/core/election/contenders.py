"""The contenders for the lease as the lease store keeps them, so that preferred controllers come first.

A contender is present while it asks often enough. After a gap its presence begins again. The Lua scripts of the Redis
adapter implement the same rules; the in-memory lease store uses this module.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple, Self

from controlplane.core.values.identifiers import ControllerId


class Presence(NamedTuple):
    """The presence of a contender, by the store's time.

    Attributes:
        priority: priority in its last request; a greater one is preferred.
        since_ms: time of the first request since it was last absent.
        seen_ms: time of its last request.
    """

    priority: int
    since_ms: int
    seen_ms: int


class Outranking(NamedTuple):
    """The contender of the greatest priority above that of a requester, and for how long it has been present."""

    owner: ControllerId
    priority: int
    present_ms: int


@dataclass(frozen=True, slots=True)
class Contending:
    """A controller that stands for election and does not hold the lease.

    Attributes:
        owner: its name.
        priority: a greater one is preferred.
        present_ms: how long ago its presence began.
        asked_ms_ago: how long ago its last request was.
    """

    owner: ControllerId
    priority: int
    present_ms: int
    asked_ms_ago: int


@dataclass(frozen=True, slots=True)
class Contenders:
    """The contenders that the store remembers, by name. Times are the store's."""

    by_owner: Mapping[ControllerId, Presence] = field(default_factory=lambda: MappingProxyType({}))

    def present(self, now_ms: int, lasts_ms: float = math.inf) -> Self:
        """Without contenders not seen for longer than ``lasts_ms``, or seen in the future (the clock was set back)."""
        return type(self)(
            {name: each for name, each in self.by_owner.items() if 0 <= now_ms - each.seen_ms <= lasts_ms}
        )

    def contending(self, now_ms: int) -> list[Contending]:
        """All contenders with their ages, sorted by name; without those seen in the future."""
        return [
            Contending(name, each.priority, now_ms - each.since_ms, now_ms - each.seen_ms)
            for name, each in sorted(self.present(now_ms).by_owner.items())
        ]

    def seen(self, now_ms: int, owner: ControllerId, priority: int) -> Self:
        """With a request of this contender at ``now_ms``."""
        before = self.by_owner.get(owner)
        since_ms = now_ms if before is None else before.since_ms
        return type(self)({**self.by_owner, owner: Presence(priority, since_ms, now_ms)})

    def without(self, owner: ControllerId) -> Self:
        """Without this contender."""
        return type(self)({name: each for name, each in self.by_owner.items() if name != owner})

    def outranking(self, now_ms: int, owner: ControllerId, priority: int) -> Outranking | None:
        """The contender of the greatest priority above this one, None without one. Ties go to the first name."""
        above = [(-each.priority, name) for name, each in self.by_owner.items() if each.priority > priority]
        names = sorted((rank, name) for rank, name in above if name != owner)
        if not names:
            return None
        name = names[0][1]
        return Outranking(name, self.by_owner[name].priority, now_ms - self.by_owner[name].since_ms)


def yields_ms(free_for_ms: int, duration_ms: int) -> int:
    """Remaining time for which an outranked contender leaves a free lease to others.

    The whole time is half a lease duration, counted from when the lease became free.
    """
    return max(0, duration_ms // 2 - free_for_ms)
