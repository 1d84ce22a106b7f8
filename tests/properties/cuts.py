"""``python -m tests.properties.cuts``: cut fleets of several sizes off from Kafka, in virtual time, with many seeds."""

import argparse
import os
import random
import sys
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Final

from controlplane.core.cluster.policy import ClusterPolicy
from controlplane.core.values.identifiers import NodeId
from tests.helpers.cut_fleet import CutFleet

SIZES: Final = (3, 5, 8, 50)
POLICY: Final = ClusterPolicy(slot_count=8)
_LONGEST_CUT_MS: Final = 20_000
_STEP_MS: Final = 50


def promise(node_count: int) -> int:
    """How many nodes of a fleet may be fenced for silence within a window."""
    return max(1, int(POLICY.protected_ratio * node_count))


def most_in_a_window(fenced: Sequence[tuple[NodeId, int]]) -> int:
    """The greatest number of nodes that were fenced within one window, both its edges included."""
    times = [at_ms for _, at_ms in fenced]
    return max(
        (sum(since <= at_ms <= since + POLICY.protection_window_ms for at_ms in times) for since in times), default=0
    )


def cut(node_count: int, seed: int) -> int:
    """Cut all nodes off at one moment and connect them again. Returns how many were fenced within one window."""
    cut_ms = random.Random(f"cut {seed}").randrange(500, _LONGEST_CUT_MS, _STEP_MS)
    fleet = CutFleet(seed, node_count)
    fleet.run(cut_ms, silent=fleet.names)
    fleet.run(POLICY.silence_limit_ms + 2_000)
    return most_in_a_window(fleet.fenced)


def death(seed: int) -> int:
    """One of three nodes dies. Returns after how many ms it is fenced; -1 if it is not, or another one is."""
    fleet = CutFleet(seed, 3)
    dead, died_ms = fleet.names[seed % 3], fleet.now_ms
    fleet.run(5_000, silent=[dead])
    return fleet.fenced[0][1] - died_ms if [name for name, _ in fleet.fenced] == [dead] else -1


def death_after_joining(seed: int) -> int:
    """A node joins and dies, and the brokers' clocks are an hour apart.

    Returns after how many ms it is fenced, counted from the later of death and admission; -1 if it is not.
    """
    choose = random.Random(f"joining {seed}")
    fleet = CutFleet(seed, 5, ahead_ms={choose.randrange(2): choose.choice((-3_600_000, 3_600_000))})
    name, is_heard = f"new-{seed}", choose.random() < 0.5
    fleet.join(name)
    # A node that is never heard died before its first heartbeat was due.
    longest_ms = 3_000 if is_heard else 1_000
    fleet.run(choose.randrange(_STEP_MS, longest_ms, _STEP_MS), joined=[name] if is_heard else [])
    since_ms = fleet.now_ms
    fleet.run(POLICY.silence_limit_ms + 3_000)
    fenced = dict(fleet.fenced)
    return fenced[name] - since_ms if set(fenced) == {name} else -1


def main() -> int:
    """Print a line for each size and for each kind of death; 1 if something is beyond its bound."""
    parser = argparse.ArgumentParser(prog="python -m tests.properties.cuts", description=__doc__)
    parser.add_argument("--seeds", type=int, default=1_000, help="for each size (default: 1,000)")
    options = parser.parse_args()
    seeds, broken = range(options.seeds), 0
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for size in SIZES:
            counts = Counter(pool.map(partial(cut, size), seeds, chunksize=10))
            broken += max(counts) > promise(size)
            sys.stdout.write(f"{size} nodes cut off: fenced {dict(sorted(counts.items()))}, promised {promise(size)}\n")
        for what, dies, bound_ms in (
            ("one of three dies", death, 3_000),
            ("a node dies after joining", death_after_joining, POLICY.silence_limit_ms + 1_000),
        ):
            taken = list(pool.map(dies, seeds, chunksize=10))
            broken += min(taken) < 0 or max(taken) > bound_ms
            sys.stdout.write(f"{what}: fenced after {min(taken)} to {max(taken)} ms, {bound_ms} allowed\n")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
