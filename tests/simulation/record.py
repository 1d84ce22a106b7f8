"""``python -m tests.simulation.record``: write recordings of seeds, compare two, take a recording's decisions again."""

import argparse
import os
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Final

from tests.simulation.__main__ import seed_range
from tests.simulation.many import prepare
from tests.simulation.recording import Names, Retaken, read_recording, record_run, retake, write_recording

_SHOWN: Final = 10
_NO_NAMES: Final = Names({}, {})


def main() -> int:
    """Run the command line. Returns 1 if something differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.record", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    write = verbs.add_parser("write", help="run seeds and write their recordings into a folder")
    write.add_argument("folder", type=Path)
    write.add_argument("--seeds", type=seed_range, default=range(500), metavar="A-B")
    compare = verbs.add_parser("compare", help="whether two folders hold the same, byte for byte")
    compare.add_argument("folder", type=Path)
    compare.add_argument("other", type=Path)
    again = verbs.add_parser("retake", help="take the recorded decisions again with this code")
    again.add_argument("folder", type=Path)
    again.add_argument("--names", type=Path, help="a JSON file: what is called otherwise now")
    options = parser.parse_args()
    if options.verb == "write":
        return _write(options.folder, options.seeds)
    if options.verb == "compare":
        return _compare(options.folder, options.other)
    return _retake(options.folder, options.names)


def _write(folder: Path, seeds: range) -> int:
    folder.mkdir(parents=True, exist_ok=True)
    with ProcessPoolExecutor(os.cpu_count(), initializer=prepare) as pool:
        for _ in pool.map(partial(_write_one, folder), seeds, chunksize=4):
            pass
    print(f"{len(seeds)} seeds recorded")
    return 0


def _write_one(folder: Path, seed: int) -> None:
    write_recording(folder, seed, record_run(seed))


def _compare(folder: Path, other: Path) -> int:
    differing: Counter[str] = Counter()
    decisions = 0
    seeds = list(_seeds(folder))
    for seed in seeds:
        one, two = read_recording(folder, seed), read_recording(other, seed)
        decisions += len(one["decisions"])
        for topic, sha256 in one["sha256"].items():
            if two["sha256"].get(topic) != sha256:
                differing[topic] += 1
                if differing.total() <= _SHOWN:
                    print(f"seed {seed}: {topic} differs")
    missing = set(seeds) ^ set(_seeds(other))
    print(f"{len(seeds)} seeds, {decisions:,} decisions: {dict(differing) or 'every topic byte for byte the same'}")
    if missing:
        print(f"only in one of the two: {sorted(missing)[:_SHOWN]}")
    return 1 if differing or missing else 0


def _retake(folder: Path, names: Path | None) -> int:
    seeds = list(_seeds(folder))
    decisions = retaken = 0
    different = []
    with ProcessPoolExecutor(os.cpu_count(), initializer=prepare) as pool:
        found = pool.map(partial(_retake_one, folder, names), seeds, chunksize=4)
        for seed, result in zip(seeds, found, strict=True):
            decisions += result.decisions
            retaken += result.retaken
            different += [f"seed {seed}: {sentence}" for sentence in result.differences]
    print(*different[:_SHOWN], sep="\n")
    if names is not None:
        print(names.read_text(encoding="utf-8"))
    print(f"{len(seeds)} seeds: {retaken:,} of {decisions:,} decisions taken again, {len(different)} differences")
    return 1 if different or retaken != decisions else 0


def _retake_one(folder: Path, names: Path | None, seed: str) -> Retaken:
    return retake(read_recording(folder, seed), Names.read(names) if names else _NO_NAMES)


def _seeds(folder: Path) -> Iterator[str]:
    paths = folder.glob("*.json.gz")
    yield from sorted((path.name.removesuffix(".json.gz") for path in paths), key=int)


if __name__ == "__main__":
    sys.exit(main())
