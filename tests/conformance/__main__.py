"""Compare files of recorded answers with ours: ``python -m tests.conformance sofa FILE.jsonl.gz...``.

Prints each mismatch shortly and ``N passed, N failed``; exits 1 if any failed.
"""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.conformance import pulsar, ring, sofa
from tests.conformance.recorded import cases

RUNNERS = {"pulsar": pulsar.mismatch, "ring": ring.mismatch, "sofa": sofa.mismatch}


def difference(compare: Callable[[dict[str, Any]], str | None], case: dict[str, Any]) -> str | None:
    """How our answer to a case differs from the recorded one; None if it does not."""
    try:
        return compare(case)
    except Exception as error:  # noqa: BLE001 - one case that cannot be run must not hide the others
        return f"{type(error).__name__}: {error}"


def main(arguments: list[str]) -> int:
    """Run; the answer is the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance", description=__doc__.splitlines()[0])
    parser.add_argument("system", choices=sorted(RUNNERS))
    parser.add_argument("files", nargs="+", type=Path)
    chosen = parser.parse_args(arguments)
    passed = failed = 0
    for path in chosen.files:
        for case in cases(path):
            found = difference(RUNNERS[chosen.system], case)
            if found is None:
                passed += 1
            else:
                failed += 1
                print(f"{path.name}: {case.get('id')} {case.get('op')}: {found}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
