"""What many load reports say of their nodes, over columns: what ``report_figures`` says of each, to the bit.

All columns are one-dimensional unless stated, with a place for each report.
"""

from collections.abc import Sequence
from operator import le

import numpy as np

from controlplane.core.bundles.load.averages import MessageLoad
from controlplane.core.bundles.load.plausible import GREATEST_AMOUNT, GREATEST_USAGE
from controlplane.core.bundles.load.report_figures import ReportFigures, report_figures
from controlplane.core.bundles.load.resource_usage import ResourceWeights
from controlplane.core.bundles.load.sample_fold import Choice, Loads, Numbers, are_plausible
from controlplane.core.bundles.load.view import Resources
from controlplane.core.bundles.reports import LoadReport


def figures_of_reports(reports: Sequence[LoadReport], loads: Loads, weights: ResourceWeights) -> list[ReportFigures]:
    """Of each report what :func:`controlplane.core.bundles.load.report_figures.report_figures` says.

    Reports whose figures can all be true, and which name their bundles in the order of the ids, as nodes do, are
    judged and added up together; any other one by itself.

    Args:
        reports: the reports.
        loads: of their bundles, report by report.
        weights: of the resources.
    """
    counts = np.array([len(each.bundles) for each in reports], np.int64)
    resources = np.array([[getattr(each, name) for name in Resources._fields] for each in reports], np.float64)
    usage, limit = resources.reshape(-1, len(Resources._fields), 2).transpose(2, 1, 0)
    counted, sums = _sums(loads, counts)
    is_usual = _are_plausible(usage, limit, sums) & (counted == counts) & (not weights.keeps_infinite_usage)
    columns = (counts, _weighted_usages(usage, limit, weights), sums.T, is_usual)
    return [
        ReportFigures(count, weighted, MessageLoad(*reported), is_plausible=True, implausible=())
        if usual and _is_in_order(report)
        else report_figures(report, weights)
        for report, count, weighted, reported, usual in zip(reports, *(each.tolist() for each in columns), strict=True)
    ]


def are_plausible_reports(usage: Loads, limit: Loads, bundle_counts: Numbers, loads: Loads) -> Choice:
    """For each report whether the figures of its node can be true.

    Args:
        usage: of each resource, of shape (number of resources, number of reports).
        limit: likewise.
        bundle_counts: how many bundles each report names.
        loads: of these bundles, report by report.
    """
    _, sums = _sums(loads, bundle_counts)
    return _are_plausible(usage, limit, sums)


def _sums(loads: Loads, bundle_counts: Numbers) -> tuple[Numbers, Loads]:
    """Of each report the number of bundles whose loads can be true, and these loads added one after the other."""
    counted, count = are_plausible(loads), len(bundle_counts)
    of_counted = np.repeat(np.arange(count), bundle_counts)[counted]
    sums = np.stack([np.bincount(of_counted, figure[counted], count) for figure in loads]).astype(np.float64)
    return np.bincount(of_counted, minlength=count), sums


def _are_plausible(usage: Loads, limit: Loads, sums: Loads) -> Choice:
    """Whether each report's resources and the sums over its bundles can be true."""
    return np.asarray(_are_plausible_resources(usage, limit).all(axis=0) & are_plausible(sums))


def _are_plausible_resources(usage: Loads, limit: Loads) -> Choice:
    is_limit = limit <= GREATEST_AMOUNT  # false for what is not a number
    with np.errstate(over="ignore"):
        is_usage = (limit <= 0) | ((usage >= 0) & (usage <= limit * GREATEST_USAGE))
    return np.asarray(is_limit & is_usage)


@np.errstate(all="ignore")  # what there is of figures that cannot be true is not used
def _weighted_usages(usage: Loads, limit: Loads, weights: ResourceWeights) -> Loads:
    """``resource_usage.weighted_usage`` of each report whose resources can be true."""
    in_32_bits = _rounded(limit)
    share = _rounded(_rounded(usage) / in_32_bits)
    percent = dict(zip(Resources._fields, np.where(in_32_bits > 0, _rounded(share * 100), 0.0), strict=True))
    greatest = np.full(usage.shape[1], -np.inf)
    for name, weight in (
        ("cpu", weights.cpu),
        ("direct_memory", weights.direct_memory),
        ("bandwidth_in", weights.inbound),
        ("bandwidth_out", weights.outbound),
    ):
        weighted = percent[name] * weight
        greatest = np.where(weighted > greatest, weighted, greatest)
    return np.asarray(greatest / 100)


def _rounded(values: Loads) -> Loads:
    """With the precision of a 32-bit float, which Pulsar computes usages with."""
    return values.astype(np.float32).astype(np.float64)


def _is_in_order(report: LoadReport) -> bool:
    bundle_ids = [bundle.bundle_id for bundle in report.bundles]
    return all(map(le, bundle_ids, bundle_ids[1:]))
