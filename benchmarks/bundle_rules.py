"""Do the rules for bundles decide in time in a large cluster?

    python -m benchmarks.bundle_rules [--nodes 1000] [--bundles 100000] [--seed 1] [--smallest]

A seeded view of loads goes through one round of every rule (:mod:`benchmarks.bundle_rounds`): reports of all nodes, the
leader's fold, every shedder under settings with which many nodes shed, placements of a hundred bundles one after the
other with all filters, both split tasks, and the split algorithms on a bundle with as many topics as there are bundles.
Baseline: none. Target: at most two seconds for each round.
"""

import argparse
import time

from benchmarks.bundle_rounds import rounds
from benchmarks.bundle_views import view_of
from benchmarks.command_line import parsed

TARGET_S = 2.0
SMALLEST = {"nodes": 4, "bundles": 40}


def main() -> None:
    """Create the view, and print for each round the number of its results, its time, and whether it is too long."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--nodes", type=int, default=1_000)
    parser.add_argument("--bundles", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parsed(parser, SMALLEST)
    view = view_of(options.nodes, options.bundles, options.seed)
    print(f"{options.nodes:,} nodes, {options.bundles:,} bundles; target at most {TARGET_S} s for each round")
    for name, run in rounds(view):
        began_s = time.perf_counter()
        count = run()
        took_s = time.perf_counter() - began_s
        print(f"{name:28} {count:7,} results {took_s:7.2f} s{'  TOO SLOW' if took_s > TARGET_S else ''}")


if __name__ == "__main__":
    main()
