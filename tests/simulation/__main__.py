"""``python -m tests.simulation --seeds A-B``: run a range of seeds on every core and print a summary."""

import argparse
import secrets
import sys
import time
from collections.abc import Iterable
from itertools import chain
from typing import Final

from tests.simulation.coverage import MEETS_ALL, what_is_missing
from tests.simulation.many import prepare, run_all
from tests.simulation.plan import Item, choose_plan
from tests.simulation.run import Report, run
from tests.simulation.shrink import shrink
from tests.simulation.summary import Summary

_TELL_EVERY_S: Final = 5.0
_SHRUNK_AT_MOST: Final = 3
_FRESH_FROM: Final = 1_000_000


def main() -> int:
    """Run the command line. Returns 1 if a run violated an invariant."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument(
        "--seeds", type=seed_range, default=range(100), metavar="A-B", help="both included (default: 0-99)"
    )
    parser.add_argument(
        "--fresh", type=int, default=0, metavar="N", help="number of additional seeds that have not been run yet"
    )
    parser.add_argument("--seed", type=int, help="this one alone, with its plan")
    parser.add_argument("--only", type=_numbers, metavar="N,N,...", help="with --seed: these items of its plan alone")
    parser.add_argument("--jobs", type=int, help="processes (default: one for each core)")
    options = parser.parse_args()
    if options.seed is None and options.only is not None:
        parser.error("--only names items of the plan of one seed: give --seed as well")
    if options.seed is not None:
        unknown = (options.only or frozenset()) - {item.number for item in choose_plan(str(options.seed))}
        if unknown:
            parser.error(
                f"--only {','.join(map(str, sorted(unknown)))}: the plan of seed {options.seed} has no such item"
            )
        return _run_one(options.seed, options.only)
    return _run_many(options.seeds, options.fresh, options.jobs)


def seed_range(text: str) -> range:
    """The seeds of ``A-B``, both included, or of one number.

    Raises:
        argparse.ArgumentTypeError: the text is neither.
    """
    first, dash, last = text.partition("-")
    if not first.isdecimal() or (dash and not last.isdecimal()):
        raise argparse.ArgumentTypeError(f"{text!r} is no range of seeds: write A-B, as in 0-99, or one number")
    seeds = range(int(first), int(last or first) + 1)
    if not seeds:
        raise argparse.ArgumentTypeError(f"{text!r} holds no seed: the first number is greater than the last")
    return seeds


def _numbers(text: str) -> frozenset[int]:
    numbers = [number for number in text.split(",") if number]
    if not all(number.isdecimal() for number in numbers):
        raise argparse.ArgumentTypeError(f"{text!r} is no list of item numbers: write them as in 3,7")
    return frozenset(map(int, numbers))


def _run_one(seed: int, only: frozenset[int] | None) -> int:
    prepare()
    _print_items(choose_plan(str(seed), only))
    summary = Summary()
    report = run(seed, only)
    summary.add(report)
    print(*summary.lines(), sep="\n")
    print(report.broken)
    return 1 if report.broken else 0


def _run_many(seeds: range, fresh: int, jobs: int | None) -> int:
    summary, began_s = Summary(), time.monotonic()
    told_s = began_s
    chosen: Iterable[int] = seeds
    if fresh:
        first = _FRESH_FROM + secrets.randbelow(1 << 40)
        print(f"seeds {seeds[0]}-{seeds[-1]} and, fresh, {first}-{first + fresh - 1}", flush=True)
        chosen = chain(seeds, range(first, first + fresh))
    for count, report in enumerate(run_all(chosen, jobs), start=1):
        summary.add(report)
        if report.broken:
            _tell(report, shrinks=len(summary.broken) <= _SHRUNK_AT_MOST)
        if time.monotonic() - told_s > _TELL_EVERY_S:
            told_s = time.monotonic()
            print(f"{count} of {len(seeds) + fresh} runs ...", file=sys.stderr, flush=True)
    print(*summary.lines(), sep="\n")
    print(f"in {time.monotonic() - began_s:,.0f} s")
    missing = [*what_is_missing(summary)] if summary.runs >= MEETS_ALL else []
    print(*missing, sep="\n")
    return 1 if summary.broken or missing else 0


def _tell(report: Report, *, shrinks: bool) -> None:
    """Print the violated invariant, and the command that repeats it with a shrunk plan."""
    print(f"\nseed {report.seed}: {report.broken}")
    print(f"  python -m tests.simulation --seed {report.seed}", flush=True)
    if not shrinks:
        return
    prepare()
    needed = shrink(choose_plan(report.seed), lambda only: run(report.seed, only).invariant == report.invariant)
    print("it needs no more than")
    _print_items(needed)
    print(f"  python -m tests.simulation --seed {report.seed} --only {','.join(str(item.number) for item in needed)}")
    sys.stdout.flush()


def _print_items(items: tuple[Item, ...]) -> None:
    for item in items:
        print(f"  {item}")


if __name__ == "__main__":
    sys.exit(main())
