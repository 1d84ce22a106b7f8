"""``python -m tests.exploration``: look at every order of what can happen, and print what there was."""

import argparse
import sys
import time

from tests.exploration.search import Found
from tests.exploration.searches import SEARCHES, AnyLeaseSearch, Search, rows_of_tables, unused_rows


def main() -> int:
    """Run the searches; 1 if one finds what must not be, or if a row of the tables was not used."""
    parser = argparse.ArgumentParser(prog="python -m tests.exploration", description=__doc__)
    parser.add_argument("--deeper", type=int, default=0, metavar="N", help="so many turns more (each doubles the time)")
    deeper = parser.parse_args().deeper
    found: list[Found] = []
    for search in SEARCHES:
        began_s = time.monotonic()
        if not isinstance(search, AnyLeaseSearch):
            search = search._replace(depth=search.depth + deeper)  # noqa: PLW2901 - the same one, deeper
        found.append(_told(search))
        print(f"  in {time.monotonic() - began_s:.0f} s")
        if found[-1].broken:
            return 1
    unused = unused_rows(found)
    print(f"worlds in all: {sum(sum(one.worlds) for one in found):,}")
    rows = len(rows_of_tables())
    print(f"rows of the transition tables used: {rows - len(unused)} of {rows}")
    for row in unused:
        print(f"  not used: {row}")
    return 1 if unused else 0


def _told(search: Search) -> Found:
    print(f"{search}:", flush=True)
    found = search.run()
    print(
        f"  {sum(found.worlds):,} worlds; new ones at each depth: {', '.join(f'{count:,}' for count in found.worlds)}"
    )
    if found.distinct:
        print("  " + ", ".join(f"{count:,} {what}" for what, count in found.distinct.items()))
    if found.broken:
        print(f"  broken: {found.broken}, by the {len(found.trace)} turns")
        for number, turn in enumerate(found.trace, start=1):
            print(f"    {number:>2}. {turn}")
    return found


if __name__ == "__main__":
    sys.exit(main())
