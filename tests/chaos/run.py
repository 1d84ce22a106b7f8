"""One run: fault after fault, what each cost, and whether every promise was kept."""

import random
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from enum import Enum
from itertools import pairwise

from controlplane.bootstrap.connections import open_source
from controlplane.config import HEARTBEATS
from controlplane.core.cluster.events import TermOpened
from controlplane.core.log.decision import Decision
from controlplane.core.membership.events import FencingCause, NodeFenced
from controlplane.inspection.readers import DecisionFollower, LoggedDecision, read_last_heartbeats
from examples.kv.client import Acknowledged
from examples.kv.history import Verdict, judge
from tests.chaos.broker_fault_kinds import WRONG_CLOCKS
from tests.chaos.faults import LEADER_DEATHS, FaultKind, Injector, Victims
from tests.chaos.fencings import judge_fencings
from tests.chaos.moving_bundles import Moves, MovingBundles
from tests.chaos.settled import slots_without_source, stopped_by_themselves, wait_until_settled
from tests.kills.cluster import KvCluster
from tests.kills.killing import assert_promises

_LOOK_EVERY = 10
_WAIT_MS = 120_000
"""As long as a cluster is waited for elsewhere: the run reports how long it took, and fails only if nothing comes."""

_HEARTBEAT_LOOK_BACK_MS = 120_000
_POLL_MS = 200


@dataclass(slots=True)
class Report:
    """What a run has shown.

    Attributes:
        faults: how many of each kind.
        seen: how many of each kind were looked at and had their effect.
        without_effect: how many of each kind were looked at and had not.
        failovers_ms: fault to the first commit of another leader, by kind of the fault that another one followed.
        fencings_ms: of nodes that died together with the leader: the later of silence limit and the new leader's first
            commit, to the commit that fences them.
        decisions: how many the log holds.
        epochs: the table's last one.
        terms: how many were opened.
        fenced: how many nodes were fenced for silence.
        empty_starts: how many lines of nodes said before the first fault that slots began without data.
        lost_or_doubled: decisions and epochs that are missing in the log or stand in it twice.
        looks: how often the log, the readers and the stored values were looked at.
        keys: how many values were read back in all.
        answered: requests of the traffic that were answered.
        failed: requests that were given up.
        broken: promises that were not kept, a sentence each.
        history: what the traffic's writes say of ownership.
        moves: what became of the bundles, and who would have served what when.
    """

    faults: Counter[Enum] = field(default_factory=Counter)
    seen: Counter[Enum] = field(default_factory=Counter)
    without_effect: Counter[Enum] = field(default_factory=Counter)
    failovers_ms: dict[Enum, list[int]] = field(default_factory=dict)
    fencings_ms: list[int] = field(default_factory=list)
    decisions: int = 0
    epochs: int = 0
    terms: int = 0
    fenced: int = 0
    empty_starts: int = 0
    lost_or_doubled: int = 0
    looks: int = 0
    keys: int = 0
    answered: int = 0
    failed: int = 0
    broken: list[str] = field(default_factory=list)
    history: Verdict = field(default_factory=lambda: judge(()))
    moves: Moves = field(default_factory=Moves)


def run(
    injector: Injector,
    cluster: KvCluster,
    bundles: MovingBundles,
    history: list[Acknowledged],
    kinds: Iterable[Enum],
    tell: Callable[[str], object],
) -> Report:
    """Let one fault happen after the other, each when the cluster is well again after the one before."""
    report = Report()
    try:
        wait_until_settled(cluster)
        # At the beginning no slot has data anywhere.
        report.empty_starts = len(slots_without_source(cluster))
        for kind in kinds:
            tell(_one_fault(cluster, injector, bundles, kind, report))
            if report.faults.total() % _LOOK_EVERY == 0:
                _look(cluster, bundles, report)
        bundles.end()
        _look(cluster, bundles, report)
        report.broken += [
            f"{kind.value}: none of {count} had its effect"
            for kind, count in report.without_effect.items()
            if not report.seen[kind]
        ]
    except AssertionError as error:
        report.broken.append("".join(traceback.format_exception(error)))
    report.history = judge(history)
    return report


def kinds_until(end_s: float, chance: random.Random, weights: Mapping[Enum, int]) -> Iterator[Enum]:
    """Each kind once in random order, then kinds by chance, until it is ``end_s`` (monotonic)."""
    kinds = list(weights)
    for kind in chance.sample(kinds, len(kinds)):
        if time.monotonic() < end_s:
            yield kind
    while time.monotonic() < end_s:
        yield chance.choices(kinds, [weights[kind] for kind in kinds])[0]


