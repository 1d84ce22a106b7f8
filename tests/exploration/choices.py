"""Runs a piece of code once for every way in which its choices can turn out."""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")


class Choices:
    """The choices of one run: those of a prefix as before, every further one the first that there is."""

    def __init__(self, prefix: Sequence[int]) -> None:
        """Repeat the prefix."""
        self.taken: list[int] = []
        self.counts: list[int] = []
        self.names: list[str] = []
        self._prefix = prefix

    def of(self, *options: str) -> str:
        """One of these; a single option is no choice, and its name is told all the same."""
        position = len(self.taken)
        index = self._prefix[position] if position < len(self._prefix) else 0
        self.taken.append(index)
        self.counts.append(len(options))
        self.names.append(options[index])
        return options[index]


def every_way(run: Callable[[Choices], T]) -> Iterator[tuple[str, T]]:
    """What each way leads to, with the names of its choices."""
    prefix: list[int] = []
    while True:
        choices = Choices(prefix)
        result = run(choices)
        yield ", ".join(name for name in choices.names if name), result
        prefix = list(choices.taken)
        while prefix and prefix[-1] + 1 == choices.counts[len(prefix) - 1]:
            prefix.pop()
        if not prefix:
            return
        prefix[-1] += 1
