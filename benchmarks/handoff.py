"""For how long do slots and bundles have no owner while they move as planned?

    python -m benchmarks.handoff [--singles 50] [--at-once 100] [--in-flight 100] [--rounds 10]
        [--kills 3] [--bootstrap-servers HOST:PORT] [--smallest]

One controller and two nodes, each in a process of its own. An operator orders slots and bundles from one node to the
other, one at a time and many at once: slots whose next leader is in sync already, slots that it has to copy first, and
bundles. The time without an owner begins when the former owner accepts no more requests, and ends when the next one
accepts them. Each node looks at its agent's answers every millisecond; the clock is the machine's monotonic one, which
its processes share. While a slot is copied its leader serves, so copying is no part of that time. Many bundles are
ordered twice: as the policy paces them by default, and while it lets ``--in-flight`` of them be under way; *all* is the
median time until the last of them is served, from the order on.
Baseline: the node that owns everything is killed in the same run.
Targets with 100 at once: p50 60 ms, p99 150 ms.
"""

import argparse
import multiprocessing
import random
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from benchmarks.broker import kafka_servers
from benchmarks.command_line import parsed
from benchmarks.handoff_cluster import DEADLINE_S, Operator, running_controller
from benchmarks.handoff_nodes import Piece, WatchedNodes
from benchmarks.quiet import only_warnings
from controlplane.adapters.kafka_admin import apply_topics
from controlplane.bootstrap.topics import topic_specs
from controlplane.config import ClusterConfig, KafkaConfig
from controlplane.core.bundles.bundle import Bundle, equal_bundles
from controlplane.core.bundles.ranges import bundle_hash
from controlplane.core.cluster.policy import MAX_BUNDLES_PER_NAMESPACE, ClusterPolicy
from controlplane.core.intents.intent import TRUE, IntentKind
from controlplane.core.operations.slot_numbers import slot_ranges
from controlplane.core.values.identifiers import NodeId
from controlplane.embedded.valkey import EmbeddedValkey

TARGET_P50_MS: Final = 60
TARGET_P99_MS: Final = 150
SMALLEST: Final = {"singles": 2, "at_once": 2, "in_flight": 1, "rounds": 1, "kills": 1}
FIRST: Final = "node-1"
SECOND: Final = "node-2"
_NAMESPACE: Final = "benchmarks/handoff"
_PAUSE_S: Final = 0.2
"""The greatest pause between two orders: moves then begin at any moment between two heartbeats."""


class Moving(Protocol):
    """A kind of pieces, and how an operator moves them."""

    pieces: Sequence[Piece]

    def order(self, operator: Operator, pieces: Sequence[Piece], source: NodeId, target: NodeId) -> None:
        """Order pieces of one node to another one."""


class Slots:
    """Slots, which are pinned to their leaders: so only those move that are ordered to."""

    def __init__(self, count: int) -> None:
        self.pieces: Sequence[Piece] = range(count)

    def order(self, operator: Operator, pieces: Sequence[Piece], source: NodeId, target: NodeId) -> None:
        """Pin slots to another leader. All of it is planned at once, when the pause ends."""
        slots = slot_ranges((piece for piece in pieces if isinstance(piece, int)), ",")
        operator.order(IntentKind.PAUSE_RECONCILIATION)
        operator.order(IntentKind.UNPIN_SLOTS, slots=slots, node=source)
        operator.order(IntentKind.PIN_SLOTS, slots=slots, node=target, leads=TRUE)
        operator.order(IntentKind.RESUME_RECONCILIATION)


class Bundles:
    """The bundles of a namespace, each with a key by which its owner is asked for."""

    def __init__(self, count: int) -> None:
        bundles = equal_bundles(_NAMESPACE, count)
        self._ids: dict[Piece, str] = {(_NAMESPACE, _key_in(bundle)): bundle.bundle_id for bundle in bundles}
        self.pieces: Sequence[Piece] = list(self._ids)

    def order(self, operator: Operator, pieces: Sequence[Piece], source: NodeId, target: NodeId) -> None:  # noqa: ARG002 - a transfer needs no source
        """Order transfers."""
        operator.order(IntentKind.TRANSFER_BUNDLES, bundles=",".join(self._ids[piece] for piece in pieces), node=target)


def _key_in(bundle: Bundle) -> str:
    number = 0
    while not bundle.lower <= bundle_hash(f"key-{number}") < bundle.end:
        number += 1
    return f"key-{number}"