def _one_fault(cluster: KvCluster, injector: Injector, bundles: MovingBundles, kind: Enum, report: Report) -> str:
    victims = injector.victims()
    report.faults[kind] += 1
    with closing(open_source(cluster.real.cluster, cluster.real.kafka)) as source:
        decisions = DecisionFollower(source)
        began_s, began_ms = time.monotonic(), round(time.time() * 1_000)
        injector.begin(kind, victims)
        bundles.unload_all()
        if kind in LEADER_DEATHS:
            said = _see_recovery(cluster, decisions, kind, victims, began_ms, report)
        else:
            time.sleep(injector.hold_s(kind))
            said = ""
        effects = _see_effects(injector, kind, report)
        injector.end()
        wait_until_settled(cluster)
        if kind not in LEADER_DEATHS | WRONG_CLOCKS:
            said = _see_failover(decisions, kind, victims, began_ms, report)
    return f"{report.faults.total():4d}  {time.monotonic() - began_s:5.1f} s  {kind.value}{effects}{said}"


def _see_effects(injector: Injector, kind: Enum, report: Report) -> str:
    """Note whether the fault that is held has its effect."""
    effects = injector.effects()
    if not effects:
        return ""
    counted = report.seen if all(effect.had for effect in effects) else report.without_effect
    counted[kind] += 1
    return f" [{'' if counted is report.seen else 'WITHOUT EFFECT: '}{'; '.join(effect.said for effect in effects)}]"


def _see_recovery(
    cluster: KvCluster,
    decisions: DecisionFollower,
    kind: Enum,
    victims: Victims,
    began_ms: int,
    report: Report,
) -> str:
    """Wait for the next leader's first commit, and for the fencing of the node that died with the leader."""
    opened = decisions.wait_for(lambda logged: _opens_term(logged.decision), _WAIT_MS)
    assert opened is not None, f"nobody led within {_WAIT_MS} ms after {kind.value}"
    assert opened.decision.controller_id != victims.leader, f"{victims.leader} is dead and leads"
    failover_ms = opened.append_time_ms - began_ms
    report.failovers_ms.setdefault(kind, []).append(failover_ms)
    said = f": {opened.decision.controller_id} committed after {failover_ms} ms"
    if kind is FaultKind.LEADER_AND_NODE_KILLED:
        fenced = decisions.wait_for(lambda logged: _fences(logged.decision, victims.node), _WAIT_MS)
        assert fenced is not None, f"{victims.node} is dead and was not fenced within {_WAIT_MS} ms"
        due_ms = max(_silent_from_ms(cluster, victims.node), opened.append_time_ms)
        report.fencings_ms.append(fenced.append_time_ms - due_ms)
        said += f", {victims.node} fenced {fenced.append_time_ms - due_ms} ms after that or its silence limit"
    return said


def _see_failover(decisions: DecisionFollower, kind: Enum, victims: Victims, began_ms: int, report: Report) -> str:
    """Note the first commit of another leader, if the fault had one."""
    logged: list[LoggedDecision] = []
    while more := decisions.poll(_POLL_MS):
        logged += more
    for each in logged:
        if _opens_term(each.decision) and each.decision.controller_id != victims.leader:
            failover_ms = each.append_time_ms - began_ms
            report.failovers_ms.setdefault(kind, []).append(failover_ms)
            return f": {each.decision.controller_id} committed after {failover_ms} ms"
    return ""


def _silent_from_ms(cluster: KvCluster, node_id: str) -> int:
    """When a dead node's silence was longer than the limit, by the broker's time."""
    with closing(open_source(cluster.real.cluster, cluster.real.kafka)) as source:
        last = read_last_heartbeats(source, {node_id}, _HEARTBEAT_LOOK_BACK_MS).last[node_id]
    table = cluster.table
    assert table is not None
    return last.append_time_ms + table.settings.silence_limit_ms


def _look(cluster: KvCluster, bundles: MovingBundles, report: Report) -> None:
    """Look at the log, the readers, the stored values and the bundles.

    Raises:
        AssertionError: a promise was not kept.
    """
    report.looks += 1
    decisions = cluster.real.decisions()
    report.decisions, report.epochs = len(decisions), decisions[-1].epoch
    report.lost_or_doubled = sum(
        (after.seq != before.seq + 1) + (after.epoch not in {before.epoch, before.epoch + 1})
        for before, after in pairwise(decisions)
    )
    report.terms = sum(_opens_term(decision) for decision in decisions)
    counts = cluster.client.take_counts()
    report.answered += counts.answered
    report.failed += counts.failed
    report.keys += assert_promises(cluster, report.faults.total())
    judged = judge_fencings(decisions, cluster.real.records(HEARTBEATS), len(cluster.nodes))
    report.fenced = judged.fenced
    assert not judged.wrong, judged.wrong
    assert not (stopped := stopped_by_themselves(cluster)), stopped
    unsourced = slots_without_source(cluster)[report.empty_starts :]
    assert not unsourced, unsourced
    report.moves = bundles.look(decisions)
    assert not report.moves.broken, "\n".join(report.moves.broken)


def _opens_term(decision: Decision) -> bool:
    return any(isinstance(event, TermOpened) for event in decision.events)


def _fences(decision: Decision, node_id: str) -> bool:
    return any(
        isinstance(event, NodeFenced) and event.node_id == node_id and event.cause is FencingCause.SILENCE
        for event in decision.events
    )
