"""How a call of the command ended, for tests that make such calls."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Ran:
    """The exit status and the output of a command."""

    status: int
    out: str
    err: str


RunCommand: TypeAlias = Callable[..., Ran]
"""Takes the words of a command line."""
