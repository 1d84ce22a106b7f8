"""The weight of a node in texts of operators."""

from typing import Final

from controlplane.core.membership.standing_orders import MAX_WEIGHT
from controlplane.errors import ConfigurationError

_DIGITS: Final = len(str(MAX_WEIGHT))
"""Greatest number of digits of a weight."""


def parse_weight(text: str) -> int:
    """A node's weight: a whole number from 1.

    Raises:
        ConfigurationError: the text is no whole number, or out of range.
    """
    # Digits are counted first, because Python refuses to parse thousands of them.
    if not (text.isascii() and text.isdigit() and len(text) <= _DIGITS and 1 <= int(text) <= MAX_WEIGHT):
        raise ConfigurationError(f"weight is {text!r:.40}, expected a whole number, 1 to {MAX_WEIGHT:,}")
    return int(text)
