"""One command line, taken apart: ``run 3s silent=n2`` has the word ``3s`` and the setting ``silent``."""

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from tests.scenarios.engine.script import ScenarioError

_SETTING: Final = re.compile(r"([a-z_][a-z0-9_.*-]*)=(.*)\Z", re.DOTALL)
_DURATION: Final = re.compile(r"(\d+)(ms|s)\Z")


@dataclass(frozen=True, slots=True)
class Call:
    """What a command is given.

    Attributes:
        name: of the command.
        words: what stands after the name and is no setting, in order.
        settings: what was written as ``name=value``.
        rest: everything after the name, word by word.
    """

    name: str
    words: tuple[str, ...]
    settings: Mapping[str, str]
    rest: tuple[str, ...]

    def only(self, *names: str, words: int | None = None) -> None:
        """Refuse settings of other names, and another number of words.

        Raises:
            ScenarioError: the line has something that the command does not know, or lacks a word.
        """
        unknown = sorted(self.settings.keys() - set(names))
        if unknown:
            raise ScenarioError(f"{self.name} has no setting {unknown[0]!r}; it has {', '.join(names) or 'none'}")
        if words is not None and len(self.words) != words:
            raise ScenarioError(f"{self.name} takes {words} words, found {list(self.words)}")

    def whole(self, name: str, default: int) -> int:
        """A setting that is a whole number."""
        return int(self.settings.get(name, default))

    def names(self, name: str) -> frozenset[str]:
        """A setting that is a list of names, as in ``n1,n2``."""
        text = self.settings.get(name, "")
        return frozenset(text.split(",")) if text else frozenset()

    def parts(self) -> "list[Call]":
        """What follows the name as calls of their own, divided by a ``;`` that stands alone.

        Raises:
            ScenarioError: one of them is empty.
        """
        groups: list[list[str]] = [[]]
        for word in self.rest:
            if word == ";":
                groups.append([])
            else:
                groups[-1].append(word)
        if not all(groups):
            raise ScenarioError(f"{self.name} needs something before and after each ';'")
        return [_call_of(group) for group in groups]


def parse_call(line: str) -> Call:
    """A command line; quotes keep spaces together as in a shell."""
    return _call_of(shlex.split(line))


def _call_of(words: list[str]) -> Call:
    settings = {}
    others = []
    for word in words[1:]:
        matched = _SETTING.match(word)
        if matched is None:
            others.append(word)
        else:
            settings[matched[1]] = matched[2]
    return Call(words[0], tuple(others), settings, tuple(words[1:]))


def parse_duration_ms(text: str) -> int:
    """A time as in ``3s`` or ``300ms``, in ms.

    Raises:
        ScenarioError: it is written otherwise.
    """
    matched = _DURATION.match(text)
    if matched is None:
        raise ScenarioError(f"{text!r} is no time: write 3s or 300ms")
    return int(matched[1]) * (1_000 if matched[2] == "s" else 1)
