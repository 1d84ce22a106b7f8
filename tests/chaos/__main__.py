"""``python -m tests.chaos --minutes 30 --seed 1``: real processes, faults, and a report that ends with a verdict."""

import argparse
import logging
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from enum import Enum
from pathlib import Path
from typing import NamedTuple

import structlog

from controlplane.core.values.identifiers import ControllerId, NodeId
from examples.kv.client import Acknowledged
from tests.chaos.broker_fault_kinds import WRONG_CLOCKS, BrokerFaultKind, weights_with
from tests.chaos.broker_faults import BrokerInjector
from tests.chaos.broker_parts import BrokerParts
from tests.chaos.faults import LEADER_DEATHS, WEIGHTS, FaultKind, Injector
from tests.chaos.moving_bundles import Moves, MovingBundles
from tests.chaos.parts import ChaosParts, Parts
from tests.chaos.run import Report, kinds_until, run
from tests.helpers.real_cluster import RealCluster
from tests.helpers.shifted_clock import why_no_shifted_clocks
from tests.kills.cluster import KvCluster

CONTROLLERS = 3
CHECKS = (("log", "verify"), ("audit",), ("snapshot", "list"))
"""The commands that look at the log that a run has left."""

SNAPSHOTS = ("--snapshots", "after_decisions=1")
"""What controllers are told: every death may meet a snapshot that is being written, every start begins from one."""

SAMPLES_FOR_P99 = 100
"""With fewer, the 99th percentile is the worst of them and says nothing more."""


def main() -> int:
    """Print a line for each fault, then the report; 1 if a promise was broken."""
    parser = argparse.ArgumentParser(description="Break a running cluster in every way, and judge what it did.")
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--brokers", type=int, choices=(1, 3, 4), default=1)
    parser.add_argument("--controllers-apart", action="store_true", help="Kafka's controllers are no brokers")
    parser.add_argument("--secured", action="store_true", help="with TLS and logins by password; several brokers only")
    parser.add_argument(
        "--faults",
        type=_kind,
        nargs="+",
        metavar="NAME",
        help="only these, one after the other, instead of --minutes: DISK_FULL and so on",
    )
    parser.add_argument("--rate", type=float, default=60.0, help="requests a second")
    parser.add_argument("--folder", type=Path, help="data and logs, kept; a temporary one otherwise")
    options = parser.parse_args()
    if options.brokers == 1 and (options.controllers_apart or options.secured):
        parser.error("--controllers-apart and --secured need --brokers 3 or 4")
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    with tempfile.TemporaryDirectory(prefix="chaos-") as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        kafka = Brokers(options.brokers, options.controllers_apart, options.secured)
        chance = random.Random(options.seed)
        kinds = options.faults or _kinds(kafka, options.minutes, chance)
        report, commands = unleash(folder, kafka, kinds, chance, options.nodes, options.rate)
    for line in (*lines_of(report), *commands):
        print(line)
    broken = bool(report.broken) or not report.history.linearizable
    print("BROKEN" if broken else "every promise was kept")
    return int(broken)


class Brokers(NamedTuple):
    """How many brokers there are, whether Kafka's controllers are processes of their own, and whether all log in."""

    number: int = 1
    controllers_apart: bool = False
    secured: bool = False


def unleash(
    folder: Path, kafka: Brokers, kinds: Iterable[Enum], chance: random.Random, nodes: int, rate_per_s: float
) -> tuple[Report, list[str]]:
    """A cluster of its own, its faults, and what the commands that check a log say of it afterwards."""
    names: list[ControllerId | NodeId] = [f"c{number}" for number in range(1, CONTROLLERS + 1)]
    names += [f"n{number}" for number in range(1, nodes + 1)]
    history: list[Acknowledged] = []
    served = folder / "served"
    # What an earlier run has left is of another log, and perhaps of another start of the machine's clock.
    shutil.rmtree(served, ignore_errors=True)
    served.mkdir()
    with ExitStack() as stack:
        parts: ChaosParts | BrokerParts = (
            ChaosParts(folder, names)
            if kafka.number == 1
            else BrokerParts(
                folder, names, kafka.number, controllers_apart=kafka.controllers_apart, secured=kafka.secured
            )
        )
        stack.enter_context(parts)
        real = RealCluster(
            "chaos",
            parts.bootstrap_servers,
            parts.valkey.redis_url,
            folder,
            addresses_of=parts.addresses_of,
            controller_options=SNAPSHOTS,
            security_file=parts.security_file if isinstance(parts, BrokerParts) else None,
        )
        cluster = KvCluster(
            real,
            controllers=CONTROLLERS,
            nodes=nodes,
            rate_per_s=rate_per_s,
            history=history,
            node_program=("tests.chaos.watched_node", "--served-into", str(served)),
        )
        with (
            cluster,
            MovingBundles(
                cluster, served, kafka.number, names[CONTROLLERS:], random.Random(chance.random())
            ) as bundles,
        ):
            if isinstance(parts, BrokerParts):
                injector: Injector = BrokerInjector(parts, cluster, chance)
            else:
                injector = Injector(parts, cluster, chance)
            report = run(injector, cluster, bundles, history, kinds, _tell)
        return report, [_checked(parts, report, *words) for words in CHECKS]