class Moved(NamedTuple):
    """What some rounds of moves took.

    Attributes:
        gaps_ms: of each move, the time without an owner.
        rounds_ms: of each round, the time from the order until the last piece is served.
    """

    gaps_ms: list[float]
    rounds_ms: list[float]


class Measurement:
    """A cluster in which the first node leads every slot and owns every bundle whenever nothing is measured.

    Args:
        nodes: of the cluster; they are started here.
        operator: of the cluster.
        at_once: how many slots and how many bundles there are to move at once.
    """

    def __init__(self, nodes: WatchedNodes, operator: Operator, at_once: int) -> None:
        self._nodes = nodes
        self._operator = operator
        self._pauses = random.Random("pauses")
        self._at_once = at_once
        self.slots = Slots(at_once)
        self.bundles = Bundles(at_once)

    def begin(self) -> None:
        """Start the nodes, and give everything to the first one."""
        self._operator.wait_for_state(lambda state: bool(state.log_id), "a controller leads")
        for node_id in (FIRST, SECOND):
            self._nodes.start(node_id)
        self._operator.wait_for_state(
            lambda state: sum(node.lives for node in state.membership.nodes.values()) == len((FIRST, SECOND)),
            "both nodes are members",
        )
        self._operator.order(IntentKind.PIN_SLOTS, slots="all", node=FIRST, leads=TRUE)
        self._operator.order(IntentKind.CREATE_NAMESPACE, namespace=_NAMESPACE, bundles=str(self._at_once))
        self._operator.check_answers()
        # A later decision: one that also creates a bundle chooses its owner.
        self._operator.order(IntentKind.TRANSFER_BUNDLES, bundles=_NAMESPACE, node=FIRST)
        self._operator.check_answers()

    def move(self, moving: Moving, size: int, rounds: int) -> Moved:
        """Move pieces to the second node and back.

        Args:
            moving: what moves.
            size: how many pieces move at once; each round takes the next ones.
            rounds: how often they go there and back.
        """
        self._nodes.watch(moving.pieces)
        self._nodes.wait_until_all_accept(FIRST, moving.pieces, DEADLINE_S)
        moved = Moved([], [])
        for number in range(rounds):
            begin = number * size % self._at_once
            pieces = moving.pieces[begin : begin + size]
            for source, target in ((FIRST, SECOND), (SECOND, FIRST)):
                time.sleep(self._pauses.uniform(0, _PAUSE_S))
                ordered_s = time.monotonic()
                moving.order(self._operator, pieces, source, target)
                self._nodes.wait_until_all_accept(target, pieces, DEADLINE_S)
                moved.rounds_ms.append(1_000 * (time.monotonic() - ordered_s))
                self._operator.check_answers()
                moved.gaps_ms.extend(self._nodes.gap_ms(piece, source, target) for piece in pieces)
        return moved

    def pace_bundles(self, in_flight: int) -> None:
        """Let at most so many bundles be under way at once."""
        self._operator.order(IntentKind.CHANGE_POLICY, bundle_moves_in_flight=str(in_flight))
        self._operator.check_answers()

    def unplanned_gaps_ms(self, kills: int) -> tuple[list[float], list[float]]:
        """The times without an owner of the slots and of the bundles of the first node, which is killed.

        The second node has the data of every slot: it follows them, and was told so before any of them came back.
        """
        of_slots: list[float] = []
        of_bundles: list[float] = []
        everything = [*self.slots.pieces, *self.bundles.pieces]
        self._nodes.watch(everything)
        for _ in range(kills):
            self._nodes.wait_until_all_accept(FIRST, everything, DEADLINE_S)
            time.sleep(self._pauses.uniform(0, _PAUSE_S))
            self._nodes.kill(FIRST)
            self._nodes.wait_until_all_accept(SECOND, everything, DEADLINE_S)
            of_slots += [self._nodes.gap_ms(piece, FIRST, SECOND) for piece in self.slots.pieces]
            of_bundles += [self._nodes.gap_ms(piece, FIRST, SECOND) for piece in self.bundles.pieces]
            self._nodes.start(FIRST)
            # Its slots come back by their pins.
            self._nodes.wait_until_all_accept(FIRST, self.slots.pieces, DEADLINE_S)
            self.bundles.order(self._operator, self.bundles.pieces, SECOND, FIRST)
            self._operator.check_answers()
        return of_slots, of_bundles

    def drop_followers(self) -> None:
        """Leave each slot with its leader alone, so that a move has to copy it."""
        self._operator.order(IntentKind.CHANGE_POLICY, replica_count="1")
        self._operator.check_answers()
        self._operator.wait_for_state(
            lambda state: not any(slot.followers for slot in state.slots.table), "no slot has a follower"
        )


