"""Does a change cost more in a large table than in a small one?

    python -m benchmarks.apply [--bundles 1000 100000] [--changes 2000] [--seed 1] [--smallest]

A state is created for each number of bundles, in one namespace, with fixed numbers of slots and nodes. Then seeded
single changes are made: a bundle gets another owner (*BundlesAssigned*), a slot gets another slot leader
(*SlotsAssigned*). *Apply* computes the state after the event, with its digest. *Publish* creates the records of the
decision's transaction with the table's new digest, and adopts the new row hashes as after a commit. The sizes alternate
after each change, so that other load on the machine slows all of them equally. Baseline: the first size.
Target: the median of apply and publish together at most 1.5 of the baseline's.
"""

import argparse
import random
import statistics
import time
from collections.abc import Callable
from dataclasses import replace

from benchmarks.command_line import parsed
from benchmarks.long_logs import founded
from controlplane.codec.table import encode_row
from controlplane.core.bundles.bundle import Namespace, equal_bundles
from controlplane.core.bundles.events import BundlesAssigned, NamespaceCreated
from controlplane.core.log.apply import apply
from controlplane.core.log.decision import CauseKind
from controlplane.core.log.draft import Draft, SealedDecision
from controlplane.core.log.events import Event
from controlplane.core.log.row_changes import rows_of
from controlplane.core.log.state import State
from controlplane.core.slots.events import SlotsAssigned
from controlplane.core.values.digests import row_hash
from controlplane.core.values.identifiers import Epoch
from controlplane.service.publisher import TablePublisher

SLOTS = 256
NODES = 100
TARGET_RATIO = 1.5
SMALLEST = {"bundles": [10, 20], "changes": 5}


class Cluster:
    """A state and the publisher of its table, for a sequence of changes.

    ``apply_us`` and ``publish_us`` have an entry for each change since :meth:`forget`.
    """

    def __init__(self, bundle_count: int, seed: int) -> None:
        """Create a cluster with this number of bundles, which the nodes own in turn."""
        self.bundle_count = bundle_count
        self._random = random.Random(seed)
        self._state = _state_with_bundles(bundle_count)
        self._nodes = sorted(self._state.membership.nodes)
        self._bundle_ids = list(self._state.bundles.by_id)
        rows = rows_of(self._state).items()
        self._publisher = TablePublisher({key: row_hash(key.encode(), encode_row(row)) for key, row in rows})
        self.apply_us: list[float] = []
        self.publish_us: list[float] = []

    def forget(self) -> None:
        """Discard the measurements so far."""
        self.apply_us, self.publish_us = [], []

    def assign_bundle(self) -> BundlesAssigned:
        """Any bundle, with another owner."""
        bundle = self._state.bundles.by_id[self._random.choice(self._bundle_ids)]
        return BundlesAssigned((replace(bundle, owner=self._another(bundle.owner)),))

    def assign_slot(self) -> SlotsAssigned:
        """Any slot, with another slot leader and no follower, so that equal changes have equal records."""
        slot = self._state.slots.table[self._random.randrange(SLOTS)]
        epoch = Epoch(self._state.epoch + 1)
        return SlotsAssigned((replace(slot, leader=self._another(slot.leader), followers=(), leader_epoch=epoch),))

    def change(self, event: Event) -> None:
        """Measure applying and publishing one event. Its decision is created in between and is not measured."""
        began_s = time.perf_counter()
        apply(self._state, event).digest()
        self.apply_us.append(1e6 * (time.perf_counter() - began_s))
        sealed = _sealed(self._state, event)
        began_s = time.perf_counter()
        publication = self._publisher.publication(sealed, sealed.rows)
        self._publisher.committed(publication)
        self.publish_us.append(1e6 * (time.perf_counter() - began_s))
        self._state = sealed.state

    def _another(self, node_id: str | None) -> str:
        return self._random.choice([each for each in self._nodes if each != node_id])


def main() -> None:
    """Create the states, change them in turn, and print medians and ratios for each kind of change."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--bundles", type=int, nargs="+", default=[1_000, 100_000], help="sizes; the first is the baseline"
    )
    parser.add_argument("--changes", type=int, default=2_000, help="measured changes of each kind and size")
    parser.add_argument("--seed", type=int, default=1)
    options = parsed(parser, SMALLEST)
    clusters = []
    for bundle_count in options.bundles:
        print(f"making a state with {bundle_count:,} bundles, {SLOTS} slots and {NODES} nodes ...", flush=True)
        clusters.append(Cluster(bundle_count, options.seed))
    _measure("a bundle gets another owner", clusters, Cluster.assign_bundle, options.changes)
    _measure("a slot gets another slot leader", clusters, Cluster.assign_slot, options.changes)


def _measure(what: str, clusters: list[Cluster], next_event: Callable[[Cluster], Event], changes: int) -> None:
    for cluster in clusters:
        cluster.forget()
    for _ in range(changes):
        for cluster in clusters:
            cluster.change(next_event(cluster))
    print(f"\n{what}: medians of {changes:,} changes")
    baseline_us = None
    for cluster in clusters:
        both_us = statistics.median(map(sum, zip(cluster.apply_us, cluster.publish_us, strict=True)))
        print(
            f"  {cluster.bundle_count:9,} bundles: apply {statistics.median(cluster.apply_us):7.1f} us   "
            f"publish {statistics.median(cluster.publish_us):7.1f} us   both {both_us:7.1f} us"
        )
        if baseline_us is None:
            baseline_us = both_us
            continue
        ratio = both_us / baseline_us
        verdict = "met" if ratio <= TARGET_RATIO else "MISSED"
        print(f"  ratio to the first: {ratio:.2f}   target at most {TARGET_RATIO}: {verdict}", flush=True)


def _state_with_bundles(bundle_count: int) -> State:
    """A cluster with one namespace that may have more bundles than the policy's limit."""
    state = founded(SLOTS, NODES)[-1].state
    nodes = sorted(state.membership.nodes)
    bundles = tuple(
        replace(bundle, owner=nodes[index % len(nodes)])
        for index, bundle in enumerate(equal_bundles("bench", bundle_count))
    )
    return _sealed(state, NamespaceCreated(Namespace("bench", bundle_count), bundles)).state


def _sealed(state: State, event: Event) -> SealedDecision:
    draft = Draft(state)
    draft.because(CauseKind.PLAN_CONTINUED, "bench", "made by the benchmark")
    draft.add(event)
    return draft.seal(state.decided_at_ms + 1, {})


if __name__ == "__main__":
    main()
