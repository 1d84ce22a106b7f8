"""The search: breadth first over whole worlds, each a number, so that millions fit into memory.

Every part of a world (what a controller remembers, Kafka, the lease) is numbered when it is first met; a world is the
numbers of its parts side by side. That is exact: two worlds are one only if all their parts are equal. A turn of a
controller depends on its own part and on one of the stores, and changes nothing else, so what it leads to is found out
once for each such pair, by the real machines, and is a difference of two numbers from then on.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import partial
from typing import Generic, NamedTuple, TypeAlias, TypeVar

from controlplane.core.election.lease import Lease
from tests.exploration.choices import Choices, every_way
from tests.exploration.enabled_turns import turns_of_thread, turns_with_kafka, turns_with_lease_store, turns_with_thread
from tests.exploration.parts import LeaseThread, Loop, Parts
from tests.exploration.stores import BrokenError, Kafka, commit
from tests.exploration.turns import (
    Turn,
    require_leader_knows_the_log,
)

Value = TypeVar("Value", bound=Hashable)
_Take: TypeAlias = Callable[[Turn], None]

_BITS = 16
_MASK = (1 << _BITS) - 1
_LEASE_SHIFT = _BITS


class Start(Enum):
    """Where a search begins."""

    COLD = "cold"
    """Everybody has just started, the log is empty."""
    LED = "led"
    """The first controller leads the first term, and the others follow."""
    CONTESTED = "contested"
    """The first controller leads the first term and does not know that its lease ran out and is the second's by now."""


_TURNS_TO_LEAD = 8
"""Look, confirm, read ahead, open the writer, read, catch up, confirm, open the term."""


class Numbers(Generic[Value]):
    """A number for each value, in the order in which they are met; 0 is the first."""

    def __init__(self, first: Value) -> None:
        """Number the first."""
        self.values = [first]
        self.numbers = {first: 0}

    def of(self, value: Value) -> int:
        """The value's number."""
        number = self.numbers.setdefault(value, len(self.values))
        if number == len(self.values):
            assert number <= _MASK, "more different parts than bits"
            self.values.append(value)
        return number


class Way(NamedTuple):
    """One way in which a turn can go: what it is called, the difference that it makes, and what it breaks."""

    name: str
    difference: int
    broken: str


