"""Ranges of the values that a knob may have, and the refusal that names the knob."""

import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from controlplane.errors import ConfigurationError


class KnobRefusedError(ConfigurationError):
    """A value that a knob may not have, or values that do not go together.

    Attributes:
        knobs: the knobs whose values are refused, by Pulsar's names.
    """

    def __init__(self, message: str, *knobs: str) -> None:
        super().__init__(message)
        self.knobs = knobs


@contextmanager
def naming(*knobs: str) -> Iterator[None]:
    """Turn the refusal of a name into one that names its knobs, too."""
    try:
        yield
    except KnobRefusedError:
        raise
    except ConfigurationError as error:
        raise KnobRefusedError(f"{' and '.join(knobs)}: {error}", *knobs) from error


@dataclass(frozen=True, slots=True)
class Allowed:
    """A range of numbers; what is not a number is in no range.

    Attributes:
        least: the least number.
        greatest: the greatest number.
        excludes_least: only numbers above ``least`` are in the range.
    """

    least: float = -math.inf
    greatest: float = math.inf
    excludes_least: bool = False

    def has(self, value: object) -> bool:
        """Whether a value is in the range."""
        if not isinstance(value, int | float) or (isinstance(value, float) and math.isnan(value)):
            return False
        return (self.least < value if self.excludes_least else self.least <= value) and value <= self.greatest

    def __str__(self) -> str:
        """The range in words, such as ``0 to 100``."""
        if math.isinf(self.least):
            return "any number"
        if self.greatest >= sys.float_info.max:
            return f"greater than {self.least:g}" if self.excludes_least else f"{self.least:g} or greater"
        if self.excludes_least:
            return f"greater than {self.least:g}, up to {self.greatest:g}"
        return f"{self.least:g} to {self.greatest:g}"


ANY_NUMBER: Final = Allowed()
NOT_NEGATIVE: Final = Allowed(0)
FINITE: Final = Allowed(0, sys.float_info.max)
POSITIVE: Final = Allowed(0, excludes_least=True)
ONE_OR_MORE: Final = Allowed(1)
PERCENT: Final = Allowed(0, 100)
THRESHOLD_PERCENT: Final = Allowed(0, 100, excludes_least=True)
SHARE: Final = Allowed(0, 1)
"""A share of 1, from none to all."""
UNLIMITED_OR_MORE: Final = Allowed(-1)
"""A greatest number, or -1 for none."""
BUNDLES_OF_A_NAMESPACE: Final = Allowed(1, 128)
"""As many bundles as the cluster's policy allows."""
