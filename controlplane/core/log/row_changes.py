"""The rows of the routing table that a state has, and those that a decision changes.

Each subject declares in its ``rows.py`` the rows of its image and the rows that an event may change.
"""

from collections.abc import Iterable
from typing import Any, Final, get_type_hints

from controlplane.core.log.events import Event
from controlplane.core.log.state import State
from controlplane.core.routing.rows import ROW_KINDS, TableRow
from controlplane.core.values.row_kind import AnyRowKind

_FIELD_OF_IMAGE: Final = {hint: name for name, hint in get_type_hints(State).items()}


def rows_of(state: State) -> dict[str, TableRow]:
    """Every row of the routing table, by key."""
    rows = {
        kind.key(identifier): kind.row(image, identifier)
        for kind in ROW_KINDS
        for image in [_image(state, kind)]
        for identifier in kind.ids(image)
    }
    return {key: row for key, row in rows.items() if row is not None}


def changed_rows(before: State, after: State, events: Iterable[Event]) -> dict[str, TableRow | None]:
    """The rows that ``events`` changed between two states, by key, in the order in which events touch them.

    None removes a row. The cost depends on the size of the change, not on that of the table.
    """
    touched: dict[tuple[AnyRowKind, Any], None] = {}
    for event in events:
        for kind in ROW_KINDS:
            if isinstance(event, kind.events):
                touched.update(((kind, identifier), None) for identifier in kind.touched(event))
    changed: dict[str, TableRow | None] = {}
    for kind, identifier in touched:
        new = kind.row(_image(after, kind), identifier)
        if new != kind.row(_image(before, kind), identifier):
            changed[kind.key(identifier)] = new
    return changed


def _image(state: State, kind: AnyRowKind) -> Any:  # noqa: ANN401 - the image is of the class that the kind names
    return getattr(state, _FIELD_OF_IMAGE[kind.image])
