"""From the current averages to candidates, by the core's rules for the nodes and bundles that count.

Nodes pass through the driver, bundles do not, except for those that a rule may choose. The rule itself says which nodes
these are of: it is applied first with a stand-in for the bundles of each node, which is as busy as can be, and the
bundles of the nodes that it would let shed are fetched in its place, until it names no node with a stand-in.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import Final, NamedTuple, Protocol

from controlplane.config import LOAD_REPORTS
from controlplane.core.bundles.candidate import Candidate
from controlplane.core.bundles.load.averages import NO_LOAD, MessageLoad, full_averages
from controlplane.core.bundles.load.reported_state import BundleState, BundleSums, NodeState
from controlplane.core.bundles.load.view import BundleHistory, LoadView, NodeLoad, NodeView
from controlplane.core.bundles.shedding.contract import ShedChoice, Shedding
from controlplane.core.bundles.shedding.threshold import MEAN_USAGE, SMOOTHED_USAGE, ThresholdMemory, ThresholdShedder
from controlplane.core.bundles.splitting import limits
from controlplane.core.bundles.splitting.limits import MeasuredBundle, SplitChoice, SplitLimits, choose_splits
from streaming.config import LoadRuleConfig
from streaming.contracts.days import day_of_ms

_GREATEST_LONG: Final = 2**63 - 1
_STAND_IN: Final = BundleHistory(full_averages(MessageLoad(*(float("inf"),) * 4)))
_NO_SUMS: Final = BundleSums(0, NO_LOAD, NO_LOAD)


class OwnedBundles(Protocol):
    """The bundles that count at an evaluation, wherever they are.

    A bundle counts for the node that reported it last, if that was in the node's newest report.
    """

    def sums(self) -> Mapping[str, BundleSums]:
        """The sums of each node that owns a bundle."""
        ...

    def busiest(self, targets: Mapping[str, float]) -> Iterable[BundleState]:
        """Of each of these nodes the busiest bundles that may be shed, until they reach its target, in bytes/s."""
        ...

    def exceeding(self, allowed: SplitLimits) -> tuple[Iterable[BundleState], Mapping[str, int]]:
        """The bundles that exceed a limit, and how many bundles each of their namespaces has."""
        ...


class SplitRow(NamedTuple):
    """A row of ``split_candidates``, in the order of its columns."""

    candidate_id: str
    bundle_id: str
    evaluated_ms: int
    day: date
    namespace: str
    node_id: str
    rule: str
    exceeded: list[tuple[str, float, float]]
    topic_count: int
    session_count: int
    message_rate_per_s: float
    throughput_bytes_per_s: float
    evidence: dict[str, str]
    window_start_ms: int
    window_end_ms: int


class ShedRow(NamedTuple):
    """A row of ``shed_candidates``, in the order of its columns."""

    candidate_id: str
    bundle_id: str
    evaluated_ms: int
    day: date
    namespace: str
    node_id: str
    rule: str
    throughput_bytes_per_s: float
    smoothed_usage: float
    mean_usage: float
    target_bytes_per_s: float
    evidence: dict[str, str]
    window_start_ms: int
    window_end_ms: int


class Evaluation(NamedTuple):
    """The result of one evaluation.

    Attributes:
        evaluated_ms: its log time.
        splits: bundles to be split.
        sheds: bundles to be given away.
        smoothed_usages: each counted node's usage, smoothed once more.
        sums: of each counted node.
    """

    evaluated_ms: int
    splits: tuple[SplitRow, ...]
    sheds: tuple[ShedRow, ...]
    smoothed_usages: Mapping[str, float]
    sums: Mapping[str, BundleSums]


def due_evaluation(now_ms: int, last_evaluated_ms: int | None, interval_ms: int) -> int | None:
    """The log time of the evaluation that is due at ``now_ms``, a multiple of the interval; None if it was done."""
    evaluated_ms = now_ms // interval_ms * interval_ms
    return evaluated_ms if last_evaluated_ms is None or evaluated_ms > last_evaluated_ms else None


def last_evaluation_ms(nodes: Iterable[NodeState], latest_ms: int) -> int | None:
    """Log time of the last evaluation in which one of the nodes took part; None if there was none.

    One behind ``latest_ms`` does not count: a clock was wrong, and waiting until it is right would be waiting for long.
    The nodes that took part in it begin to be smoothed again.
    """
    times = (node.smoothed_at_ms for node in nodes if node.smoothed_at_ms is not None)
    return max((time_ms for time_ms in times if time_ms <= latest_ms), default=None)


def counted_nodes(nodes: Iterable[NodeState], now_ms: int, rules: LoadRuleConfig) -> list[NodeState]:
    """The nodes whose newest report is not too old, by name, so that ties have one result."""
    return sorted(node for node in nodes if now_ms - node.position.append_time_ms < rules.report_lifetime_ms)


def evaluate(
    counted: Sequence[NodeState],
    bundles: OwnedBundles,
    evaluated_ms: int,
    last_evaluated_ms: int | None,
    rules: LoadRuleConfig,
) -> Evaluation:
    """Apply both rules.

    Args:
        counted: see :func:`counted_nodes`.
        bundles: those that count of these nodes.
        evaluated_ms: log time of this evaluation.
        last_evaluated_ms: log time of the one before; None if there was none.
        rules: thresholds and times.
    """
    sums = bundles.sums()
    # A node that missed an evaluation was away. It starts again, like one that has left and come back.
    former = {
        node.node_id: node.smoothed_usage
        for node in counted
        if node.smoothed_usage is not None and node.smoothed_at_ms == last_evaluated_ms
    }
    shedder = ThresholdShedder(rules.shed)
    shedding, chosen = _shed(shedder, counted, bundles, sums, ThresholdMemory(former))
    mean_usage = shedding.figures[MEAN_USAGE]
    exceeding, counts = bundles.exceeding(rules.split) if _may_split(counted, rules) else ((), {})
    big = {bundle.bundle_id: bundle for bundle in sorted(exceeding, key=lambda each: (each.node_id, each.bundle_id))}
    splits = choose_splits([_measured(bundle) for bundle in big.values()], counts, len(counted), rules.split)
    return Evaluation(
        evaluated_ms,
        tuple(_split_row(choice, big[choice.bundle.bundle_id], evaluated_ms) for choice in splits),
        tuple(
            _shed_row(choice, chosen[choice.bundle_id], evaluated_ms, mean_usage, shedder)
            for choice in shedding.choices
        ),
        shedding.memory.smoothed_usages,
        {node.node_id: sums.get(node.node_id, _NO_SUMS) for node in counted},
    )


def _may_split(counted: Sequence[NodeState], rules: LoadRuleConfig) -> bool:
    """Whether the rule may choose a bundle at all."""
    return rules.split.is_enabled and len(counted) >= rules.split.min_nodes


def _shed(
    shedder: ThresholdShedder,
    counted: Sequence[NodeState],
    bundles: OwnedBundles,
    sums: Mapping[str, BundleSums],
    memory: ThresholdMemory,
) -> tuple[Shedding[ThresholdMemory], Mapping[str, BundleState]]:
    """The result of the rule, and the bundles among which it has chosen.

    A node with a stand-in is chosen whenever it would be chosen with its bundles. Where the rule chooses none of them,
    the result is that of the nodes' own bundles. Each turn fetches the bundles of at least one more node.
    """
    fetched: dict[str, list[BundleState]] = {}
    usages = {node.node_id: node.weighted_usage for node in counted}
    while True:
        shedding = shedder.shed_by_usage(_view(counted, sums, fetched), usages, memory)
        targets = {choice.node_id: choice.target for choice in shedding.choices if choice.node_id not in fetched}
        if not targets:
            return shedding, {bundle.bundle_id: bundle for mine in fetched.values() for bundle in mine}
        fetched.update({node_id: [] for node_id in targets})
        for bundle in sorted(bundles.busiest(targets), key=lambda each: each.bundle_id):
            fetched[bundle.node_id].append(bundle)


def _view(
    counted: Sequence[NodeState], sums: Mapping[str, BundleSums], fetched: Mapping[str, Sequence[BundleState]]
) -> LoadView:
    """The nodes with the bundles that were fetched, or a stand-in that has any bundle's greatest traffic.

    The rule asks of a node's bundles also whether there is but one. Names without a history make up the number. No
    namespace has a name with spaces, so that none of them is taken for a bundle of a node's health checks.
    """
    nodes: dict[str, NodeView] = {}
    histories: dict[str, BundleHistory] = {}
    for node in counted:
        owned_count = sums.get(node.node_id, _NO_SUMS).owned_count
        if node.node_id in fetched:
            known = {
                bundle.bundle_id: BundleHistory(bundle.averages, bundle.newest.topic_count)
                for bundle in fetched[node.node_id]
            }
        else:
            known = {f"stand-in of {node.node_id}/busiest": _STAND_IN} if owned_count else {}
        others = [f"stand-in of {node.node_id}/{number}" for number in range(min(owned_count, 2) - len(known))]
        nodes[node.node_id] = NodeView(NodeLoad(node.node_id, traffic=node.reported, bundles=(*known, *others)))
        histories |= known
    return LoadView(nodes, histories, frozenset())


def _measured(bundle: BundleState) -> MeasuredBundle:
    return MeasuredBundle(
        bundle.bundle_id,
        bundle.namespace,
        bundle.node_id,
        bundle.newest.topic_count,
        bundle.newest.producer_count + bundle.newest.consumer_count,
        bundle.averages.long_term.load.message_rate_per_s,
        bundle.averages.long_term.load.throughput_bytes_per_s,
    )


def _head(action: str, bundle: BundleState, evaluated_ms: int) -> tuple[str, str, int, date, str, str]:
    """The first columns of a candidate's row, up to its node."""
    candidate_id = f"{action}:{bundle.bundle_id}:{LOAD_REPORTS}[{bundle.position.partition}]@{bundle.position.offset}"
    return (
        candidate_id,
        bundle.bundle_id,
        evaluated_ms,
        day_of_ms(evaluated_ms),
        bundle.namespace,
        bundle.node_id,
    )


