"""What a load report says of its node, and which of its figures cannot be true."""

from collections.abc import Iterable
from itertools import compress
from operator import attrgetter
from typing import Final, NamedTuple

import numpy as np

from controlplane.core.bundles.load.averages import NO_LOAD, MessageLoad, message_load
from controlplane.core.bundles.load.plausible import Implausible, implausible_load, implausible_node
from controlplane.core.bundles.load.resource_usage import ResourceWeights, weighted_usage
from controlplane.core.bundles.load.sample_fold import are_plausible
from controlplane.core.bundles.load.view import NodeLoad
from controlplane.core.bundles.reports import BundleLoad, LoadReport

_BUNDLE_ID: Final = attrgetter("bundle_id")
_LOAD: Final = attrgetter(*MessageLoad._fields)


class ReportFigures(NamedTuple):
    """What a report says of its node.

    Attributes:
        bundle_count: how many bundles it names.
        weighted_usage: of its resources, 1.0 for 100 percent.
        reported: the sums over its bundles with figures that can be true, in the order of the bundles' ids.
        is_plausible: whether its resources and these sums can be true; otherwise the node stays as it was.
        implausible: every figure that cannot be true.
    """

    bundle_count: int
    weighted_usage: float
    reported: MessageLoad
    is_plausible: bool
    implausible: tuple[Implausible, ...]


def report_figures(report: LoadReport, weights: ResourceWeights) -> ReportFigures:
    """The figures of a report. A bundle with figures that cannot be true is left out of the sums."""
    bundles = sorted(report.bundles, key=_BUNDLE_ID)
    loads = np.array([_LOAD(bundle) for bundle in bundles], np.float64).reshape(-1, len(MessageLoad._fields))
    counts = are_plausible(loads.T)
    # One after the other, as MessageLoad.plus adds them, and so to the bit.
    reported = MessageLoad(*np.add.accumulate(np.vstack([NO_LOAD, loads[counts]]))[-1].tolist())
    wrong = _implausible_bundles(report.node_id, compress(bundles, ~counts))
    resources = (report.cpu, report.memory, report.direct_memory, report.bandwidth_in, report.bandwidth_out)
    of_node = implausible_node(NodeLoad(report.node_id, *resources, traffic=reported))
    if of_node is not None:
        wrong.append(Implausible(report.node_id, "", *of_node))
    return ReportFigures(len(bundles), weighted_usage(report, weights), reported, of_node is None, tuple(wrong))


def _implausible_bundles(node_id: str, bundles: Iterable[BundleLoad]) -> list[Implausible]:
    found = ((bundle.bundle_id, implausible_load(message_load(bundle))) for bundle in bundles)
    return [Implausible(node_id, bundle_id, *wrong) for bundle_id, wrong in found if wrong is not None]
