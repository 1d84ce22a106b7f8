"""The split algorithms by name."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from controlplane.core.bundles.splitting.algorithms import (
    FlowOrQpsEquallyDivide,
    RangeEquallyDivide,
    SpecifiedPositionsDivide,
    TopicCountEquallyDivide,
    TrafficSplitSettings,
)
from controlplane.core.bundles.splitting.contract import SplitAlgorithm
from controlplane.errors import ConfigurationError

DEFAULT_ALGORITHM: Final = RangeEquallyDivide().name
"""Pulsar's defaultNamespaceBundleSplitAlgorithm."""


@dataclass(frozen=True, slots=True)
class SplitAlgorithms:
    """The algorithms that a controller knows, by name.

    Attributes:
        by_name: Pulsar's four and the user's own.
        default: the name of the one that stands in for an unknown one; it is known.
    """

    by_name: Mapping[str, SplitAlgorithm]
    default: str

    def configured(self, name: str) -> SplitAlgorithm:
        """The algorithm that a setting or an operator names.

        Raises:
            ConfigurationError: no algorithm has this name.
        """
        found = self.by_name.get(name)
        if found is None:
            known = ", ".join(sorted(self.by_name))
            message = f"split algorithm {name!r} is not known here; known are {known}"
            raise ConfigurationError(message)
        return found

    def executed(self, name: str) -> SplitAlgorithm:
        """The algorithm with a name that was accepted earlier; the default if this controller does not know it.

        Pulsar does the same when it carries out a split.
        """
        return self.by_name.get(name, self.by_name[self.default])


def split_algorithms(
    traffic: TrafficSplitSettings, own: Iterable[SplitAlgorithm] = (), default: str = DEFAULT_ALGORITHM
) -> SplitAlgorithms:
    """Pulsar's algorithms and a user's own.

    Args:
        traffic: settings of ``flow_or_qps_equally_divide``.
        own: the user's algorithms.
        default: the name of the default one.

    Raises:
        ConfigurationError: two algorithms have the same name, or none has the default's.
    """
    by_name: dict[str, SplitAlgorithm] = {}
    built_in: tuple[SplitAlgorithm, ...] = (
        RangeEquallyDivide(),
        TopicCountEquallyDivide(),
        SpecifiedPositionsDivide(),
        FlowOrQpsEquallyDivide(traffic),
    )
    for each in (*built_in, *own):
        if by_name.setdefault(each.name, each) is not each:
            message = f"two split algorithms are named {each.name!r}: rename your own"
            raise ConfigurationError(message)
    algorithms = SplitAlgorithms(by_name, default)
    algorithms.configured(default)
    return algorithms
