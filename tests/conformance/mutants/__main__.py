"""``python -m tests.conformance.mutants``: which bugs in the rules are found, and by which answer or test."""

import argparse
import os
import sys

from tests.conformance.mutants.hunt import hunt_all
from tests.conformance.mutants.table import MUTANTS


def main() -> int:
    """Print the table; 1 if a bug was not found."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.mutants", description=__doc__)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes (default: one for each core)")
    parser.add_argument("--like", default="", help="only the bugs whose words or file contain this")
    options = parser.parse_args()
    chosen = [mutant for mutant in MUTANTS if options.like in mutant.bug or options.like in mutant.file]
    if not chosen:
        parser.error(f"--like {options.like!r}: no bug has these words")
    files = {mutant.bug: mutant.file for mutant in chosen}
    wide, broad = max(map(len, files)), max(map(len, files.values()))
    print(f"{'bug':<{wide}}  {'file':<{broad}}  found by")
    survived = 0
    for catch in hunt_all(chosen, options.jobs):
        survived += not catch.found_by
        print(f"{catch.bug:<{wide}}  {files[catch.bug]:<{broad}}  {catch.found_by or 'SURVIVED'}", flush=True)
    print(f"{len(chosen) - survived} of {len(chosen)} found")
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main())
