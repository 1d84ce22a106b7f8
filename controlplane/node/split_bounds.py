"""Where an owner splits a bundle that the leader lets it divide by its topics."""

from collections.abc import Sequence
from typing import Final

import structlog

from controlplane.core.bundles.bundle import Bundle
from controlplane.core.bundles.load.averages import message_load
from controlplane.core.bundles.ranges import LAST_HASH, HashRange
from controlplane.core.bundles.splitting.algorithms import (
    FlowOrQpsEquallyDivide,
    RangeEquallyDivide,
    SpecifiedPositionsDivide,
    TopicCountEquallyDivide,
)
from controlplane.core.bundles.splitting.contract import SplitAlgorithm, SplitRequest
from controlplane.errors import ConfigurationError
from controlplane.node.callbacks import TopicLoad

_ALGORITHMS: Final[tuple[SplitAlgorithm, ...]] = (
    RangeEquallyDivide(),
    TopicCountEquallyDivide(),
    SpecifiedPositionsDivide(),
    FlowOrQpsEquallyDivide(),
)
_BY_NAME: Final = {algorithm.name: algorithm for algorithm in _ALGORITHMS}

_log = structlog.get_logger(__name__)


def split_bounds(bundle: Bundle, topics: Sequence[TopicLoad]) -> tuple[int, ...]:
    """The inner bounds of the parts, ascending, by the algorithm that the bundle's row names.

    Empty if the algorithm finds none, refuses, or is not known here, with a line in the log. The bundle then stays
    whole, as it does with bounds that would leave a part empty. Traffic is limited by Pulsar's defaults.
    """
    algorithm = _BY_NAME.get(bundle.split_algorithm)
    if algorithm is None:
        known = ", ".join(sorted(_BY_NAME))
        _log.warning("bundle not split: algorithm not known", bundle=bundle.bundle_id, known=known)
        return ()
    lower, upper = bundle.lower, min(bundle.upper, LAST_HASH)
    request = SplitRequest(
        HashRange(lower, upper),
        tuple(each.topic for each in topics),
        {each.topic: message_load(each) for each in topics},
    )
    try:
        positions, reason = algorithm.choose(request)
    except ConfigurationError as error:
        positions, reason = (), str(error)
    bounds = tuple(sorted(positions))
    if len(set(bounds)) < len(bounds) or not all(lower < each < upper for each in bounds):
        bounds, reason = (), f"{list(bounds)} would leave a part empty ({reason})"
    if not bounds:
        _log.info("bundle not split", bundle=bundle.bundle_id, algorithm=algorithm.name, reason=reason)
    return bounds