def main() -> None:
    """Move slots and bundles, kill their owner, and print the distributions."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--singles", type=int, default=50, help="rounds of moves of one (default: %(default)s)")
    parser.add_argument("--at-once", type=int, default=100, help="moves at once (default: %(default)s)")
    parser.add_argument("--in-flight", type=int, default=100, help="bundles under way then (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=10, help="rounds of moves at once (default: %(default)s)")
    parser.add_argument("--kills", type=int, default=3, help="how often the owner is killed (default: %(default)s)")
    parser.add_argument("--bootstrap-servers", metavar="HOST:PORT", help="a running Kafka; without it one is started")
    options = parsed(parser, SMALLEST)
    if not 1 <= options.at_once <= MAX_BUNDLES_PER_NAMESPACE:
        parser.error(f"--at-once has to be 1 to {MAX_BUNDLES_PER_NAMESPACE}, as many bundles as a namespace may have")
    only_warnings()
    multiprocessing.set_start_method("spawn")
    with running_cluster(options.bootstrap_servers, options.at_once) as measured:
        measured.begin()
        print(f"targets with {options.at_once} at once: p50 {TARGET_P50_MS} ms, p99 {TARGET_P99_MS} ms")
        print(f"{'time without an owner, ms':40}{'moves':>7}{'min':>9}{'p50':>9}{'p99':>9}{'max':>9}{'all':>9}")

        def print_planned(label: str, moving: Moving) -> float:
            _print(f"{label}, one at a time", *measured.move(moving, 1, options.singles))
            return print_many(f"{label}, {options.at_once} at once", moving)

        def print_many(label: str, moving: Moving) -> float:
            return _print(label, *measured.move(moving, options.at_once, options.rounds))

        planned_ms = print_planned("slots in sync", measured.slots), print_planned("bundles", measured.bundles)
        measured.pace_bundles(options.in_flight)
        print_many(f"bundles, {options.at_once} at once, {options.in_flight} in flight", measured.bundles)
        measured.pace_bundles(ClusterPolicy().bundle_moves_in_flight)
        of_slots, of_bundles = measured.unplanned_gaps_ms(options.kills)
        killed_ms = _print("slots in sync, owner killed", of_slots), _print("bundles, owner killed", of_bundles)
        measured.drop_followers()
        print_planned("slots copied", measured.slots)
        slots, bundles = (killed / planned for killed, planned in zip(killed_ms, planned_ms, strict=True))
        print(f"ratio killed / planned, of the medians: slots {slots:.0f}, bundles {bundles:.0f}")


@contextmanager
def running_cluster(bootstrap_servers: str | None, at_once: int) -> Iterator[Measurement]:
    """A new cluster with a controller, in Kafka and a lease store of its own, until the end of the block."""
    with ExitStack() as running:
        folder = Path(running.enter_context(tempfile.TemporaryDirectory()))
        kafka = KafkaConfig(running.enter_context(kafka_servers(bootstrap_servers)))
        cluster = ClusterConfig(f"handoff-{time.time_ns():x}")
        apply_topics(kafka.bootstrap_servers, cluster.name, topic_specs(), kafka.security, least_copies=1)
        redis_url = running.enter_context(EmbeddedValkey(folder / "valkey")).redis_url
        policy = {
            "slot_count": 1 << (at_once - 1).bit_length(),
            "replica_count": 2,
            # The same node is killed several times within the window.
            "protection_window_ms": 0,
        }
        running.enter_context(running_controller(cluster, kafka, redis_url, policy, folder / "controller.log"))
        operator = running.enter_context(closing(Operator(cluster, kafka)))
        nodes = running.enter_context(WatchedNodes(cluster.name, kafka.bootstrap_servers))
        yield Measurement(nodes, operator, at_once)


def _print(label: str, gaps_ms: list[float], rounds_ms: Sequence[float] = ()) -> float:
    """Print the distribution; return its median."""
    middle = statistics.median(gaps_ms)
    p99 = statistics.quantiles(gaps_ms, n=100, method="inclusive")[98]
    last = f"{statistics.median(rounds_ms):9.1f}" if rounds_ms else ""
    print(
        f"{label:40}{len(gaps_ms):7,}{min(gaps_ms):9.1f}{middle:9.1f}{p99:9.1f}{max(gaps_ms):9.1f}{last}",
        flush=True,
    )
    return middle


if __name__ == "__main__":
    main()