@dataclass
class _Side:
    """A part of the world that changes on its own: its bits, and the ways that it was found to have."""

    mask: int
    find: Callable[[int], Iterable[Way]]
    ways: dict[int, tuple[Way, ...]] = field(default_factory=dict)
    differences: dict[int, tuple[int, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Found:
    """What a search has seen.

    Attributes:
        worlds: how many worlds for each depth, from the beginning on.
        rows: the rows of the tables that were used.
        trace: the turns that lead to what must not be; empty if nothing does.
        broken: what that is.
        distinct: how many different parts the worlds have, by kind.
    """

    worlds: tuple[int, ...]
    rows: frozenset[str]
    trace: tuple[str, ...] = ()
    broken: str = ""
    distinct: dict[str, int] = field(default_factory=dict)

    @property
    def is_everything(self) -> bool:
        """Whether there are no other worlds at any depth."""
        return not self.broken and self.worlds[-1] == 0


class Explorer:
    """All that some controllers can do with one Kafka and one lease store."""

    def __init__(self, controllers: int, turn: type[Turn] = Turn) -> None:
        """Nothing has happened; ``turn`` is what a controller does with its lease."""
        self._controllers = range(controllers)
        self._turn = turn
        self._rows: set[str] = set()
        self._threads, self._loops = Numbers(LeaseThread()), Numbers(Loop())
        self._kafkas, self._leases = Numbers(Kafka()), Numbers(Lease())
        kafka, lease = _MASK, _MASK << _LEASE_SHIFT
        self._sides = [_Side(kafka, self._ways_of_kafka), _Side(lease, self._ways_of_lease)]
        for number in self._controllers:
            thread, loop = _MASK << _thread_shift(number), _MASK << _loop_shift(number)
            for mask, turns in (
                (thread | lease, turns_of_thread),
                (thread | loop | lease, turns_with_lease_store),
                (thread | loop, turns_with_thread),
                (loop | kafka, turns_with_kafka),
            ):
                self._sides.append(_Side(mask, partial(self._ways_of_controller, number, turns)))

    def search(self, start: Start, *, depth: int) -> Found:
        """Look at every world that the controllers can get into within so many turns; stop at what must not be."""
        first = self._first(start)
        parents = {first: first}
        level, counts = [first], [1]
        while level and len(counts) <= depth:
            following: list[int] = []
            for world in level:
                for side in self._sides:
                    key = world & side.mask
                    differences = side.differences.get(key)
                    if differences is None:
                        differences, broken = self._find_ways(side, key)
                        if broken is not None:
                            trace = (*self._trace(parents, world), broken.name)
                            return self._found(counts, trace, broken.broken)
                    for difference in differences:
                        after = world + difference
                        if after not in parents:
                            parents[after] = world
                            following.append(after)
            level = following
            counts.append(len(level))
        return self._found(counts)

    def _first(self, start: Start) -> int:
        """Every process has started, and nobody has asked anybody for anything, or one of them leads already."""
        turns: list[tuple[int, _Take]] = [(controller, Turn.begin) for controller in self._controllers]
        if start is not Start.COLD:
            turns += [(0, Turn.wake), *[(0, Turn.go_on)] * _TURNS_TO_LEAD]
        if start is Start.CONTESTED:
            turns.append((1, _take_lease_that_ran_out))
        world = 0
        for controller, take in turns:
            parts = self._parts(controller, world)
            turn = self._turn(controller, parts, Choices(()), self._rows)
            take(turn)
            world += self._difference(controller, parts, turn.parts)
        return world

    def _find_ways(self, side: "_Side", key: int) -> tuple[tuple[int, ...], Way | None]:
        """The differences that can be made, and the first way that must not be, if there is one."""
        side.ways[key] = ways = tuple(side.find(key))
        differences = tuple(dict.fromkeys(way.difference for way in ways if way.difference and not way.broken))
        side.differences[key] = differences
        return differences, next((way for way in ways if way.broken), None)

    def _ways_of_kafka(self, key: int) -> Iterator[Way]:
        parts = self._parts(0, key)
        for name, after in _passings(parts.kafka):
            try:
                yield Way(name, self._difference(0, parts, parts._replace(kafka=after())), "")
            except BrokenError as error:
                yield Way(name, 0, str(error))

    def _ways_of_lease(self, key: int) -> Iterator[Way]:
        parts = self._parts(0, key)
        if parts.lease.holder(0):
            after = replace(parts.lease, expires_at_ms=0)
            yield Way("the lease runs out", self._difference(0, parts, parts._replace(lease=after)), "")
        if parts.lease != Lease():
            yield Way("the lease store is emptied", self._difference(0, parts, parts._replace(lease=Lease())), "")

    def _ways_of_controller(self, controller: int, turns: Callable[[Loop], list[_Take]], key: int) -> Iterator[Way]:
        parts = self._parts(controller, key)
        for take in turns(parts.loop):
            who = (
                f"c{controller}'s lease thread"
                if take is Turn.wake
                else f"c{controller}, {parts.loop.leading.phase.value},"
            )
            for name, (turn, broken) in every_way(partial(self._take, take, controller, parts)):
                difference = 0 if broken else self._difference(controller, parts, turn.parts)
                yield Way(f"{who} {take.__name__.replace('_', ' ')}: {name}", difference, broken)

    def _take(self, take: _Take, controller: int, parts: Parts, choices: Choices) -> tuple[Turn, str]:
        turn = self._turn(controller, parts, choices, self._rows)
        try:
            take(turn)
            require_leader_knows_the_log(controller, turn.loop, turn.kafka)
        except BrokenError as error:
            return turn, str(error)
        return turn, ""

    def _parts(self, controller: int, world: int) -> Parts:
        """The parts of a world that one controller can see; what the world's mask leaves out is as at the beginning."""
        return Parts(
            self._threads.values[world >> _thread_shift(controller) & _MASK],
            self._loops.values[world >> _loop_shift(controller) & _MASK],
            self._kafkas.values[world & _MASK],
            self._leases.values[world >> _LEASE_SHIFT & _MASK],
        )

    def _difference(self, controller: int, before: Parts, after: Parts) -> int:
        thread = self._threads.of(after.thread) - self._threads.of(before.thread)
        loop = self._loops.of(after.loop) - self._loops.of(before.loop)
        kafka = self._kafkas.of(after.kafka) - self._kafkas.of(before.kafka)
        lease = self._leases.of(after.lease) - self._leases.of(before.lease)
        return (
            kafka + (lease << _LEASE_SHIFT) + (thread << _thread_shift(controller)) + (loop << _loop_shift(controller))
        )

    def _trace(self, parents: dict[int, int], world: int) -> tuple[str, ...]:
        """The names of the turns that led here by the shortest way."""
        names: list[str] = []
        while (before := parents[world]) != world:
            names.append(self._name(before, world))
            world = before
        return tuple(reversed(names))

    def _name(self, before: int, after: int) -> str:
        for side in self._sides:
            for way in side.ways.get(before & side.mask, ()):
                if before + way.difference == after and not way.broken:
                    return way.name
        raise AssertionError("no way leads from a world to the one that was reached from it")

    def _found(self, counts: list[int], trace: tuple[str, ...] = (), broken: str = "") -> Found:
        distinct = {
            "states of the leases' threads": len(self._threads.values),
            "states of the loops": len(self._loops.values),
            "states of Kafka": len(self._kafkas.values),
            "states of the lease": len(self._leases.values),
        }
        return Found(tuple(counts), frozenset(self._rows), trace, broken, distinct)


def _take_lease_that_ran_out(turn: Turn) -> None:
    turn.lease = replace(turn.lease, expires_at_ms=0)
    turn.wake()


def _thread_shift(controller: int) -> int:
    return (2 + 2 * controller) * _BITS


def _loop_shift(controller: int) -> int:
    return (3 + 2 * controller) * _BITS


def _passings(kafka: Kafka) -> Iterator[tuple[str, Callable[[], Kafka]]]:
    """What happens in Kafka without anybody's turn."""
    if kafka.late_opening:
        yield "the late opening arrives", lambda: kafka.opened_by(None)._replace(late_opening=False)
    if kafka.transaction is not None:
        if kafka.appended:
            yield "the transaction times out", lambda: kafka.opened_by(None)
        name = f"the broker commits what c{kafka.transaction.controller} has sent"
        yield name, partial(commit, kafka, kafka.transaction)
