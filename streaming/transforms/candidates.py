"""From the current averages to candidates, by the core's rules for the nodes and bundles that count."""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import UTC, date, datetime
from typing import NamedTuple

from controlplane.config import LOAD_REPORTS
from controlplane.core.bundles.candidate import Candidate
from controlplane.core.bundles.load.view import BundleHistory, LoadView, NodeLoad, NodeView
from controlplane.core.bundles.shedding.contract import ShedChoice
from controlplane.core.bundles.shedding.threshold import MEAN_USAGE, SMOOTHED_USAGE, ThresholdMemory, ThresholdShedder
from controlplane.core.bundles.splitting import limits
from controlplane.core.bundles.splitting.limits import MeasuredBundle, SplitChoice, choose_splits
from streaming.config import LoadRuleConfig
from streaming.load_state import BundleState, LoadState, NodeState


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
    """

    evaluated_ms: int
    splits: tuple[SplitRow, ...]
    sheds: tuple[ShedRow, ...]
    smoothed_usages: Mapping[str, float]


def due_evaluation(now_ms: int, last_evaluated_ms: int | None, interval_ms: int) -> int | None:
    """The log time of the evaluation that is due at ``now_ms``, a multiple of the interval; None if it was done."""
    evaluated_ms = now_ms // interval_ms * interval_ms
    return evaluated_ms if last_evaluated_ms is None or evaluated_ms > last_evaluated_ms else None


def evaluate(state: LoadState, evaluated_ms: int, now_ms: int, rules: LoadRuleConfig) -> Evaluation:
    """Apply both rules to the nodes whose newest report is not too old.

    A bundle counts for the node that reported it last. Nodes are ordered by name and bundles by id, so that ties have
    one result.

    Args:
        state: every node and bundle that was reported.
        evaluated_ms: log time of this evaluation.
        now_ms: log time of the newest report.
        rules: thresholds and times.
    """
    alive = [
        node
        for node in sorted(state.nodes.values())
        if now_ms - node.position.append_time_ms < rules.report_lifetime_ms
    ]
    known = state.bundles
    owned = {node.node_id: _owned(node, known) for node in alive}
    last_evaluated_ms = state.evaluated_ms
    # A node that missed an evaluation was away. It starts again, like one that has left and come back.
    former = {
        node.node_id: node.smoothed_usage
        for node in alive
        if node.smoothed_usage is not None and node.smoothed_at_ms == last_evaluated_ms
    }
    resting = {
        bundle.bundle_id
        for bundle in known.values()
        if bundle.moved_at_ms is not None and now_ms - bundle.moved_at_ms < rules.grace_period_ms
    }
    shedder = ThresholdShedder(rules.shed)
    shedding = shedder.shed_by_usage(
        _view(alive, owned, known, resting),
        {node.node_id: node.weighted_usage for node in alive},
        ThresholdMemory(former),
    )
    mean_usage = shedding.figures[MEAN_USAGE]
    counts: dict[str, int] = {}
    for bundle in (each for mine in owned.values() for each in mine):
        counts[bundle.namespace] = counts.get(bundle.namespace, 0) + 1
    measured = [_measured(bundle) for mine in owned.values() for bundle in mine]
    splits = choose_splits(measured, counts, len(alive), rules.split)
    return Evaluation(
        evaluated_ms,
        tuple(_split_row(choice, known[choice.bundle.bundle_id], evaluated_ms) for choice in splits),
        tuple(
            _shed_row(choice, known[choice.bundle_id], evaluated_ms, mean_usage, shedder) for choice in shedding.choices
        ),
        shedding.memory.smoothed_usages,
    )


def _owned(node: NodeState, known: Mapping[str, BundleState]) -> list[BundleState]:
    mine = (known[bundle_id] for bundle_id in sorted(node.bundle_ids) if bundle_id in known)
    return [bundle for bundle in mine if bundle.node_id == node.node_id]


def _view(
    alive: Sequence[NodeState],
    owned: Mapping[str, Sequence[BundleState]],
    known: Mapping[str, BundleState],
    resting: AbstractSet[str],
) -> LoadView:
    """The nodes without bundles that another node has reported since."""
    nodes = {
        node.node_id: NodeView(
            NodeLoad(
                node.node_id,
                traffic=node.reported,
                bundles=tuple(
                    bundle_id
                    for bundle_id in node.bundle_ids
                    if bundle_id not in known or known[bundle_id].node_id == node.node_id
                ),
            )
        )
        for node in alive
    }
    bundles = {
        bundle.bundle_id: BundleHistory(bundle.averages, bundle.newest.topic_count)
        for mine in owned.values()
        for bundle in mine
    }
    return LoadView(nodes, bundles, resting)


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


def _candidate_id(action: str, bundle: BundleState) -> str:
    return f"{action}:{bundle.bundle_id}:{LOAD_REPORTS}[{bundle.position.partition}]@{bundle.position.offset}"


def _day(time_ms: int) -> date:
    return datetime.fromtimestamp(time_ms / 1000, UTC).date()


def _split_row(choice: SplitChoice, bundle: BundleState, evaluated_ms: int) -> SplitRow:
    evidence: dict[str, str] = {}
    for each in choice.exceeded:
        evidence[each.limit.value] = repr(each.measured)
        evidence[f"max_{each.limit.value}"] = repr(each.allowed)
    return SplitRow(
        candidate_id=_candidate_id("split", bundle),
        bundle_id=bundle.bundle_id,
        evaluated_ms=evaluated_ms,
        day=_day(evaluated_ms),
        namespace=bundle.namespace,
        node_id=bundle.node_id,
        rule=limits.RULE_NAME,
        exceeded=[(each.limit.value, float(each.measured), float(each.allowed)) for each in choice.exceeded],
        topic_count=choice.bundle.topic_count,
        session_count=choice.bundle.session_count,
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
        candidate_id=_candidate_id("shed", bundle),
        bundle_id=bundle.bundle_id,
        evaluated_ms=evaluated_ms,
        day=_day(evaluated_ms),
        namespace=bundle.namespace,
        node_id=choice.node_id,
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
