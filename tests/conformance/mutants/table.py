"""All mutants. Those of ``controlplane/core/<file>`` are the bugs in ``tests/conformance/mutants/core/<file>``."""

from importlib import import_module
from pathlib import Path
from typing import Final

from tests.conformance.mutants.mutant import ROOT, Mutant

TABLES: Final = Path(__file__).parent / "core"


def _mutants(table: Path) -> tuple[Mutant, ...]:
    name = table.relative_to(ROOT).with_suffix("").as_posix().replace("/", ".")
    file = table.relative_to(TABLES).as_posix()
    return tuple(Mutant(file, bug) for bug in import_module(name).BUGS)


MUTANTS: Final = tuple(mutant for table in sorted(TABLES.rglob("*.py")) for mutant in _mutants(table))
