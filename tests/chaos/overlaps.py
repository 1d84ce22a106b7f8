"""Finds the times at which two processes would serve the same thing, whatever their tokens are.

The search is for what is certain: two processes overlap if there was a moment at which both would have served. Looks
come every hundredth of a second, so an overlap that is shorter than two of them may lie between them. Calls in progress
have exact ends, and show shorter ones.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from operator import attrgetter
from typing import NamedTuple

from controlplane.node import FencingToken
from tests.chaos.served import Process, Serving


class Overlap(NamedTuple):
    """Two processes would serve one thing at the same moment.

    Attributes:
        thing: a slot, or a key of a namespace.
        former: the process with the lesser token; of two under one token, the one whose name is first.
        former_token: its token.
        later: the other one.
        later_token: its token.
        began_us: the first moment at which both would serve.
        ended_us: the last one.
    """

    thing: str
    former: Process
    former_token: FencingToken
    later: Process
    later_token: FencingToken
    began_us: int
    ended_us: int

    @property
    def length_ms(self) -> float:
        """Its length; 0 if a single moment is certain."""
        return max(0, self.ended_us - self.began_us) / 1_000

    def __str__(self) -> str:
        """A sentence."""
        return (
            f"{self.thing}: {self.later} under {tuple(self.later_token)} and {self.former} under "
            f"{tuple(self.former_token)} would both serve it for {self.length_ms:.1f} ms from {self.began_us} us on"
        )


def find_overlaps(servings: Iterable[Serving]) -> list[Overlap]:
    """Every overlap, in order of time; one for each thing and pair of tokens, from its first to its last moment."""
    things: defaultdict[str, list[Serving]] = defaultdict(list)
    for serving in servings:
        things[serving.thing].append(serving)
    found: dict[tuple[object, ...], Overlap] = {}
    for of_thing in things.values():
        for one, other in _pairs(of_thing):
            overlap = _overlap(one, other)
            sides = overlap[:5]
            known = found.get(sides, overlap)
            found[sides] = overlap._replace(
                began_us=min(known.began_us, overlap.began_us), ended_us=max(known.ended_us, overlap.ended_us)
            )
    return sorted(found.values(), key=attrgetter("began_us", "thing"))


def _pairs(servings: list[Serving]) -> Iterator[tuple[Serving, Serving]]:
    """The pairs of different processes that certainly have a moment in common."""
    still: list[Serving] = []
    # Where only a moment is known, began_us is after it: it may end before it begins.
    for serving in sorted(servings, key=attrgetter("began_us")):
        still = [each for each in still if each.ended_us >= serving.began_us]
        yield from ((each, serving) for each in still if _are_together(each, serving))
        still.append(serving)


def _are_together(one: Serving, other: Serving) -> bool:
    return one.process != other.process and one.began_us <= other.ended_us and other.began_us <= one.ended_us


def _overlap(one: Serving, other: Serving) -> Overlap:
    former, later = sorted((one, other), key=attrgetter("token", "process"))
    began_us, ended_us = max(one.began_us, other.began_us), min(one.ended_us, other.ended_us)
    return Overlap(one.thing, former.process, former.token, later.process, later.token, began_us, ended_us)
