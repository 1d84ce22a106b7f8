"""Who stands for election beside the holder, as the store remembers it: so that preferred controllers come first.

A contender is present while it asks often enough; whoever was away begins anew. The same rules as the Lua scripts of
the Redis adapter; the in-memory store runs these.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple, Self

from controlplane.core.values.identifiers import ControllerId


class Presence(NamedTuple):
    """A contender's last request.

    Attributes:
        priority: how much it is preferred; greater is more.
        since_ms: from when on it has asked again and again.
        seen_ms: when it asked last.
    """

    priority: int
    since_ms: int
    seen_ms: int


class Outranking(NamedTuple):
    """The most preferred contender above somebody, its priority, and for how long it has been present."""

    owner: ControllerId
    priority: int
    present_ms: int


@dataclass(frozen=True, slots=True)
class Contending:
    """A controller that stands for election and does not hold the lease.

    Attributes:
        owner: who.
        priority: how much it is preferred; greater is more.
        present_ms: for how long it has asked again and again.
        asked_ms_ago: when it asked last.
    """

    owner: ControllerId
    priority: int
    present_ms: int
    asked_ms_ago: int


@dataclass(frozen=True, slots=True)
class Contenders:
    """All that are remembered; the times are the store's own."""

    by_owner: Mapping[ControllerId, Presence] = field(default_factory=lambda: MappingProxyType({}))

    def present(self, now_ms: int, lasts_ms: float = math.inf) -> Self:
        """Without those that have not asked for longer than ``lasts_ms``, or in the future: the clock was set back."""
        return type(self)(
            {name: each for name, each in self.by_owner.items() if 0 <= now_ms - each.seen_ms <= lasts_ms}
        )

    def contending(self, now_ms: int) -> list[Contending]:
        """All of them as others are told, by name; without those that asked in the future."""
        return [
            Contending(name, each.priority, now_ms - each.since_ms, now_ms - each.seen_ms)
            for name, each in sorted(self.present(now_ms).by_owner.items())
        ]

    def seen(self, now_ms: int, owner: ControllerId, priority: int) -> Self:
        """With this contender's request."""
        before = self.by_owner.get(owner)
        since_ms = now_ms if before is None else before.since_ms
        return type(self)({**self.by_owner, owner: Presence(priority, since_ms, now_ms)})

    def without(self, owner: ControllerId) -> Self:
        """Without this one, which contends no more."""
        return type(self)({name: each for name, each in self.by_owner.items() if name != owner})

    def outranking(self, now_ms: int, owner: ControllerId, priority: int) -> Outranking | None:
        """The most preferred of those above this priority; the first name of equals."""
        above = [(-each.priority, name) for name, each in self.by_owner.items() if each.priority > priority]
        names = sorted((rank, name) for rank, name in above if name != owner)
        if not names:
            return None
        name = names[0][1]
        return Outranking(name, self.by_owner[name].priority, now_ms - self.by_owner[name].since_ms)


def yields_ms(free_for_ms: int, duration_ms: int) -> int:
    """For how long a contender that is outranked still leaves a free lease to others: half a duration in all."""
    return max(0, duration_ms // 2 - free_for_ms)
