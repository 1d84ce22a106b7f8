"""The candidates that the reports give: every batch folded and evaluated by the plain oracle.

Each batch of a run evaluates the rules, and what an evaluation sees depends on where batches end. That is read from the
commits of ``load_reports``: one of them is one batch, whatever was killed.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow.parquet as pq

from controlplane.config import LOAD_REPORTS
from controlplane.core.bundles.load.reported_state import BundleState
from controlplane.core.bundles.shedding.threshold import MEAN_USAGE, SMOOTHED_USAGE
from streaming.config import LoadRuleConfig
from tests.helpers.placed_report import PlacedReport
from tests.helpers.plain_load import PlainBundles, PlainLoad, plain_evaluation

_PLACE: Final = ["partition", "offset"]


class Proposed(NamedTuple):
    """A candidate and its evidence.

    Attributes:
        candidate_id: names the action, the bundle, and the report on which it rests.
        evaluated_ms: log time of the evaluation.
        node_id: the bundle's node.
        figures: what was measured and what is allowed.
    """

    candidate_id: str
    evaluated_ms: int
    node_id: str
    figures: tuple[float, ...]


def batches_of(folder: Path) -> Iterator[frozenset[tuple[int, int]]]:
    """Partition and offset of the records of each batch that is in a table of records, in the order of its log."""
    for entry in sorted((folder / "_delta_log").glob("*.json")):
        actions = [json.loads(line) for line in entry.read_text(encoding="utf-8").splitlines()]
        files = [action["add"]["path"] for action in actions if action.get("add", {}).get("dataChange")]
        places = (pq.read_table(folder / file, columns=_PLACE, partitioning=None) for file in files)
        yield frozenset(place for each in places for place in zip(*each.to_pydict().values(), strict=True))


def plain_candidates(
    reports: Iterable[PlacedReport], batches: Iterable[frozenset[tuple[int, int]]], rules: LoadRuleConfig
) -> list[Proposed]:
    """What each evaluation finds that none before has found."""
    by_place = {(each.position.partition, each.position.offset): each for each in reports}
    plain, found = PlainLoad(), dict[str, Proposed]()
    for batch in batches:
        mine = [by_place[place] for place in batch]
        if mine:
            plain.fold(mine, rules.shed.weights)
            for each in _evaluated(plain, max(report.position.append_time_ms for report in mine), rules):
                found.setdefault(each.candidate_id, each)
    return [*found.values()]


def _evaluated(plain: PlainLoad, now_ms: int, rules: LoadRuleConfig) -> Iterator[Proposed]:
    """One evaluation, if it is due; the nodes keep their smoothed usages. No clock of a broker is ahead.

    When one is due, and which nodes count, is said here anew: the pipeline is not judged by functions of its own.
    """
    nodes = sorted(plain.nodes.values(), key=lambda node: node.node_id)
    last_ms = max((node.smoothed_at_ms for node in nodes if node.smoothed_at_ms is not None), default=None)
    evaluated_ms = now_ms - now_ms % rules.evaluation_interval_ms
    if last_ms is not None and evaluated_ms <= last_ms:
        return
    counted = [node for node in nodes if now_ms - node.position.append_time_ms < rules.report_lifetime_ms]
    bundles = PlainBundles(plain.bundles.values(), counted, now_ms, rules.grace_period_ms)
    shedding, splits = plain_evaluation(counted, bundles, last_ms, rules)
    for node in counted:
        smoothed = shedding.memory.smoothed_usages[node.node_id]
        plain.nodes[node.node_id] = node._replace(smoothed_usage=smoothed, smoothed_at_ms=evaluated_ms)
    for split in splits:
        bundle = plain.bundles[split.bundle.bundle_id]
        figures = [float(value) for each in split.exceeded for value in (each.measured, each.allowed)]
        yield Proposed(_id_of("split", bundle), evaluated_ms, bundle.node_id, tuple(figures))
    for shed in shedding.choices:
        bundle = plain.bundles[shed.bundle_id]
        (smoothed,) = (each.measured for each in shed.evidence if each.name == SMOOTHED_USAGE)
        figures = [shed.traffic, smoothed, shedding.figures[MEAN_USAGE], shed.target]
        yield Proposed(_id_of("shed", bundle), evaluated_ms, bundle.node_id, tuple(figures))


def _id_of(action: str, bundle: BundleState) -> str:
    return f"{action}:{bundle.bundle_id}:{LOAD_REPORTS}[{bundle.position.partition}]@{bundle.position.offset}"


def stored_candidates(splits: Iterable[Mapping[str, Any]], sheds: Iterable[Mapping[str, Any]]) -> Iterator[Proposed]:
    """The rows of ``split_candidates`` and of ``shed_candidates``."""
    for row in splits:
        figures = [value for each in row["exceeded"] for value in (each["measured"], each["allowed"])]
        yield _proposed(row, figures)
    for row in sheds:
        names = ("throughput_bytes_per_s", "smoothed_usage", "mean_usage", "target_bytes_per_s")
        yield _proposed(row, [row[name] for name in names])


def _proposed(row: Mapping[str, Any], figures: Iterable[float]) -> Proposed:
    return Proposed(row["candidate_id"], row["evaluated_ms"], row["node_id"], tuple(figures))
