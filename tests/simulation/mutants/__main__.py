"""``python -m tests.simulation.mutants``: which bugs the simulation finds, how soon, and by which invariant."""

import argparse
import os
import sys
from concurrent.futures import ProcessPoolExecutor, as_completed

from tests.simulation.many import prepare
from tests.simulation.mutants.bugs import MUTANTS
from tests.simulation.mutants.hunt import hunt


def main() -> int:
    """Print the table; 1 if a bug was not found."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.mutants", description=__doc__)
    parser.add_argument("--at-most", type=int, default=300, help="seeds for each bug (default: 300)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes (default: one for each core)")
    parser.add_argument("--like", default="", help="only the bugs whose words contain this")
    options = parser.parse_args()
    chosen = [mutant for mutant in MUTANTS if options.like in mutant.bug]
    if not chosen:
        parser.error(f"--like {options.like!r}: no bug has these words")
    width = max(len(mutant.bug) for mutant in chosen)
    print(f"{'bug':<{width}}  seeds  found by")
    missed = 0
    with ProcessPoolExecutor(options.jobs, initializer=prepare) as pool:
        hunts = [pool.submit(hunt, mutant, options.at_most) for mutant in chosen]
        for done in as_completed(hunts):
            catch = done.result()
            missed += not catch.invariant
            print(f"{catch.bug:<{width}}  {catch.seeds:>5}  {catch.invariant or 'NOT FOUND'}", flush=True)
    print(f"{len(chosen) - missed} of {len(chosen)} found")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
