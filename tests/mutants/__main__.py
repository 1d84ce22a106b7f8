"""``python -m tests.mutants``: which bugs are found, and by which answer or test."""

import argparse
import os
import sys
from collections.abc import Iterable, Iterator

from tests.mutants.hunt import hunt_all
from tests.mutants.mutant import Mutant, OutdatedMutantError
from tests.mutants.table import MUTANTS


def main() -> int:
    """Print the table; 1 if a bug was not found."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes (default: one for each core)")
    parser.add_argument("--like", default="", help="only the bugs whose words or file contain this")
    options = parser.parse_args()
    chosen = [mutant for mutant in MUTANTS if options.like in mutant.bug.words or options.like in mutant.file]
    if not chosen:
        parser.error(f"--like {options.like!r}: no bug has these words")
    outdated = list(_outdated(chosen))
    if outdated:
        print(*outdated, sep="\n")
        print(f"{len(outdated)} of {len(chosen)} are outdated: correct them in tests/mutants/")
        return 1
    wide, broad = max(len(each.bug.words) for each in chosen), max(len(each.file) for each in chosen)
    print(f"{'bug':<{wide}}  {'file':<{broad}}  found by")
    survived = 0
    for mutant, found_by in hunt_all(chosen, options.jobs):
        survived += not found_by
        print(f"{mutant.bug.words:<{wide}}  {mutant.file:<{broad}}  {found_by or 'SURVIVED'}", flush=True)
    print(f"{len(chosen) - survived} of {len(chosen)} found")
    return 1 if survived else 0


def _outdated(mutants: Iterable[Mutant]) -> Iterator[str]:
    for mutant in mutants:
        try:
            mutant.source()
        except OutdatedMutantError as error:
            yield str(error)


if __name__ == "__main__":
    sys.exit(main())
