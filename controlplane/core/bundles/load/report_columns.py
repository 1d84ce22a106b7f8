"""Which of many load reports have figures of their node that can be true, over columns: the verdicts of ``plausible``.

All columns are one-dimensional unless stated, with a place for each report.
"""

import numpy as np

from controlplane.core.bundles.load.plausible import GREATEST_AMOUNT, GREATEST_USAGE
from controlplane.core.bundles.load.sample_fold import Choice, Loads, Numbers, are_plausible


def are_plausible_reports(usage: Loads, limit: Loads, bundle_counts: Numbers, loads: Loads) -> Choice:
    """For each report what :func:`controlplane.core.bundles.load.report_figures.report_figures` says of its node.

    Args:
        usage: of each resource, of shape (number of resources, number of reports).
        limit: likewise.
        bundle_counts: how many bundles each report names.
        loads: of these bundles, report by report.
    """
    of_report = np.repeat(np.arange(len(bundle_counts)), bundle_counts)
    counted = are_plausible(loads)
    of_counted, count = of_report[counted], len(bundle_counts)
    sums = np.stack([np.bincount(of_counted, figure[counted], count) for figure in loads]).astype(np.float64)
    return np.asarray(_are_plausible_resources(usage, limit).all(axis=0) & are_plausible(sums))


def _are_plausible_resources(usage: Loads, limit: Loads) -> Choice:
    is_limit = limit <= GREATEST_AMOUNT  # false for what is not a number
    with np.errstate(over="ignore"):
        is_usage = (limit <= 0) | ((usage >= 0) & (usage <= limit * GREATEST_USAGE))
    return np.asarray(is_limit & is_usage)
