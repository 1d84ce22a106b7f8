"""A bug in a module, and how it gets into a process: the module is loaded from changed source."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.abc import MetaPathFinder, SourceLoader
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from pathlib import Path
from types import ModuleType
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parents[2]


class OutdatedMutantError(ValueError):
    """A mutant whose code has changed: correct its table, or delete the mutant if its line is gone."""


class Bug(NamedTuple):
    """One bug of a table.

    Attributes:
        words: what is wrong.
        right: a text that occurs once in the module's file.
        wrong: the text that replaces it.
        operations: the recorded operations of the rule; empty if no answers of its system are recorded.
        tests: files below ``tests``, or tests in them; they run if no recorded answer shows the bug.
    """

    words: str
    right: str
    wrong: str
    operations: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()


@dataclass(frozen=True)
class Mutant:
    """A bug and its place.

    Attributes:
        file: the module's file, below the repository's root.
        bug: the bug.
    """

    file: str
    bug: Bug

    @property
    def path(self) -> Path:
        """The module's file."""
        return ROOT / self.file

    @property
    def module(self) -> str:
        """The module's name."""
        return self.file.removesuffix(".py").replace("/", ".")

    @property
    def system(self) -> str:
        """Whose recorded answers the operations are, as in ``python -m tests.conformance``."""
        return "ring" if self.file.startswith("controlplane/core/slots/ring/") else "pulsar"

    def source(self) -> str:
        """The module with the bug.

        Raises:
            OutdatedMutantError: there is no such file, or the right text does not occur in it exactly once.
        """
        text = self.path.read_text(encoding="utf-8") if self.path.is_file() else None
        found = "there is no such file" if text is None else f"found {text.count(self.bug.right)} times"
        if text is None or text.count(self.bug.right) != 1:
            message = f"{self.file}: {found}: {self.bug.right!r} of the mutant {self.bug.words!r}"
            raise OutdatedMutantError(message)
        return text.replace(self.bug.right, self.bug.wrong)

    def put_in(self) -> None:
        """From now on this process loads the module with its bug. Nothing on disk changes.

        Raises:
            RuntimeError: the module has been loaded already.
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
