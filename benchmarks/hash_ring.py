"""How long does a ring of many nodes take to build, and how many keys does it answer for in a second?

    python -m benchmarks.hash_ring [--nodes 1000] [--keys 100000] [--replicas 2] [--smallest]

A ring has 500 virtual nodes for each node. A second ring of the same nodes finds their places remembered. Baseline:
none. Targets: two seconds for the first ring, and 100,000 look-ups a second.
"""

import argparse
import time
from collections.abc import Callable

from benchmarks.command_line import parsed
from controlplane.core.slots.ring.hash_ring import HashRing

TARGET_S = 2.0
TARGET_PER_S = 100_000
SMALLEST = {"nodes": 4, "keys": 100}


def main() -> None:
    """Print the times of building, of one join, and the look-ups per second."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--nodes", type=int, default=1_000)
    parser.add_argument("--keys", type=int, default=100_000)
    parser.add_argument("--replicas", type=int, default=2)
    options = parsed(parser, SMALLEST)
    nodes = [f"node-{index:04}" for index in range(options.nodes)]
    keys = [f"key-{index}" for index in range(options.keys)]
    print(f"{options.nodes:,} nodes, {options.keys:,} keys; targets {TARGET_S} s and {TARGET_PER_S:,} look-ups/s")

    def build() -> None:
        HashRing(nodes).owner("")

    for name in ("build and sort", "build again"):
        print(f"{name:28} {_seconds(build):8.3f} s")
    ring = HashRing(nodes)

    def join() -> None:
        ring.add("node-new")
        ring.owner("")

    def owners() -> None:
        for key in keys:
            ring.owner(key)

    def replicas() -> None:
        for key in keys:
            ring.replicas(key, options.replicas)

    print(f"{'one node joins':28} {_seconds(join):8.3f} s")
    for name, look_up in (("owners", owners), (f"{options.replicas} replicas", replicas)):
        print(f"{name:28} {options.keys / _seconds(look_up):8,.0f} look-ups/s")


def _seconds(run: Callable[[], None]) -> float:
    began_s = time.perf_counter()
    run()
    return time.perf_counter() - began_s


if __name__ == "__main__":
    main()