def _split_row(choice: SplitChoice, bundle: BundleState, evaluated_ms: int) -> SplitRow:
    evidence: dict[str, str] = {}
    for each in choice.exceeded:
        evidence[each.limit.value] = repr(each.measured)
        evidence[f"max_{each.limit.value}"] = repr(each.allowed)
    return SplitRow(
        *_head("split", bundle, evaluated_ms),
        rule=limits.RULE_NAME,
        exceeded=[(each.limit.value, float(each.measured), float(each.allowed)) for each in choice.exceeded],
        topic_count=choice.bundle.topic_count,
        session_count=min(choice.bundle.session_count, _GREATEST_LONG),
        message_rate_per_s=choice.bundle.message_rate_per_s,
        throughput_bytes_per_s=choice.bundle.throughput_bytes_per_s,
        evidence=evidence,
        window_start_ms=bundle.first_report_time_ms,
        window_end_ms=bundle.position.append_time_ms,
    )


def _shed_row(
    choice: ShedChoice, bundle: BundleState, evaluated_ms: int, mean_usage: float, shedder: ThresholdShedder
) -> ShedRow:
    smoothed_usage = next(each.measured for each in choice.evidence if each.name == SMOOTHED_USAGE)
    return ShedRow(
        *_head("shed", bundle, evaluated_ms),
        rule=shedder.name,
        throughput_bytes_per_s=choice.traffic,
        smoothed_usage=smoothed_usage,
        mean_usage=mean_usage,
        target_bytes_per_s=choice.target,
        evidence={
            "mean_usage": repr(mean_usage),
            "smoothed_usage": repr(smoothed_usage),
            "target_bytes_per_s": repr(choice.target),
            "threshold_percent": repr(shedder.settings.threshold_percent),
            "throughput_bytes_per_s": repr(choice.traffic),
        },
        window_start_ms=bundle.first_report_time_ms,
        window_end_ms=bundle.position.append_time_ms,
    )


def candidate_of(row: SplitRow | ShedRow) -> Candidate:
    """The row as a record of the topic ``candidates``."""
    return Candidate(
        candidate_id=row.candidate_id,
        action="split" if isinstance(row, SplitRow) else "shed",
        bundle_id=row.bundle_id,
        node_id=row.node_id,
        rule=row.rule,
        evidence=dict(row.evidence),
        window_start_ms=row.window_start_ms,
        window_end_ms=row.window_end_ms,
    )
