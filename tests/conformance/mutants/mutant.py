"""A bug in a rule, and how it gets into a process: the rule's module is loaded from changed source."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.abc import MetaPathFinder, SourceLoader
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from pathlib import Path
from types import ModuleType
from typing import Final

ROOT: Final = Path(__file__).parents[3]
CORE: Final = "controlplane/core"


@dataclass(frozen=True)
class Mutant:
    """One bug.

    Attributes:
        bug: what is wrong, in words.
        file: the rule's file, below ``controlplane/core``.
        right: a text that occurs once in the file.
        wrong: the text that replaces it.
        operations: the recorded operations of the rule; empty if it has none.
        tests: the scenario tests of the rule, files below ``tests``; they run if no recorded answer shows the bug.
        system: whose recorded answers they are, as in ``python -m tests.conformance``.
    """

    bug: str
    file: str
    right: str
    wrong: str
    operations: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()
    system: str = "pulsar"

    @property
    def path(self) -> Path:
        """The rule's file."""
        return ROOT / CORE / self.file

    @property
    def module(self) -> str:
        """The rule's module."""
        return f"{CORE}/{self.file}".removesuffix(".py").replace("/", ".")

    def source(self) -> str:
        """The rule with the bug.

        Raises:
            ValueError: the right text does not stand in the file, or more than once.
        """
        text = self.path.read_text(encoding="utf-8")
        if text.count(self.right) != 1:
            message = f"mutant {self.bug!r}: {self.right!r} stands {text.count(self.right)} times in {self.file}"
            raise ValueError(message)
        return text.replace(self.right, self.wrong)

    def put_in(self) -> None:
        """From now on this process loads the rule with its bug. Nothing on disk changes.

        Raises:
            RuntimeError: the rule has been loaded already.
        """
        if self.module in sys.modules:
            raise RuntimeError(f"{self.module} is loaded already: a mutant needs a process of its own")
        sys.meta_path.insert(0, _Finder(self))


class _Finder(MetaPathFinder):
    def __init__(self, mutant: Mutant) -> None:
        self._mutant = mutant

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        del path, target
        if fullname != self._mutant.module:
            return None
        return spec_from_loader(fullname, _Loader(self._mutant), origin=str(self._mutant.path))


class _Loader(SourceLoader):
    def __init__(self, mutant: Mutant) -> None:
        self._mutant = mutant

    def get_filename(self, fullname: str) -> str:
        del fullname
        return f"{self._mutant.path} with a bug"

    def get_data(self, path: str) -> bytes:
        del path
        return self._mutant.source().encode()