def _kinds(kafka: Brokers, minutes: float, chance: random.Random) -> Iterator[Enum]:
    """Kinds by chance; the minutes begin when the cluster runs and the first one is asked for."""
    weights = WEIGHTS if kafka.number == 1 else weights_with(kafka.number)
    reason = why_no_shifted_clocks()
    if kafka.number > 1 and reason is not None:
        _tell(f"WITHOUT {', '.join(sorted(kind.value for kind in WRONG_CLOCKS))}: {reason}")
        weights = {kind: weight for kind, weight in weights.items() if kind not in WRONG_CLOCKS}
    yield from kinds_until(time.monotonic() + 60 * minutes, chance, weights)


def _kind(name: str) -> Enum:
    """The kind of fault of that name."""
    kinds: dict[str, Enum] = {**FaultKind.__members__, **BrokerFaultKind.__members__}
    if name not in kinds:
        raise argparse.ArgumentTypeError(f"{name} is none of {', '.join(kinds)}")
    return kinds[name]


def lines_of(report: Report) -> list[str]:
    """The report for people."""
    lines = [f"{report.faults.total()} faults:"]
    lines += [f"  {count:5d}  {kind.value}{_effects(report, kind)}" for kind, count in report.faults.most_common()]
    lines.append("first commit of another leader after the fault, ms:")
    deaths = [ms for kind in LEADER_DEATHS for ms in report.failovers_ms.get(kind, [])]
    lines.append(f"  {_distribution(deaths)}  deaths of the leader with Kafka and the lease store reachable")
    for kind, failovers_ms in report.failovers_ms.items():
        if kind not in LEADER_DEATHS:
            lines.append(f"  {_distribution(failovers_ms)}  {kind.value}")
    lines.append("node that died with the leader fenced after the later of silence limit and that commit, ms:")
    lines.append(f"  {_distribution(report.fencings_ms)}")
    lines.append(
        f"log: {report.decisions} decisions, {report.epochs} epochs, {report.terms} terms, "
        f"{report.lost_or_doubled} lost or doubled, {report.fenced} nodes fenced for silence"
    )
    lines.append(f"looked at {report.looks} times, {report.keys} values read back")
    lines.append(f"requests: {report.answered} answered, {report.failed} given up")
    history = report.history
    lines.append(
        f"ownership: {history.writes} writes of {history.slots} slots, {len(history.stale)} stale ones accepted, "
        f"{len(history.doubled)} tokens doubled: {'' if history.linearizable else 'NOT '}linearizable"
    )
    lines += _moves_lines(report.moves)
    return [*lines, *report.broken, *history.stale, *history.doubled]


def _moves_lines(moves: Moves) -> list[str]:
    orders, looks = moves.orders, sum(each.looks for each in moves.coverage)
    done, failed = (
        ", ".join(f"{count} {kind}" for kind, count in sorted(each.items())) or "none"
        for each in (orders.done, orders.failed)
    )
    far_apart = sum(each.far_apart for each in moves.coverage)
    return [
        f"orders of bundles: carried out {done}; failed {failed}",
        f"  longest {orders.longest_ms} ms of log time",
        f"  intents: {orders.answered} answered, {orders.refused} refused, {orders.unacknowledged} not acknowledged",
        f"looks at what {len(moves.coverage)} processes would serve: {looks}, {far_apart} not close to the one before",
        f"  began to serve what was watched: {moves.servings} times",
        f"  by two at once: {len(moves.overlaps.allowed)} times within a bound, {len(moves.overlaps.wrong)} beyond",
        *moves.overlaps.allowed,
    ]


def _effects(report: Report, kind: Enum) -> str:
    seen, without = report.seen[kind], report.without_effect[kind]
    return f" (effect seen {seen} of {seen + without} times)" if seen + without else ""


def _distribution(values: list[int]) -> str:
    if not values:
        return "none"
    ordered = sorted(values)
    figures = [f"p50 {statistics.median(ordered):.0f}"]
    if len(ordered) >= SAMPLES_FOR_P99:
        figures.append(f"p99 {ordered[-(-99 * len(ordered) // 100) - 1]}")
    return f"{len(ordered)}: {', '.join([*figures, f'worst {ordered[-1]}'])}"


def _checked(parts: Parts, report: Report, *command: str) -> str:
    """What a command says of the log that the run has left; a refusal is a broken promise."""
    words = [sys.executable, "-m", "controlplane.cli", "--cluster", "chaos"]
    words += ["--bootstrap-servers", parts.bootstrap_servers, "--redis-url", parts.valkey.redis_url, *command]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        report.broken.append(f"controlplane {' '.join(command)}: {done.stdout}{done.stderr}")
    return f"controlplane {' '.join(command)}: {done.stdout.strip()}"


def _tell(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
