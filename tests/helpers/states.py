"""States that no log leads to, for checks that have to find defects."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from controlplane.core.log.state import State
from controlplane.core.slots.table import Slot
from controlplane.core.values.entries import Entries


def with_image(state: State, image: str, **changed: Any) -> State:  # noqa: ANN401 - a test's choice of fields
    """The state with other fields in one of its images, without ``apply``; digests of entries are right."""
    return replace(state, **{image: replace(getattr(state, image), **changed)})


def with_table(state: State, rows: Iterable[Slot]) -> State:
    """The state with another slot table; row and index need not belong together."""
    return with_image(state, "slots", rows=Entries(enumerate(rows)))
