"""All mutants. Those of a file are the bugs in the file of the same path below ``tests/mutants``."""

from importlib import import_module
from pathlib import Path
from typing import Final

from tests.mutants.mutant import ROOT, Mutant

HOME: Final = Path(__file__).parent
MIRRORED: Final = ("controlplane", "examples")
"""The folders of the repository whose code has mutants."""


def _mutants(table: Path) -> tuple[Mutant, ...]:
    name = table.relative_to(ROOT).with_suffix("").as_posix().replace("/", ".")
    file = table.relative_to(HOME).as_posix()
    return tuple(Mutant(file, bug) for bug in import_module(name).BUGS)


MUTANTS: Final = tuple(
    mutant for folder in MIRRORED for table in sorted((HOME / folder).rglob("*.py")) for mutant in _mutants(table)
)
