"""Arguments of operations: the meaning of each, and the check that its text could be valid in some cluster.

A check in this module examines the text alone. Checks that depend on the state, for example on the number of slots, are
made by the operation when the leader carries it out.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from controlplane.core.cluster.policy import MAX_SLOT_COUNT
from controlplane.core.operations.slot_numbers import parse_slots
from controlplane.core.slots.policy_contract import OrderKind
from controlplane.errors import ConfigurationError


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """An argument of an operation. Every field is required, so that a new argument is declared completely.

    Attributes:
        name: the name under which an intent carries it.
        meaning: its meaning, for the reference: a phrase that begins in lower case, without a full stop.
        required: whether an intent without it, or with an empty text, is refused.
        check: raises :class:`~controlplane.errors.ConfigurationError` for a text that no cluster could accept.
        order: the kind of order that it gives, which a slot policy may ignore; None if it gives none.
    """

    name: str
    meaning: str
    required: bool
    check: Callable[[str], object]
    order: OrderKind | None


def any_text(_: str) -> None:
    """The check of an argument that accepts every text."""


def check_name(what: str) -> Callable[[str], None]:
    """The check of a name: any characters, but not empty. ``what`` names the argument in the error."""

    def check(text: str) -> None:
        if not text:
            raise ConfigurationError(f"the {what} must not be empty")

    return check


def check_slots(text: str) -> None:
    """Check that the text is a list of slots that some cluster could have.

    Raises:
        ConfigurationError: it is empty or malformed, or names a slot that no cluster has.
    """
    check_name("slots")(text)
    parse_slots(text, MAX_SLOT_COUNT)


def check_one_of(name: str, *texts: str) -> Callable[[str], None]:
    """The check of an argument that accepts only these texts."""

    def check(text: str) -> None:
        if text not in texts:
            raise ConfigurationError(f"{name} is {text!r:.80}, expected {' or '.join(texts)}")

    return check


NODE: Final = Argument(name="node", meaning="the name of a node", required=True, check=check_name("node"), order=None)
SLOTS: Final = Argument(
    name="slots",
    meaning="slot numbers and ranges as in `3,7-9`, or `all`",
    required=True,
    check=check_slots,
    order=None,
)
