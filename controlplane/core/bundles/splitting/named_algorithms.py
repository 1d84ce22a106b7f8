"""The split algorithms by name."""

from collections.abc import Mapping
from dataclasses import dataclass

from controlplane.core.bundles.splitting.contract import SplitAlgorithm
from controlplane.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class SplitAlgorithms:
    """The algorithms that a controller knows, by name.

    Attributes:
        by_name: those that a split may name.
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
